//! On the wire: a scripted engine on a unix socket, which says byte by byte what it is told to and notes what it hears.

mod calls;
mod connection;
mod exec;
mod transfers;

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;

use super::DockerEngine;

/// What the engine heard.
#[derive(Debug, Clone)]
struct Heard {
    /// `POST /v1.41/containers/x/start`.
    line: String,
    /// Header lines, lower-case.
    head: String,
    body: Vec<u8>,
}

/// What it does then.
#[derive(Clone)]
enum Answer {
    /// These bytes, then it closes the connection.
    Bytes(Vec<u8>),
    /// These bytes, then nothing, until the client goes away, which `gone` is told.
    Hold(Vec<u8>, Arc<tokio::sync::Notify>),
}

type Script = Arc<dyn Fn(&Heard) -> Answer + Send + Sync>;

/// The scripted engine; it ends with this.
struct ScriptedEngine {
    folder: tempfile::TempDir,
    heard: Arc<Mutex<Vec<Heard>>>,
    task: Option<JoinHandle<()>>,
}

impl Drop for ScriptedEngine {
    fn drop(&mut self) {
        self.stop();
    }
}

impl ScriptedEngine {
    /// Answers calls about itself as engine `api` does, and every other call by `script`.
    fn new(api: &'static str, script: impl Fn(&Heard) -> Answer + Send + Sync + 'static) -> Self {
        let mut engine = Self::absent();
        engine.start(api, script);
        engine
    }

    /// None is there yet.
    fn absent() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            heard: Arc::default(),
            task: None,
        }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("engine.sock")
    }

    fn client(&self) -> DockerEngine {
        DockerEngine::new(&format!("unix://{}", self.socket().display())).unwrap()
    }

    fn start(
        &mut self,
        api: &'static str,
        script: impl Fn(&Heard) -> Answer + Send + Sync + 'static,
    ) {
        self.stop();
        let listener = UnixListener::bind(self.socket()).unwrap();
        let script: Script = Arc::new(move |heard| match about_itself(api, heard) {
            Some(answer) => answer,
            None => script(heard),
        });
        let heard = Arc::clone(&self.heard);
        self.task = Some(tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, Arc::clone(&heard), Arc::clone(&script)));
            }
        }));
    }

    fn stop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
            let _ = std::fs::remove_file(self.socket());
        }
    }

    /// The request lines so far, without those about the engine itself.
    fn lines(&self) -> Vec<String> {
        self.all()
            .into_iter()
            .map(|heard| heard.line)
            .filter(|line| !line.ends_with("/info") && !line.ends_with("/version"))
            .collect()
    }

    fn all(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }

    fn count(&self, end: &str) -> usize {
        self.all().iter().filter(|h| h.line.ends_with(end)).count()
    }
}

fn about_itself(api: &str, heard: &Heard) -> Option<Answer> {
    match heard.line.as_str() {
        "GET /version" => Some(json(
            200,
            &format!(r#"{{"ApiVersion":"{api}","MinAPIVersion":"1.12","Version":"20.10"}}"#),
        )),
        line if line.starts_with("GET /v") && line.ends_with("/info") => {
            Some(json(200, r#"{"OSType":"linux","Name":"node"}"#))
        }
        _ => None,
    }
}

async fn serve(mut stream: UnixStream, log: Arc<Mutex<Vec<Heard>>>, script: Script) {
    let Some(heard) = hear(&mut stream).await else {
        return;
    };
    let answer = script(&heard);
    log.lock().unwrap().push(heard);
    match answer {
        Answer::Bytes(bytes) => {
            let _ = stream.write_all(&bytes).await;
        }
        Answer::Hold(bytes, gone) => {
            let _ = stream.write_all(&bytes).await;
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest).await;
            gone.notify_one();
        }
    }
}

async fn hear(stream: &mut UnixStream) -> Option<Heard> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let (line, head) = head.split_once("\r\n").unwrap();
    let length = head
        .lines()
        .find_map(|l| {
            l.to_lowercase()
                .strip_prefix("content-length: ")?
                .parse()
                .ok()
        })
        .unwrap_or(0);
    while bytes.len() < end + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    Some(Heard {
        line: line.trim_end_matches(" HTTP/1.1").to_owned(),
        head: head.to_owned(),
        body: bytes[end..].to_vec(),
    })
}

/// A whole answer of JSON.
fn json(status: u16, body: &str) -> Answer {
    Answer::Bytes(http(status, "", body))
}

fn http(status: u16, header: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status} Words\r\n{header}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}")
        .into_bytes()
}

/// Lets everything else run until `done`; the script's tasks are on this thread.
async fn until(done: impl Fn() -> bool) {
    while !done() {
        tokio::task::yield_now().await;
    }
}

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;
