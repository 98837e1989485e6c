//! A registry on this node's loopback, as small as an engine lets one be: it serves one image, open or behind a password.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::archive::{Image, MANIFEST, digest};

/// Its user.
pub const USER: &str = "someone";
/// Its password: in the plain alphabet of base64 this gives `+` and `/`.
pub const PASSWORD: &str = "~~~???>>>";
const BASIC: &str = "Basic c29tZW9uZTp+fn4/Pz8+Pj4=";

/// The registry; it ends with this.
pub struct Registry {
    address: SocketAddr,
    state: Arc<State>,
    task: JoinHandle<()>,
}

struct State {
    image: Image,
    password: bool,
    asked: Mutex<Vec<String>>,
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Registry {
    /// Serves `app` with the tags `1` and `latest`.
    pub async fn new(content: &str, password: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            image: Image::small(content),
            password,
            asked: Mutex::default(),
        });
        let task = tokio::spawn(serve(listener, Arc::clone(&state)));
        Self {
            address,
            state,
            task,
        }
    }

    /// `127.0.0.1:port/<name>`.
    pub fn reference(&self, name: &str) -> String {
        format!("{}/{name}", self.address)
    }

    /// The digest of the image's manifest.
    pub fn digest(&self) -> String {
        digest(&self.state.image.manifest())
    }

    /// Paths that were asked for.
    pub fn asked(&self) -> Vec<String> {
        self.state.asked.lock().unwrap().clone()
    }
}

async fn serve(listener: TcpListener, state: Arc<State>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let state = Arc::clone(&state);
                async move { Ok::<_, Infallible>(answer(&state, &request)) }
            });
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

fn answer(state: &State, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let path = request.uri().path();
    state.asked.lock().unwrap().push(path.to_owned());
    let given = request.headers().get("authorization");
    if state.password && given.is_none_or(|given| given != BASIC) {
        let mut response = whole(
            "application/json",
            br#"{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}"#.to_vec(),
        );
        *response.status_mut() = StatusCode::UNAUTHORIZED;
        let challenge = http::HeaderValue::from_static("Basic realm=\"contract\"");
        response.headers_mut().insert("www-authenticate", challenge);
        return response;
    }
    let manifest = state.image.manifest();
    let words: Vec<&str> = path.trim_matches('/').split('/').collect();
    match words.as_slice() {
        ["v2"] => whole("application/json", b"{}".to_vec()),
        ["v2", "app", "manifests", tag] if ["1", "latest", &digest(&manifest)].contains(tag) => {
            whole(MANIFEST, manifest)
        }
        ["v2", "app", "blobs", blob] => {
            let parts = [&state.image.layer, &state.image.config];
            match parts.into_iter().find(|part| digest(part) == *blob) {
                Some(part) => whole("application/octet-stream", part.clone()),
                None => missing("BLOB_UNKNOWN"),
            }
        }
        ["v2", "app", "manifests", _] => missing("MANIFEST_UNKNOWN"),
        _ => missing("NAME_UNKNOWN"),
    }
}

fn whole(content_type: &str, bytes: Vec<u8>) -> Response<Full<Bytes>> {
    Response::builder()
        .header("content-type", content_type)
        .header("docker-distribution-api-version", "registry/2.0")
        .header("docker-content-digest", digest(&bytes))
        .body(Full::from(bytes))
        .unwrap()
}

fn missing(code: &str) -> Response<Full<Bytes>> {
    let words = code.to_lowercase().replace('_', " ");
    let body = format!(r#"{{"errors":[{{"code":"{code}","message":"{words}"}}]}}"#);
    let mut response = whole("application/json", body.into_bytes());
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}
