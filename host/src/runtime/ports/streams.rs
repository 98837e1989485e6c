//! Live sessions with processes and ports, as the verbs and the streaming server see them.

use std::io;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::Stream;
use tokio::io::AsyncWrite;
use tokio::net::TcpStream;

use super::engine::EngineError;
use crate::error::Error;

/// A command to run in a container with live streams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecSpec {
    /// The command and its arguments; not empty.
    pub cmd: Vec<String>,
    /// Which streams, and whether through a terminal.
    pub streams: StreamSpec,
}

/// Which streams are wanted. With a terminal there is no stderr of its own (CRI).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StreamSpec {
    /// Input.
    pub stdin: bool,
    /// Output.
    pub stdout: bool,
    /// Error output.
    pub stderr: bool,
    /// Through a terminal.
    pub tty: bool,
}

/// A piece of what a process wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// To its standard output, or to its terminal.
    Stdout(Bytes),
    /// To its standard error.
    Stderr(Bytes),
}

/// A live process's streams.
///
/// Output is pulled: nothing is read from the engine while nobody polls, so a slow client slows the process and grows no
/// memory. Dropping a session closes its connection to the engine.
pub struct Session {
    /// Its input, if asked for; shutting it down is the end of input for the process, while output goes on.
    pub stdin: Option<Pin<Box<dyn AsyncWrite + Send>>>,
    /// Its output to the end.
    pub output: Pin<Box<dyn Stream<Item = io::Result<Output>> + Send>>,
    /// The rest.
    pub control: Arc<dyn SessionControl>,
}

/// What can be done to a live process beside its streams.
#[async_trait]
pub trait SessionControl: Send + Sync {
    /// Gives its terminal a size in characters; without a terminal it is fine and does nothing.
    async fn resize(&self, width: u16, height: u16) -> Result<(), EngineError>;
    /// Waits for its end and gives its exit code. For attach: 0 at once, since the process is not the session's.
    async fn exit_code(&self) -> Result<i32, EngineError>;
    /// The client has gone: ends what the session started, where the engine allows it. An attached process is left alone.
    async fn abandon(&self);
}

/// Connects to ports inside sandboxes.
#[async_trait]
pub trait PodDialer: Send + Sync {
    /// Connects to `port` on the loopback addresses of the network namespace of process `pid`, IPv4 first, then IPv6.
    async fn dial(&self, pid: u32, port: u16) -> io::Result<TcpStream>;
}

/// What the streaming server asks for when a client has come with its token.
#[async_trait]
pub trait StreamBackend: Send + Sync {
    /// Runs a command.
    async fn exec(&self, container_id: &str, spec: &ExecSpec) -> Result<Session, Error>;
    /// Attaches to the container's own process.
    async fn attach(&self, container_id: &str, streams: StreamSpec) -> Result<Session, Error>;
    /// Connects to a port of a pod sandbox.
    async fn dial(&self, sandbox_id: &str, port: u16) -> Result<TcpStream, Error>;
}

/// The streaming server as the front sees it: requests become one-time URLs.
pub trait StreamUrls: Send + Sync {
    /// A URL that runs the command once.
    ///
    /// # Errors
    /// [`Error::Exhausted`] when too many tokens wait for their clients.
    fn exec(&self, container_id: &str, spec: ExecSpec) -> Result<String, Error>;
    /// A URL that attaches once.
    ///
    /// # Errors
    /// As [`StreamUrls::exec`].
    fn attach(&self, container_id: &str, streams: StreamSpec) -> Result<String, Error>;
    /// A URL that forwards ports for one session.
    ///
    /// # Errors
    /// As [`StreamUrls::exec`].
    fn port_forward(&self, sandbox_id: &str, ports: Vec<u16>) -> Result<String, Error>;
}
