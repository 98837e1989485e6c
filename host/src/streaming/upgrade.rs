//! A client's HTTP request: who is it (its token), what does it speak, and over to the session.
//!
//! Answers are those of the kubelet: 404 for a token that is unknown, used or too old, 403 when no protocol is common, 400 when
//! it is no upgrade. A token is used up by the first request that shows it, whatever becomes of it.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONNECTION, HeaderName, HeaderValue, UPGRADE};
use http::{HeaderMap, Method, StatusCode};
use http_body_util::Full;
use hyper::upgrade::OnUpgrade;
use hyper::{Request, Response, body};
use hyper_util::rt::TokioIo;
use tokio::sync::OwnedSemaphorePermit;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_util::task::TaskTracker;

use super::protocol::{self, Codec, Forward, Version};
use super::server::StreamingServer;
use super::session::{self, Around, Command};
use super::socket::Socket;

type Answer = Response<Full<Bytes>>;
type Refused = Box<Answer>;

const PROTOCOLS: HeaderName = HeaderName::from_static("x-stream-protocol-version");
const ACCEPTED: HeaderName = HeaderName::from_static("x-accepted-stream-protocol-versions");
const WEBSOCKET_PROTOCOLS: HeaderName = HeaderName::from_static("sec-websocket-protocol");

/// What the client and we agreed on.
enum Agreed {
    SpdyCommand(Command, Version),
    WebSocketCommand(Command, Version, Codec),
    SpdyForward(String),
    WebSocketForward(String, Vec<u16>, Forward),
}

/// Answers one request. When it is an upgrade, the session begins on its own as soon as the answer is sent.
pub(super) async fn answer(
    server: Arc<StreamingServer>,
    around: Arc<Around>,
    sessions: TaskTracker,
    mut request: Request<body::Incoming>,
) -> Result<Answer, Infallible> {
    let asked = match take_request(&server, &request) {
        Ok(asked) => asked,
        Err(refused) => return Ok(*refused),
    };
    let Ok(slot) = Arc::clone(&server.sessions).try_acquire_owned() else {
        let words = "too many streaming sessions run already";
        return Ok(*refuse(StatusCode::SERVICE_UNAVAILABLE, words));
    };
    let (agreed, response) = match agree(asked, request.headers()) {
        Ok(agreed) => agreed,
        Err(refused) => return Ok(*refused),
    };
    let upgrade = hyper::upgrade::on(&mut request);
    sessions.spawn(begin(upgrade, agreed, around, slot));
    Ok(response)
}

fn take_request(
    server: &StreamingServer,
    request: &Request<body::Incoming>,
) -> Result<session::Request, Refused> {
    if !matches!(*request.method(), Method::GET | Method::POST) {
        let words = "only GET and POST begin a stream";
        return Err(refuse(StatusCode::METHOD_NOT_ALLOWED, words));
    }
    let unknown = || refuse(StatusCode::NOT_FOUND, "no such streaming request");
    let (verb, token) = request
        .uri()
        .path()
        .strip_prefix('/')
        .and_then(|path| path.split_once('/'))
        .ok_or_else(unknown)?;
    let asked = server.tokens.take(token).ok_or_else(unknown)?;
    if asked.verb() == verb {
        Ok(asked)
    } else {
        Err(unknown())
    }
}

fn agree(asked: session::Request, headers: &HeaderMap) -> Result<(Agreed, Answer), Refused> {
    let upgrades = names(headers, &CONNECTION);
    let to = names(headers, &UPGRADE);
    let asks = |name: &str| to.iter().any(|asked| asked.eq_ignore_ascii_case(name));
    if !upgrades.iter().any(|n| n.eq_ignore_ascii_case("upgrade")) {
        let words = "this is a stream: ask to upgrade the connection";
        return Err(refuse(StatusCode::BAD_REQUEST, words));
    }
    if asks("websocket") {
        websocket(asked, headers)
    } else if asks("spdy/3.1") {
        spdy(asked, headers)
    } else {
        let words = "upgrade to SPDY/3.1 or websocket";
        Err(refuse(StatusCode::BAD_REQUEST, words))
    }
}

fn spdy(asked: session::Request, headers: &HeaderMap) -> Result<(Agreed, Answer), Refused> {
    let mut offered = names(headers, &PROTOCOLS);
    let (agreed, name) = match command(asked) {
        Ok(command) => {
            if offered.is_empty() {
                offered.push("channel.k8s.io".to_owned()); // clients older than the header
            }
            let (name, version) = common(&offered, protocol::SPDY_COMMAND)?;
            (Agreed::SpdyCommand(command, version), name)
        }
        Err((sandbox, _)) => {
            if offered.is_empty() {
                offered.push("portforward.k8s.io".to_owned());
            }
            let (name, ()) = common(&offered, protocol::SPDY_FORWARD)?;
            (Agreed::SpdyForward(sandbox), name)
        }
    };
    let mut response = switch("SPDY/3.1");
    response
        .headers_mut()
        .insert(PROTOCOLS, HeaderValue::from_static(name));
    Ok((agreed, response))
}

fn websocket(asked: session::Request, headers: &HeaderMap) -> Result<(Agreed, Answer), Refused> {
    let wrong = |words| refuse(StatusCode::BAD_REQUEST, words);
    let version = headers.get("sec-websocket-version");
    if version.is_none_or(|version| version != "13") {
        return Err(wrong("WebSocket's version must be 13"));
    }
    let key = headers
        .get("sec-websocket-key")
        .ok_or_else(|| wrong("Sec-WebSocket-Key is missing"))?;
    let accept = HeaderValue::try_from(derive_accept_key(key.as_bytes()))
        .map_err(|_| wrong("Sec-WebSocket-Key is unusable"))?;
    let mut offered = names(headers, &WEBSOCKET_PROTOCOLS);
    if offered.is_empty() {
        offered.push(String::new());
    }
    let (agreed, name) = match command(asked) {
        Ok(command) => {
            let (name, (version, codec)) = common(&offered, protocol::WEBSOCKET_COMMAND)?;
            (Agreed::WebSocketCommand(command, version, codec), name)
        }
        Err((sandbox, ports)) => {
            let (name, how) = common(&offered, protocol::WEBSOCKET_FORWARD)?;
            if how != Forward::Tunnel && (ports.is_empty() || ports.len() > 64) {
                let words =
                    "port-forward over WebSocket channels needs 1 to 64 ports in its request";
                return Err(wrong(words));
            }
            (Agreed::WebSocketForward(sandbox, ports, how), name)
        }
    };
    let mut response = switch("websocket");
    let headers = response.headers_mut();
    headers.insert("sec-websocket-accept", accept);
    if !name.is_empty() {
        headers.insert(WEBSOCKET_PROTOCOLS, HeaderValue::from_static(name));
    }
    Ok((agreed, response))
}

/// A command, or else a sandbox and its ports.
fn command(asked: session::Request) -> Result<Command, (String, Vec<u16>)> {
    match asked {
        session::Request::Exec { container, spec } => Ok(Command::Exec { container, spec }),
        session::Request::Attach { container, streams } => {
            Ok(Command::Attach { container, streams })
        }
        session::Request::PortForward { sandbox, ports } => Err((sandbox, ports)),
    }
}

fn common<T: Copy>(
    offered: &[String],
    known: &[(&'static str, T)],
) -> Result<(&'static str, T), Refused> {
    protocol::choose(offered, known).ok_or_else(|| {
        let words = format!("no protocol in common: the client offers {offered:?}");
        let mut refused = refuse(StatusCode::FORBIDDEN, words);
        for (name, _) in known {
            refused
                .headers_mut()
                .append(ACCEPTED, HeaderValue::from_static(name));
        }
        refused
    })
}

/// The names in a header that may hold several, several times.
fn names(headers: &HeaderMap, header: &HeaderName) -> Vec<String> {
    headers
        .get_all(header)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .collect()
}

fn switch(to: &'static str) -> Answer {
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static(to));
    response
}

fn refuse(status: StatusCode, words: impl Into<String>) -> Refused {
    let mut words: String = words.into();
    words.push('\n');
    let mut response = Response::new(Full::from(words));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    headers.insert(
        http::header::CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    Box::new(response)
}

async fn begin(
    upgrade: OnUpgrade,
    agreed: Agreed,
    around: Arc<Around>,
    _slot: OwnedSemaphorePermit,
) {
    let upgraded = match upgrade.await {
        Ok(upgraded) => upgraded,
        Err(error) => return tracing::debug!(%error, "a client left before its session began"),
    };
    let Ok(parts) = upgraded.downcast::<TokioIo<Socket>>() else {
        return tracing::error!("an upgraded connection is not one of ours");
    };
    let mut socket = parts.io.into_inner();
    socket.unread(parts.read_buf);
    let around = around.as_ref();
    match agreed {
        Agreed::SpdyCommand(command, version) => {
            session::spdy_command(around, socket, command, version).await;
        }
        Agreed::WebSocketCommand(command, version, codec) => {
            session::websocket_command(around, socket, command, version, codec).await;
        }
        Agreed::SpdyForward(sandbox) => {
            session::spdy_forward(around, socket, sandbox, false).await;
        }
        Agreed::WebSocketForward(sandbox, ports, how) => {
            session::websocket_forward(around, socket, sandbox, &ports, how).await;
        }
    }
}
