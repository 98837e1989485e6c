//! Running a command in a container and waiting for it.
//!
//! The stream is bollard's: attached, both outputs apart. An exec counts as ended only when the engine says so: its stream
//! ends early when the command closes its outputs, and late when its children keep them. Whatever ends the wait first (the
//! timeout, an error, the caller dropping the future) also ends the command ([`super::exec_end`]).

use std::sync::Arc;
use std::time::Duration;

use bollard::container::LogOutput;
use bollard::exec::{StartExecOptions, StartExecResults};
use futures_util::StreamExt;
use serde_json::json;

use super::client::{Client, within};
use super::exec_end;
use super::from_docker::exec::{CreatedExec, Exec};
use super::path;
use super::raw::{Call, WRITE};
use crate::runtime::ports::{EngineError, ExecOutput};

/// Exit codes of a shell, and the engine's, for a command that could not be run.
const CANNOT_RUN: [i32; 2] = [126, 127];

pub(super) async fn run(
    client: &Arc<Client>,
    id: &str,
    cmd: &[String],
    limit: usize,
    timeout: Option<Duration>,
) -> Result<ExecOutput, EngineError> {
    let body = json!({"AttachStdout": true, "AttachStderr": true, "Cmd": cmd});
    let call = Call::post(path::container(id, "/exec")?).json(&body);
    let created: CreatedExec = client.json(call, "the answer to an exec").await?;
    let exec = created.id;
    if !path::names_something(&exec) {
        return Err(EngineError::Garbled(format!("an exec with ID {exec:?}")));
    }
    let running = exec_end::Running::new(client, &exec);
    match within(timeout, attached(client, &exec, limit)).await {
        Ok(output) => {
            running.has_ended();
            Ok(output)
        }
        Err(error) => {
            // Whoever is told that time is up is told that it is gone; after other errors it ends in the background.
            if matches!(error, EngineError::Timeout { .. }) {
                running.end().await;
            }
            Err(error)
        }
    }
}

async fn attached(client: &Client, exec: &str, limit: usize) -> Result<ExecOutput, EngineError> {
    let mut output = ExecOutput::default();
    match follow(client, exec, limit, &mut output).await {
        // Some engines refuse the start of what cannot be run; the exit code they keep all the same.
        Err(EngineError::BadRequest(reason) | EngineError::Failed(reason)) => {
            let state = inspect(client, exec).await?;
            match state.exit_code {
                Some(code) if !state.running && CANNOT_RUN.contains(&code) => {
                    output.exit_code = code;
                    output.stderr = reason.into_bytes();
                    output.stderr.truncate(limit);
                    Ok(output)
                }
                _ => Err(EngineError::Failed(reason)),
            }
        }
        Err(other) => Err(other),
        Ok(()) => {
            let state = ended(client, exec).await?;
            output.exit_code = state.exit_code.unwrap_or_default();
            Ok(said_where_it_belongs(output, &state))
        }
    }
}

/// Starts the exec and reads its stream to the end; what is beyond `limit` is read and dropped, so that the command can go on.
async fn follow(
    client: &Client,
    exec: &str,
    limit: usize,
    output: &mut ExecOutput,
) -> Result<(), EngineError> {
    let docker = client.bollard().await?;
    let options = StartExecOptions {
        detach: false,
        tty: false,
        output_capacity: Some(64 << 10),
    };
    let start = async {
        docker
            .start_exec(exec, Some(options))
            .await
            .map_err(|e| client.failed(e))
    };
    // The input half is held: closing it may end the connection.
    let StartExecResults::Attached {
        output: mut stream,
        input: _input,
    } = within(Some(WRITE), start).await?
    else {
        return Err(EngineError::Garbled("a detached exec".to_owned()));
    };
    while let Some(piece) = stream.next().await {
        match piece.map_err(|e| client.failed(e))? {
            LogOutput::StdOut { message } => keep(&mut output.stdout, &message, limit),
            LogOutput::StdErr { message } => keep(&mut output.stderr, &message, limit),
            LogOutput::StdIn { .. } => {}
            LogOutput::Console { .. } => {
                return Err(EngineError::Garbled(
                    "an exec's stream without its frames".to_owned(),
                ));
            }
        }
    }
    Ok(())
}

fn keep(buffer: &mut Vec<u8>, piece: &[u8], limit: usize) {
    let room = limit.saturating_sub(buffer.len());
    buffer.extend_from_slice(piece.get(..room).unwrap_or(piece));
}

/// What the engine says of the exec.
pub(super) async fn inspect(client: &Client, exec: &str) -> Result<Exec, EngineError> {
    let path = format!("/exec/{exec}/json");
    client.json(Call::get(path), "an exec").await
}

/// Waits until the exec has ended. The engine has no call for that; it mostly has ended when its stream did.
async fn ended(client: &Client, exec: &str) -> Result<Exec, EngineError> {
    let mut pause = Duration::from_millis(1);
    loop {
        let state = inspect(client, exec).await?;
        if !state.running && state.exit_code.is_some() {
            return Ok(state);
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(200));
    }
}

/// Engines write why a command could not be run to its *output*, as if it had said so. It never ran (it has no process), so
/// nothing there is its own.
fn said_where_it_belongs(mut output: ExecOutput, state: &Exec) -> ExecOutput {
    let never_ran = state.pid == 0 && CANNOT_RUN.contains(&output.exit_code);
    if never_ran && output.stderr.is_empty() {
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
        let out = |stdout: &str, stderr: &str, exit_code| ExecOutput {
            stdout: stdout.into(),
            stderr: stderr.into(),
            exit_code,
        };
        for (name, output, pid, want) in [
            (
                "missing",
                out("OCI runtime", "", 127),
                0,
                out("", "OCI runtime", 127),
            ),
            (
                "not executable",
                out("OCI runtime", "", 126),
                0,
                out("", "OCI runtime", 126),
            ),
            (
                "ran and said 127",
                out("own words", "", 127),
                7,
                out("own words", "", 127),
            ),
            (
                "ran and ended well",
                out("own words", "", 0),
                7,
                out("own words", "", 0),
            ),
        ] {
            let state = Exec {
                pid,
                ..Exec::default()
            };
            assert_eq!(said_where_it_belongs(output, &state), want, "{name}");
        }
    }
}
