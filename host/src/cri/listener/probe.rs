//! Asks who serves the CRI on a socket: for doctor, which is outside the daemon.
//!
//! Owns the client calls that we make of our own protocol. It must not know what is made of the answer. It fails at nothing:
//! whatever happens is an [`Answer`], within the time given.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cri_api::runtime::v1::runtime_service_client::RuntimeServiceClient;
use cri_api::runtime::v1::{StatusRequest, StatusResponse, VersionRequest};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint};

/// Who serves there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A daemon of ours.
    Springline {
        /// Its version.
        version: String,
        /// Its conditions that are not met, each with why.
        unready: Vec<String>,
    },
    /// Another runtime, by its own words.
    Another {
        /// Its name.
        name: String,
        /// Its version.
        version: String,
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

/// Asks, for as long as `within`.
pub async fn ask(socket: &Path, within: Duration) -> Answer {
    match UnixStream::connect(socket).await {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Answer::Nobody,
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Answer::Nobody,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Answer::Forbidden,
        Err(error) => return Answer::Strange(error.to_string()),
    }
    let answer = async {
        let channel = connect(socket.to_path_buf()).await;
        who(RuntimeServiceClient::new(channel?)).await
    };
    match tokio::time::timeout(within, answer).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(strange)) => Answer::Strange(strange),
        Err(_) => Answer::Silent,
    }
}

async fn connect(socket: PathBuf) -> Result<Channel, String> {
    // The name in the address goes nowhere: the connector has the socket.
    Endpoint::from_static("http://springline")
        .connect_with_connector(tower::service_fn(move |_| {
            let socket = socket.clone();
            async move { UnixStream::connect(socket).await.map(TokioIo::new) }
        }))
        .await
        .map_err(|error| error.to_string())
}

/// Version alone does not tell: every adapter for Docker calls itself `docker` there, as container IDs in the cluster begin
/// with that.
async fn who(mut client: RuntimeServiceClient<Channel>) -> Result<Answer, String> {
    let verbose = StatusRequest { verbose: true };
    if let Ok(status) = client.status(verbose).await
        && let Some(ours) = springline(status.get_ref())
    {
        return Ok(ours);
    }
    let version = client.version(VersionRequest::default()).await;
    let version = version
        .map_err(|status| format!("{:?}: {}", status.code(), status.message()))?
        .into_inner();
    Ok(Answer::Another {
        name: version.runtime_name,
        version: version.runtime_version,
    })
}

/// What a verbose status says if it is one of ours.
fn springline(status: &StatusResponse) -> Option<Answer> {
    let version: serde_json::Value = serde_json::from_str(status.info.get("version")?).ok()?;
    let version = version.get("springline")?.as_str()?.to_owned();
    let conditions = status.status.iter().flat_map(|status| &status.conditions);
    let unready = conditions.filter(|condition| !condition.status);
    Some(Answer::Springline {
        version,
        unready: unready
            .map(|condition| {
                let why = [&condition.message, &condition.reason];
                let why = why.into_iter().find(|words| !words.is_empty());
                let why = why.map_or("no reason given", String::as_str);
                format!("{} is false: {why}", condition.r#type)
            })
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    use cri_api::runtime::v1::{RuntimeCondition, RuntimeStatus};

    #[test]
    fn our_own_status() {
        let condition = |name: &str, status, reason: &str, message: &str| RuntimeCondition {
            r#type: name.into(),
            status,
            reason: reason.into(),
            message: message.into(),
        };
        let status = |info: &[(&str, &str)], conditions| StatusResponse {
            status: Some(RuntimeStatus { conditions }),
            info: info
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect(),
            ..StatusResponse::default()
        };
        let ours = ("version", r#"{"springline": "0.1.0"}"#);
        let cases = [
            ("ready", status(&[ours], vec![]), Some(vec![])),
            (
                "not ready",
                status(
                    &[ours],
                    vec![
                        condition("RuntimeReady", false, "Gone", "no engine"),
                        condition("NetworkReady", true, "", ""),
                        condition("Other", false, "", ""),
                    ],
                ),
                Some(vec![
                    "RuntimeReady is false: no engine".to_owned(),
                    "Other is false: no reason given".to_owned(),
                ]),
            ),
            ("no info", status(&[], vec![]), None),
            ("other info", status(&[("version", "2.1")], vec![]), None),
            (
                "no text",
                status(&[("version", r#"{"springline": 1}"#)], vec![]),
                None,
            ),
        ];
        for (name, status, unready) in cases {
            let expected = unready.map(|unready| Answer::Springline {
                version: "0.1.0".into(),
                unready,
            });
            assert_eq!(springline(&status), expected, "{name}");
        }
    }

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
