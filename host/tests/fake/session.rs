//! Live sessions of the fake engine: they say what its commands say, and take any input.

use std::io;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use springline::runtime::ports::{EngineError, Output, Session, SessionControl, StreamSpec};
use tokio::io::AsyncWrite;

use super::engine::Exec;

struct Control(Option<i32>);

#[async_trait]
impl SessionControl for Control {
    async fn resize(&self, _: u16, _: u16) -> Result<(), EngineError> {
        Ok(())
    }

    async fn exit_code(&self) -> Result<i32, EngineError> {
        match self.0 {
            Some(code) => Ok(code),
            None => std::future::pending().await,
        }
    }

    async fn abandon(&self) {}
}

/// A session with these streams and a process that does this.
pub fn session(streams: StreamSpec, exec: Exec) -> Session {
    let sink = || -> Pin<Box<dyn AsyncWrite + Send>> { Box::pin(tokio::io::sink()) };
    let stdin = streams.stdin.then(sink);
    match exec {
        Exec::Forever => Session {
            stdin,
            output: Box::pin(stream::pending()),
            control: Arc::new(Control(None)),
        },
        Exec::Answer(output) => {
            let stdout = streams.stdout.then(|| Output::Stdout(output.stdout.into()));
            let stderr = streams.stderr.then(|| Output::Stderr(output.stderr.into()));
            let pieces = stdout.into_iter().chain(stderr);
            Session {
                stdin,
                output: Box::pin(stream::iter(pieces).map(io::Result::Ok)),
                control: Arc::new(Control(Some(output.exit_code))),
            }
        }
    }
}
