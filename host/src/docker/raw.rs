//! One HTTP call to the engine, as plain as it gets: a method, a path, a body as it is, an answer as it is.
//!
//! Exists because the create body is the draft's own JSON, which no typed client can carry, and because answers are read
//! leniently by types of ours. Knows nothing of what is asked. Each call dials; its connection ends with it, so dropping the
//! future ends the call on the wire too. An answer's body is bounded.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, HOST, HeaderValue, UPGRADE};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body, Incoming};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::task::JoinHandle;

use super::client::Wire;
use super::error;
use crate::runtime::ports::{EngineError, Version};

/// Most bytes of an answer that is read as a whole. A list of 10,000 containers is some 20 MB.
const MOST_BYTES: usize = 128 << 20;

/// How long a call that only reads may take.
pub(super) const READ: Duration = Duration::from_secs(10);
/// How long a call that changes something may take; the caller's deadline is mostly shorter.
pub(super) const WRITE: Duration = Duration::from_secs(120);

/// A call to make.
#[derive(Debug, Clone)]
pub(super) struct Call {
    method: Method,
    path: String,
    body: Bytes,
    content_type: Option<&'static str>,
    registry_auth: Option<HeaderValue>,
    /// `None`: it ends when the engine ends it.
    pub(super) deadline: Option<Duration>,
}

impl Call {
    fn new(method: Method, path: impl Into<String>, deadline: Duration) -> Self {
        Self {
            method,
            path: path.into(),
            body: Bytes::new(),
            content_type: None,
            registry_auth: None,
            deadline: Some(deadline),
        }
    }

    pub(super) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path, READ)
    }

    pub(super) fn post(path: impl Into<String>) -> Self {
        Self::new(Method::POST, path, WRITE)
    }

    pub(super) fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path, WRITE)
    }

    pub(super) fn json(self, body: &serde_json::Value) -> Self {
        self.bytes("application/json", body.to_string().into())
    }

    pub(super) fn bytes(mut self, content_type: &'static str, body: Bytes) -> Self {
        self.content_type = Some(content_type);
        self.body = body;
        self
    }

    pub(super) fn registry_auth(mut self, auth: Option<HeaderValue>) -> Self {
        self.registry_auth = auth;
        self
    }

    pub(super) fn within(mut self, deadline: Option<Duration>) -> Self {
        self.deadline = deadline;
        self
    }

    fn request(
        &self,
        version: Option<Version>,
        host: &str,
    ) -> Result<Request<Full<Bytes>>, http::Error> {
        let path = match version {
            Some(version) => format!("/v{version}{}", self.path),
            None => self.path.clone(),
        };
        let mut request = Request::builder()
            .method(self.method.clone())
            .uri(path)
            .header(HOST, host);
        if let Some(content_type) = self.content_type {
            request = request.header(CONTENT_TYPE, content_type);
        }
        if let Some(auth) = &self.registry_auth {
            request = request.header("X-Registry-Auth", auth);
        }
        request.body(Full::new(self.body.clone()))
    }
}

/// An answer, read whole.
#[derive(Debug)]
pub(super) struct Reply {
    /// What it says.
    pub(super) body: Bytes,
}

/// The task that moves a connection's bytes; dropping this closes the connection.
pub(super) struct Connection(Option<JoinHandle<()>>);

impl Connection {
    /// Leaves the connection to whoever holds the answer.
    pub(super) fn detach(mut self) {
        self.0.take();
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

/// An answer whose body is still to be read.
pub(super) struct Open {
    pub(super) body: Incoming,
    pub(super) connection: Connection,
}

/// Sends `request`, whose URI must be a path, on a connection of its own.
pub(super) async fn send<B>(
    wire: &Wire,
    request: Request<B>,
) -> Result<(Response<Incoming>, Connection), EngineError>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let stream = wire.dial().await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|e| wire.broke(error::hyper(&wire.endpoint, &e)))?;
    let task = tokio::spawn(async move {
        // Its error is the request's error too.
        let _ = connection.with_upgrades().await;
    });
    let connection = Connection(Some(task));
    let response = sender
        .send_request(request)
        .await
        .map_err(|e| wire.broke(error::hyper(&wire.endpoint, &e)))?;
    Ok((response, connection))
}

/// Makes `call` at API `version` (none: the engine's own choice); an answer of 2xx or 304 is left unread.
pub(super) async fn open(
    wire: &Wire,
    call: &Call,
    version: Option<Version>,
) -> Result<Open, EngineError> {
    let request = call
        .request(version, wire.endpoint.host())
        .map_err(|e| EngineError::BadRequest(format!("{}: {e}", call.path)))?;
    let (response, connection) = send(wire, request).await?;
    let status = response.status().as_u16();
    if (200..300).contains(&status) || status == 304 {
        let body = response.into_body();
        return Ok(Open { body, connection });
    }
    Err(refusal(wire, response, version).await)
}

/// Makes `call` at API `version` and takes its connection over, for bytes both ways. What is written to it may be shut down
/// alone: reading goes on.
pub(super) async fn hijack(
    wire: &Wire,
    call: &Call,
    version: Option<Version>,
) -> Result<TokioIo<Upgraded>, EngineError> {
    let mut request = call
        .request(version, wire.endpoint.host())
        .map_err(|e| EngineError::BadRequest(format!("{}: {e}", call.path)))?;
    let headers = request.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("tcp"));
    let (response, connection) = send(wire, request).await?;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        let upgraded = hyper::upgrade::on(response)
            .await
            .map_err(|e| wire.broke(error::hyper(&wire.endpoint, &e)))?;
        // Its task has handed the bytes over and is done.
        connection.detach();
        return Ok(TokioIo::new(upgraded));
    }
    if response.status().is_success() {
        return Err(EngineError::Garbled(
            "a stream on a connection that was not upgraded".to_owned(),
        ));
    }
    Err(refusal(wire, response, version).await)
}

/// The error that an answer other than success means.
async fn refusal(
    wire: &Wire,
    response: Response<Incoming>,
    version: Option<Version>,
) -> EngineError {
    let status = response.status().as_u16();
    if let (400, Some(asked), Some(told)) = (status, version, api_version(&response))
        && told < asked
    {
        wire.forget();
    }
    match read(wire, response.into_body()).await {
        Ok(body) => error::status(status, &body),
        Err(error) => error,
    }
}

/// Makes `call` and reads its answer.
pub(super) async fn call(
    wire: &Wire,
    call: &Call,
    version: Option<Version>,
) -> Result<Reply, EngineError> {
    let open = open(wire, call, version).await?;
    let body = read(wire, open.body).await?;
    Ok(Reply { body })
}

async fn read(wire: &Wire, body: Incoming) -> Result<Bytes, EngineError> {
    match Limited::new(body, MOST_BYTES).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(e) if e.is::<LengthLimitError>() => Err(EngineError::Garbled(format!(
            "an answer of more than {MOST_BYTES} bytes"
        ))),
        Err(e) => Err(wire.broke(match e.downcast_ref::<hyper::Error>() {
            Some(e) => error::hyper(&wire.endpoint, e),
            None => wire.endpoint.unreachable(e),
        })),
    }
}

/// The newest API that the answering engine says it has.
fn api_version<B>(response: &Response<B>) -> Option<Version> {
    super::facts::version(response.headers().get("Api-Version")?.to_str().ok()?)
}
