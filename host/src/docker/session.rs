//! Live sessions: an exec or a container's own process at the other end of a hijacked connection.
//!
//! An engine gives what a process wrote two seconds after its end and cuts the rest, so a client that is slow right then would
//! lose it ([`pump`]). How an exec that is given up ends: [`super::exec_end`]; an attached process is not the session's.
//!
//! [`pump`]: super::pump

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWrite;

use super::client::Client;
use super::exec::{self, Start};
use super::exec_end::Guard;
use super::frames::{Form, Frames};
use super::pump::{Pump, Source};
use super::raw::{Call, READ};
use super::{containers, path};
use crate::runtime::ports::{EngineError, ExecSpec, Output, Session, SessionControl, StreamSpec};

/// Detach keys that are in no text: bytes that UTF-8 does not have.
const NEVER_TYPED: &str = "%FF%2C%FE%2C%FF%2C%FE%2C%FF%2C%FE";

type Stdin = Pin<Box<dyn AsyncWrite + Send>>;

/// Runs a command.
pub(super) async fn exec(
    client: &Arc<Client>,
    id: &str,
    spec: &ExecSpec,
) -> Result<Session, EngineError> {
    let made = exec::create(client, id, spec).await?;
    let mut guard = Guard::new(client, &made);
    let started = exec::start(client, &made, &mut guard).await?;
    let control = ExecControl {
        client: Arc::clone(client),
        exec: made.id.clone(),
        tty: spec.streams.tty,
        guard: Mutex::new(Some(guard)),
        resizes: AtomicU64::new(0),
    };
    let control = Arc::new(control);
    match started {
        Start::Runs(stream) => {
            let source = Source::Exec {
                id: made.id,
                stderr: spec.streams.stderr && !spec.streams.tty,
            };
            let mut session = session(client, stream, spec.streams, source, control);
            if spec.streams.tty {
                let input = |stdin| -> Stdin { Box::pin(TerminalInput(stdin)) };
                session.stdin = session.stdin.map(input);
            }
            Ok(session)
        }
        Start::CannotRun { reason, .. } => {
            let sink = || -> Stdin { Box::pin(tokio::io::sink()) };
            let words = match spec.streams.tty {
                true => Output::Stdout(reason.into()),
                false => Output::Stderr(reason.into()),
            };
            Ok(Session {
                stdin: spec.streams.stdin.then(sink),
                output: Box::pin(stream::iter([Ok(words)])),
                control,
            })
        }
    }
}

/// Attaches to the container's own process.
pub(super) async fn attach(
    client: &Arc<Client>,
    id: &str,
    streams: StreamSpec,
) -> Result<Session, EngineError> {
    // Engines before API 1.42 do not say in which form they send.
    let tty = containers::inspect(client, id).await?.tty;
    let streams = StreamSpec { tty, ..streams };
    let flag = |name, wanted: bool| format!("&{name}={}", u8::from(wanted));
    let query = [
        flag("stdin", streams.stdin),
        flag("stdout", streams.stdout),
        flag("stderr", streams.stderr),
        format!("&detachKeys={NEVER_TYPED}"),
    ];
    let path = path::container(id, "/attach?stream=1")? + &query.concat();
    let stream = client.hijack(Call::post(path)).await?;
    let control = Arc::new(AttachControl {
        client: Arc::clone(client),
        resize: path::container(id, "/resize")?,
        tty,
    });
    let source = Source::Container(id.to_owned());
    Ok(session(client, stream, streams, source, control))
}

fn session(
    client: &Arc<Client>,
    stream: TokioIo<Upgraded>,
    streams: StreamSpec,
    source: Source,
    control: Arc<dyn SessionControl>,
) -> Session {
    let (read, write) = tokio::io::split(stream);
    let form = if streams.tty {
        Form::Plain
    } else {
        Form::Framed
    };
    let output = Pump::start(Arc::clone(client), Frames::new(read, form), source);
    Session {
        stdin: streams.stdin.then(|| -> Stdin { Box::pin(write) }),
        output: Box::pin(output),
        control,
    }
}

/// Input of a terminal: it has no end of its own (a user types ctrl-d), and an engine that is told of one cuts the output off.
struct TerminalInput(Stdin);

impl AsyncWrite for TerminalInput {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.as_mut().poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

struct ExecControl {
    client: Arc<Client>,
    exec: String,
    tty: bool,
    /// Dropped with the session, it ends the command in the background.
    guard: Mutex<Option<Guard>>,
    /// Counts them: an older size is not tried again once a newer one came.
    resizes: AtomicU64,
}

impl ExecControl {
    fn guard(&self) -> Option<Guard> {
        self.guard
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

#[async_trait]
impl SessionControl for ExecControl {
    /// A client's first size comes while the terminal is still being made, and engines refuse it then: it is tried again.
    async fn resize(&self, width: u16, height: u16) -> Result<(), EngineError> {
        if !self.tty || width == 0 || height == 0 {
            return Ok(());
        }
        let turn = self.resizes.fetch_add(1, Ordering::AcqRel) + 1;
        let path = format!("/exec/{}/resize", self.exec);
        let mut pause = Duration::from_millis(10);
        while !resize(&self.client, &path, width, height).await? {
            let ended = match exec::inspect(&self.client, &self.exec).await {
                Err(EngineError::NotFound(_)) => true,
                state => state?.exit_code.is_some(),
            };
            let newer = self.resizes.load(Ordering::Acquire) != turn;
            if ended || newer || pause > Duration::from_secs(1) {
                break;
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        Ok(())
    }

    async fn exit_code(&self) -> Result<i32, EngineError> {
        let state = exec::ended(&self.client, &self.exec).await?;
        if let Some(mut guard) = self.guard() {
            guard.has_ended();
        }
        Ok(state.exit_code.unwrap_or_default())
    }

    async fn abandon(&self) {
        if let Some(guard) = self.guard() {
            guard.end().await;
        }
    }
}

struct AttachControl {
    client: Arc<Client>,
    resize: String,
    tty: bool,
}

#[async_trait]
impl SessionControl for AttachControl {
    async fn resize(&self, width: u16, height: u16) -> Result<(), EngineError> {
        if self.tty && width > 0 && height > 0 {
            resize(&self.client, &self.resize, width, height).await?;
        }
        Ok(())
    }

    async fn exit_code(&self) -> Result<i32, EngineError> {
        Ok(0)
    }

    async fn abandon(&self) {}
}

/// Asks for a size; whether the engine took it.
async fn resize(client: &Client, path: &str, width: u16, height: u16) -> Result<bool, EngineError> {
    let call = Call::post(format!("{path}?h={height}&w={width}")).within(Some(READ));
    match client.call(call).await {
        Ok(_) => Ok(true),
        Err(error @ (EngineError::Unreachable { .. } | EngineError::Timeout { .. })) => Err(error),
        Err(error) => {
            tracing::debug!(path, %error, "a terminal's size was refused");
            Ok(false)
        }
    }
}
