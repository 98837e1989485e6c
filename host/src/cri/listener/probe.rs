//! Asks who serves the CRI on a socket: for doctor, which is outside the daemon.
//!
//! Owns the one client call that we make of our own protocol. It must not know what is made of the answer. It fails at
//! nothing: whatever happens is an [`Answer`], within the time given.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cri_api::runtime::v1::VersionRequest;
use cri_api::runtime::v1::runtime_service_client::RuntimeServiceClient;
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tonic::transport::Endpoint;

/// Who serves there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A runtime, by its own words.
    Serves {
        /// Its name.
        name: String,
        /// Its version.
        version: String,
        /// The CRI version that it speaks.
        cri: String,
    },
    /// Nobody.
    Nobody,
    /// We may not ask.
    Forbidden,
    /// Somebody takes connections and does not answer.
    Silent,
    /// Somebody whose answer is no CRI.
    Strange(String),
}

/// Asks for the version, for as long as `within`.
pub async fn ask(socket: &Path, within: Duration) -> Answer {
    match UnixStream::connect(socket).await {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Answer::Nobody,
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Answer::Nobody,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Answer::Forbidden,
        Err(error) => return Answer::Strange(error.to_string()),
    }
    tokio::time::timeout(within, version(socket.to_path_buf()))
        .await
        .unwrap_or(Answer::Silent)
}

async fn version(socket: PathBuf) -> Answer {
    // The name in the address goes nowhere: the connector has the socket.
    let connected = Endpoint::from_static("http://springline")
        .connect_with_connector(tower::service_fn(move |_| {
            let socket = socket.clone();
            async move { UnixStream::connect(socket).await.map(TokioIo::new) }
        }))
        .await;
    let channel = match connected {
        Ok(channel) => channel,
        Err(error) => return Answer::Strange(error.to_string()),
    };
    let mut client = RuntimeServiceClient::new(channel);
    match client.version(VersionRequest::default()).await {
        Ok(answer) => {
            let answer = answer.into_inner();
            Answer::Serves {
                name: answer.runtime_name,
                version: answer.runtime_version,
                cri: answer.runtime_api_version,
            }
        }
        Err(status) => Answer::Strange(status.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn nobody_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.sock");
        assert_eq!(ask(&path, LONG).await, Answer::Nobody, "no socket");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert_eq!(ask(&path, LONG).await, Answer::Nobody, "a stale one");
    }

    #[tokio::test]
    async fn somebody_who_does_not_answer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.sock");
        let _listens = tokio::net::UnixListener::bind(&path).unwrap();
        assert_eq!(ask(&path, Duration::from_millis(50)).await, Answer::Silent);
    }

    #[tokio::test]
    async fn somebody_who_speaks_otherwise() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.sock");
        let listener = tokio::net::UnixListener::bind(&path).unwrap();
        let hangs_up = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                drop(stream);
            }
        });
        let answer = ask(&path, LONG).await;
        assert!(matches!(answer, Answer::Strange(_)), "{answer:?}");
        hangs_up.abort();
    }
}
