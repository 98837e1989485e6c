//! Running a command in a container and waiting for it, its outputs kept up to a limit.
//!
//! Whatever ends the wait first (the timeout, an error, the caller dropping the future) also ends the command
//! ([`super::exec_end`]). Fails like any call; a command that could not be run is no failure, but an exit code of 126 or 127
//! with the reason in its error output.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::client::{Client, within};
use super::exec::{self, Made, Start};
use super::exec_end::Guard;
use super::frames::{Form, Frames};
use super::from_docker::exec::Exec;
use crate::runtime::ports::{EngineError, ExecOutput, ExecSpec, Output, StreamSpec};

const OUTPUTS: StreamSpec = StreamSpec {
    stdin: false,
    stdout: true,
    stderr: true,
    tty: false,
};

pub(super) async fn run(
    client: &Arc<Client>,
    id: &str,
    cmd: &[String],
    limit: usize,
    timeout: Option<Duration>,
) -> Result<ExecOutput, EngineError> {
    let spec = ExecSpec {
        cmd: cmd.to_vec(),
        streams: OUTPUTS,
    };
    // Out here, so that it outlives the work that is given up.
    let mut guard = None;
    let work = async {
        let made = exec::create(client, id, &spec).await?;
        let guard = guard.insert(Guard::new(client, &made));
        let output = attached(client, &made, guard, limit).await?;
        guard.has_ended();
        Ok(output)
    };
    let result = within(timeout, work).await;
    // Whoever is told that time is up is told that it is gone; after other errors it ends in the background.
    if let (Err(EngineError::Timeout { .. }), Some(guard)) = (&result, guard) {
        guard.end().await;
    }
    result
}

async fn attached(
    client: &Client,
    made: &Made,
    guard: &mut Guard,
    limit: usize,
) -> Result<ExecOutput, EngineError> {
    let mut output = ExecOutput::default();
    match exec::start(client, made, guard).await? {
        Start::CannotRun { exit_code, reason } => {
            output.exit_code = exit_code;
            keep(&mut output.stderr, reason.as_bytes(), limit);
            Ok(output)
        }
        Start::Runs(stream) => {
            // Held to the end: closing it may end the connection.
            let mut frames = Frames::new(stream, Form::Framed);
            while let Some(piece) = frames.next().await {
                // What is beyond the limit is read and dropped, so that the command can go on.
                match piece.map_err(|e| broken(client, e))? {
                    Output::Stdout(bytes) => keep(&mut output.stdout, &bytes, limit),
                    Output::Stderr(bytes) => keep(&mut output.stderr, &bytes, limit),
                }
            }
            let state = exec::ended(client, &made.id).await?;
            output.exit_code = state.exit_code.unwrap_or_default();
            Ok(said_where_it_belongs(output, &state))
        }
    }
}

/// What an error of an exec's stream means.
fn broken(client: &Client, error: io::Error) -> EngineError {
    match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
            EngineError::Garbled(error.to_string())
        }
        _ => {
            let wire = client.wire();
            wire.broke(wire.endpoint.unreachable(error))
        }
    }
}

fn keep(buffer: &mut Vec<u8>, piece: &[u8], limit: usize) {
    let room = limit.saturating_sub(buffer.len());
    buffer.extend_from_slice(piece.get(..room).unwrap_or(piece));
}

/// Of a command that never ran nothing is its own output: it is the engine's word about it.
fn said_where_it_belongs(mut output: ExecOutput, state: &Exec) -> ExecOutput {
    if exec::never_ran(state) && output.stderr.is_empty() {
        output.stderr = std::mem::take(&mut output.stdout);
    }
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_cut_at_the_limit() {
        for (name, limit, pieces, want) in [
            ("under", 10, ["abc", "def"], "abcdef"),
            ("exactly", 6, ["abc", "def"], "abcdef"),
            ("inside a piece", 4, ["abc", "def"], "abcd"),
            ("between pieces", 3, ["abc", "def"], "abc"),
            ("nothing", 0, ["abc", "def"], ""),
        ] {
            let mut buffer = Vec::new();
            for piece in pieces {
                keep(&mut buffer, piece.as_bytes(), limit);
            }
            assert_eq!(buffer, want.as_bytes(), "{name}");
        }
    }

    #[test]
    fn what_never_ran_says_so_on_stderr() {
        let out = |stdout: &str, stderr: &str| ExecOutput {
            stdout: stdout.into(),
            stderr: stderr.into(),
            exit_code: 0,
        };
        let (moved, kept) = (out("", "words"), out("words", ""));
        for (name, code, pid, want) in [
            ("missing", 127, 0, moved.clone()),
            ("not executable", 126, 0, moved),
            ("ran and said 127", 127, 7, kept.clone()),
            ("ran and ended well", 0, 7, kept),
        ] {
            let state = Exec {
                pid,
                exit_code: Some(code),
                ..Exec::default()
            };
            let got = said_where_it_belongs(out("words", ""), &state);
            assert_eq!(got, want, "{name}");
        }
    }
}
