//! A fake streaming server that hands out URLs, and a fake way into pods.

use std::io;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use springline::error::Error;
use springline::runtime::ports::{ExecSpec, PodDialer, StreamSpec, StreamUrls};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

use super::script::{Script, Verdict};

/// What a URL was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// To run a command in a container.
    Exec(String, ExecSpec),
    /// To attach to a container.
    Attach(String, StreamSpec),
    /// To forward ports of a sandbox.
    PortForward(String, Vec<u16>),
}

/// The fake of both.
pub struct FakeStreams {
    script: Script,
    asked: Mutex<Vec<Asked>>,
}

impl FakeStreams {
    /// Nobody has asked yet; behind [`FakeStreams::OPEN_PORT`] of every pod somebody says `ahoy` and hangs up.
    pub fn new(script: Script) -> Self {
        Self {
            script,
            asked: Mutex::default(),
        }
    }

    /// The one port that answers.
    pub const OPEN_PORT: u16 = 8080;

    /// What was asked for so far; URL n was given for the nth.
    pub fn asked(&self) -> Vec<Asked> {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Asked>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn url(&self, asked: Asked) -> Result<String, Error> {
        let mut all = self.lock();
        all.push(asked);
        Ok(format!("http://streams.test/{}", all.len() - 1))
    }
}

impl StreamUrls for FakeStreams {
    fn exec(&self, container_id: &str, spec: ExecSpec) -> Result<String, Error> {
        self.url(Asked::Exec(container_id.to_owned(), spec))
    }

    fn attach(&self, container_id: &str, streams: StreamSpec) -> Result<String, Error> {
        self.url(Asked::Attach(container_id.to_owned(), streams))
    }

    fn port_forward(&self, sandbox_id: &str, ports: Vec<u16>) -> Result<String, Error> {
        self.url(Asked::PortForward(sandbox_id.to_owned(), ports))
    }
}

#[async_trait]
impl PodDialer for FakeStreams {
    async fn dial(&self, pid: u32, port: u16) -> io::Result<TcpStream> {
        let place = format!("{pid}:{port}");
        match self.script.enter("dialer.dial", &place).await {
            Verdict::Go if pid > 0 && port == Self::OPEN_PORT => {}
            _ => return Err(io::ErrorKind::ConnectionRefused.into()),
        }
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let client = TcpStream::connect(listener.local_addr()?).await?;
        let (mut server, _) = listener.accept().await?;
        server.write_all(b"ahoy").await?;
        Ok(client)
    }
}
