//! The engine itself, past the daemon: what really is there, and things that somebody else than the daemon does to it.
//!
//! Plain HTTP over the engine's socket, one connection a call, without an API version: the engine's own newest.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(90);

/// A Docker Engine's API.
#[derive(Debug, Clone)]
pub struct Engine {
    socket: PathBuf,
}

impl Engine {
    /// The engine that listens there.
    pub fn at(socket: &Path) -> Self {
        Self {
            socket: socket.to_owned(),
        }
    }

    /// One call; its status and what it answered.
    pub fn call(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Vec<u8>) {
        let mut stream = UnixStream::connect(&self.socket).expect("the engine's socket");
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let body = body.map(Value::to_string).unwrap_or_default();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: engine\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream
            .read_to_end(&mut answer)
            .expect("the engine's answer");
        parse(&answer)
    }

    /// One call that must succeed; its JSON, null when there is none.
    pub fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let (status, answer) = self.call(method, path, body);
        assert!(
            (200..300).contains(&status),
            "{method} {path}: {status}: {}",
            String::from_utf8_lossy(&answer)
        );
        serde_json::from_slice(&answer).unwrap_or(Value::Null)
    }

    /// What the engine says of a container, by ID or name; `None` = no such one.
    pub fn container(&self, id: &str) -> Option<Value> {
        self.found(&format!("/containers/{id}/json"))
    }

    /// What the engine says of an image; `None` = no such one.
    pub fn image(&self, reference: &str) -> Option<Value> {
        self.found(&format!("/images/{reference}/json"))
    }

    fn found(&self, path: &str) -> Option<Value> {
        let (status, answer) = self.call("GET", path, None);
        match status {
            200 => Some(serde_json::from_slice(&answer).unwrap()),
            404 => None,
            _ => panic!("{path}: {status}: {}", String::from_utf8_lossy(&answer)),
        }
    }

    /// IDs of all containers, running or not, with a label (`key` or `key=value`).
    pub fn labelled(&self, label: &str) -> Vec<String> {
        let filter = serde_json::json!({"label": [label]}).to_string();
        let path = format!("/containers/json?all=1&filters={}", escape(&filter));
        let list = self.ask("GET", &path, None);
        let ids = list.as_array().unwrap().iter().map(|one| &one["Id"]);
        ids.map(|id| id.as_str().unwrap().to_owned()).collect()
    }

    /// Removes a container, running or not, if it is there.
    pub fn remove(&self, id: &str) {
        // A removal may be under way already (409).
        let _ = self.call("DELETE", &format!("/containers/{id}?force=1&v=1"), None);
    }

    /// Gives an image another name.
    pub fn tag(&self, image: &str, repository: &str, tag: &str) {
        self.ask(
            "POST",
            &format!("/images/{image}/tag?repo={repository}&tag={tag}"),
            None,
        );
    }

    /// Makes an image of a container; its ID.
    pub fn commit(&self, container: &str, repository: &str, tag: &str, config: &Value) -> String {
        let path = format!("/commit?container={container}&repo={repository}&tag={tag}");
        let answer = self.ask("POST", &path, Some(config));
        answer["Id"].as_str().unwrap().to_owned()
    }

    /// Removes an image's name, or an image, if it is there.
    pub fn remove_image(&self, reference: &str) {
        let _ = self.call("DELETE", &format!("/images/{reference}?force=1"), None);
    }
}

fn parse(answer: &[u8]) -> (u16, Vec<u8>) {
    let end = answer
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .expect("an HTTP answer");
    let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    let body = &answer[end + 4..];
    let body = if head.contains("transfer-encoding: chunked") {
        unchunk(body)
    } else {
        body.to_vec()
    };
    (status.expect("an HTTP status"), body)
}

fn unchunk(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = std::str::from_utf8(&rest[..end]).unwrap();
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        if size == 0 {
            break;
        }
        body.extend(&rest[end + 2..end + 2 + size]);
        rest = &rest[end + 2 + size + 2..];
    }
    body
}

/// Escapes what may not stand in a query.
fn escape(text: &str) -> String {
    text.bytes()
        .map(|b| {
            if b.is_ascii_alphanumeric() || b"-._".contains(&b) {
                char::from(b).to_string()
            } else {
                format!("%{b:02X}")
            }
        })
        .collect()
}
