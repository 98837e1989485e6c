//! Where the engine listens, and dialling it.
//!
//! Each dial also notes who listens (the socket's peer process): a different one means another engine, of which nothing is
//! known yet. Knows nothing of HTTP. A failed dial is [`EngineError::Unreachable`].

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use crate::runtime::ports::EngineError;

/// An engine's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Endpoint {
    /// A unix socket.
    Unix(PathBuf),
    /// `host:port`, plain HTTP.
    Tcp(String),
}

/// A byte stream to the engine.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A dialled connection.
pub(super) struct Dialled {
    /// The bytes.
    pub(super) stream: Box<dyn Stream>,
    /// Process that listens there, where the kernel says so.
    pub(super) peer: Option<i32>,
}

impl FromStr for Endpoint {
    type Err = EngineError;

    fn from_str(text: &str) -> Result<Self, EngineError> {
        let unix = |path: &str| {
            path.starts_with('/')
                .then(|| Self::Unix(PathBuf::from(path)))
        };
        let tcp = |address: &str| {
            let address = address.trim_end_matches('/');
            let (host, port) = address.rsplit_once(':')?;
            port.parse::<u16>().ok()?;
            (!host.is_empty() && !host.contains('/')).then(|| Self::Tcp(address.to_owned()))
        };
        let parsed = match text.split_once("://") {
            Some(("unix", path)) => unix(path),
            Some(("tcp" | "http", address)) => tcp(address),
            Some(_) => None,
            None => unix(text),
        };
        parsed.ok_or_else(|| {
            EngineError::BadRequest(format!(
                "engine endpoint {text:?} is neither unix:///path/of/socket nor tcp://host:port"
            ))
        })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp://{address}"),
        }
    }
}

impl Endpoint {
    /// What to say in the `Host` header.
    pub(super) fn host(&self) -> &str {
        match self {
            Self::Unix(_) => "localhost",
            Self::Tcp(address) => address,
        }
    }

    /// Connects.
    pub(super) async fn dial(&self) -> Result<Dialled, EngineError> {
        let dialled = match self {
            Self::Unix(path) => UnixStream::connect(path).await.map(|stream| Dialled {
                peer: stream.peer_cred().ok().and_then(|cred| cred.pid()),
                stream: Box::new(stream),
            }),
            Self::Tcp(address) => TcpStream::connect(address).await.and_then(|stream| {
                stream.set_nodelay(true)?;
                Ok(Dialled {
                    peer: None,
                    stream: Box::new(stream),
                })
            }),
        };
        dialled.map_err(|error| self.unreachable(error))
    }

    /// The error of a connection that could not be made, or broke.
    pub(super) fn unreachable(&self, reason: impl fmt::Display) -> EngineError {
        EngineError::Unreachable {
            endpoint: self.to_string(),
            reason: reason.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_have_two_forms() {
        for (name, text, want) in [
            ("unix", "unix:///run/d.sock", Some("unix:///run/d.sock")),
            ("plain path", "/run/d.sock", Some("unix:///run/d.sock")),
            ("tcp", "tcp://127.0.0.1:2375", Some("tcp://127.0.0.1:2375")),
            ("http", "http://h:1/", Some("tcp://h:1")),
            ("IPv6", "tcp://[::1]:2375", Some("tcp://[::1]:2375")),
            ("relative", "unix://run/d.sock", None),
            ("no port", "tcp://host", None),
            ("TLS", "https://host:2376", None),
            ("named pipe", "npipe:////./pipe/docker_engine", None),
            ("empty", "", None),
        ] {
            let got = text.parse::<Endpoint>().map(|e| e.to_string()).ok();
            assert_eq!(got.as_deref(), want, "{name}");
        }
    }
}
