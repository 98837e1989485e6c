//! A command in a container, as the engine keeps it: made, started on a hijacked connection, asked for its end.
//!
//! An exec counts as ended only when the engine says so: its stream ends early when the command closes its outputs, and late
//! when its children keep them. Each carries a mark in its environment by which it and what it left behind is found again
//! ([`super::exec_end`]). What waits for a command is [`super::exec_sync`], what talks to it [`super::session`].

use std::time::Duration;

use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};

use super::client::Client;
use super::exec_end::Guard;
use super::from_docker::exec::{CreatedExec, Exec};
use super::path;
use super::raw::Call;
use crate::runtime::ports::{EngineError, ExecSpec};

/// Exit codes of a shell, and the engine's, for a command that could not be run.
const CANNOT_RUN: [i32; 2] = [126, 127];

/// The variable that carries the mark.
const MARK: &str = "SPRINGLINE_EXEC";

/// An exec that was made.
pub(super) struct Made {
    /// The engine's ID of it.
    pub(super) id: String,
    /// What its environment carries, `NAME=value`.
    pub(super) mark: String,
    tty: bool,
}

/// What became of its start.
pub(super) enum Start {
    /// It runs, or will, at the other end of this.
    Runs(TokioIo<Upgraded>),
    /// It could not be run, and this says why.
    CannotRun { exit_code: i32, reason: String },
}

pub(super) async fn create(
    client: &Client,
    container: &str,
    spec: &ExecSpec,
) -> Result<Made, EngineError> {
    let mark = mark()?;
    let call = Call::post(path::container(container, "/exec")?).json(&body(spec, &mark));
    let CreatedExec { id } = client.json(call, "the answer to an exec").await?;
    if !path::names_something(&id) {
        return Err(EngineError::Garbled(format!("an exec with ID {id:?}")));
    }
    let tty = spec.streams.tty;
    Ok(Made { id, mark, tty })
}

fn body(spec: &ExecSpec, mark: &str) -> Value {
    let streams = spec.streams;
    let mut body = json!({
        "AttachStdin": streams.stdin,
        "AttachStdout": streams.stdout,
        "AttachStderr": streams.stderr && !streams.tty,
        "Tty": streams.tty,
        "Cmd": spec.cmd,
        "Env": [mark],
    });
    if streams.tty
        && streams.stdin
        && let Some(body) = body.as_object_mut()
    {
        body.insert("DetachKeys".to_owned(), never_typed(mark).into());
    }
    body
}

/// Detach keys that nobody types. There is no way to have none, and none given means ctrl-p ctrl-q, which a shell's user
/// does type. The engine holds a first key back until it sees the next, so the first is one that shows no effect by itself:
/// NUL, which sets the mark in editors.
fn never_typed(mark: &str) -> String {
    let (_, secret) = mark.split_once('=').unwrap_or_default();
    secret.chars().fold("ctrl-@".to_owned(), |mut keys, key| {
        keys.push(',');
        keys.push(key);
        keys
    })
}

/// Starts the exec. From here on it may run, whatever is answered, so `guard` is there before.
pub(super) async fn start(
    client: &Client,
    made: &Made,
    guard: &mut Guard,
) -> Result<Start, EngineError> {
    let body = json!({"Detach": false, "Tty": made.tty});
    let call = Call::post(format!("/exec/{}/start", made.id)).json(&body);
    let error = match client.hijack(call).await {
        Ok(stream) => return Ok(Start::Runs(stream)),
        Err(error) => error,
    };
    match error {
        // Some engines refuse the start of what cannot be run; the exit code they keep all the same.
        EngineError::BadRequest(reason) | EngineError::Failed(reason) => {
            let state = inspect(client, &made.id).await?;
            match state.exit_code {
                Some(exit_code) if never_ran(&state) => {
                    guard.has_ended();
                    Ok(Start::CannotRun { exit_code, reason })
                }
                _ => Err(EngineError::Failed(reason)),
            }
        }
        EngineError::NotFound(_) | EngineError::Conflict(_) | EngineError::Denied(_) => {
            guard.has_ended();
            Err(error)
        }
        error => Err(error),
    }
}

/// What the engine says of the exec.
pub(super) async fn inspect(client: &Client, exec: &str) -> Result<Exec, EngineError> {
    let path = format!("/exec/{exec}/json");
    client.json(Call::get(path), "an exec").await
}

/// Waits until the exec has ended. The engine has no call for that; it mostly has ended when its stream did.
pub(super) async fn ended(client: &Client, exec: &str) -> Result<Exec, EngineError> {
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

/// Whether the engine could not run it. Engines then write why to its *output*, as if it had said so; but it has no process,
/// so nothing there is its own.
pub(super) fn never_ran(state: &Exec) -> bool {
    !state.running && state.pid == 0 && state.exit_code.is_some_and(|c| CANNOT_RUN.contains(&c))
}

/// A mark that no other process has.
fn mark() -> Result<String, EngineError> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| {
        EngineError::Failed(format!("the kernel gives no random numbers: {error}"))
    })?;
    Ok(format!("{MARK}={:032x}", u128::from_be_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::ports::StreamSpec;

    #[test]
    fn what_the_engine_is_asked_for() {
        let all = StreamSpec {
            stdin: true,
            stdout: true,
            stderr: true,
            tty: false,
        };
        let output = StreamSpec {
            stdin: false,
            ..all
        };
        let tty = StreamSpec { tty: true, ..all };
        let watched = StreamSpec {
            tty: true,
            ..output
        };
        for (name, streams, stderr, has_tty, detach) in [
            ("all", all, true, false, None),
            ("output", output, true, false, None),
            (
                "a terminal has no stderr",
                tty,
                false,
                true,
                Some("ctrl-@,a,b"),
            ),
            ("a terminal without input", watched, false, true, None),
        ] {
            let cmd = vec!["sh".to_owned(), "-c x".to_owned()];
            let mut want = json!({
                "AttachStdin": streams.stdin, "AttachStdout": true, "AttachStderr": stderr, "Tty": has_tty,
                "Cmd": ["sh", "-c x"], "Env": ["M=ab"],
            });
            if let Some(keys) = detach {
                want["DetachKeys"] = keys.into();
            }
            assert_eq!(body(&ExecSpec { cmd, streams }, "M=ab"), want, "{name}");
        }
    }

    #[test]
    fn marks_differ() {
        let (one, other) = (mark().unwrap(), mark().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.len(), "SPRINGLINE_EXEC=".len() + 32);
    }
}
