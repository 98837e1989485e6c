//! A client of the streaming server over WebSocket, as kubectl is one: a channel per stream, in binary messages.
//!
//! Blocking; every wait ends with a panic rather than never. Knows nothing of the daemon but its URLs.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::cri::RUNTIME;

/// A wait that takes longer is a hang.
const GUARD: Duration = Duration::from_secs(60);

/// The protocol that can say the end of input.
pub const V5: &str = "v5.channel.k8s.io";
/// What all others speak, and port-forward.
pub const V4: &str = "v4.channel.k8s.io";

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
const RESIZE: u8 = 4;
const CLOSE: u8 = 255;

/// A client. Dropping it is a client that is gone.
#[derive(Debug)]
pub struct Streams {
    socket: WebSocketStream<TcpStream>,
    /// What stdout and stderr said so far and nobody took.
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    status: Option<Value>,
}

/// All that a command said, and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// Its output.
    pub stdout: String,
    /// Its error output.
    pub stderr: String,
    /// The end as Kubernetes has it (`metav1.Status`).
    pub status: Value,
}

impl Said {
    /// The exit code that the status tells.
    pub fn exit_code(&self) -> i32 {
        if self.status["status"] == "Success" {
            return 0;
        }
        let cause = &self.status["details"]["causes"][0];
        assert_eq!(cause["reason"], "ExitCode", "{}", self.status);
        cause["message"].as_str().unwrap().parse().unwrap()
    }
}

impl Streams {
    /// Comes with a URL.
    ///
    /// # Errors
    /// The HTTP status of a refusal.
    pub fn try_connect(url: &str, protocol: &'static str) -> Result<Self, u16> {
        let rest = url.strip_prefix("http://").expect("an absolute URL");
        let address = rest.split('/').next().unwrap().to_owned();
        let mut request = url
            .replacen("http:", "ws:", 1)
            .into_client_request()
            .unwrap();
        let headers = request.headers_mut();
        headers.insert("Sec-WebSocket-Protocol", protocol.parse().unwrap());
        let connected = within(async {
            let stream = TcpStream::connect(address).await.unwrap();
            tokio_tungstenite::client_async(request, stream).await
        });
        match connected {
            Ok((socket, _)) => Ok(Self {
                socket,
                stdout: Vec::new(),
                stderr: Vec::new(),
                status: None,
            }),
            Err(Error::Http(answer)) => Err(answer.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }

    /// Comes with a URL that is good.
    pub fn connect(url: &str, protocol: &'static str) -> Self {
        Self::try_connect(url, protocol).expect("a session")
    }

    /// Sends bytes on a channel.
    pub fn send(&mut self, channel: u8, bytes: &[u8]) {
        let message = [&[channel], bytes].concat();
        within(self.socket.send(Message::Binary(message.into()))).expect("sent");
    }

    /// The next message of any channel; `None` at the end of the connection.
    pub fn message(&mut self) -> Option<(u8, Vec<u8>)> {
        loop {
            match within(self.socket.next())? {
                Ok(Message::Binary(message)) => {
                    let (channel, bytes) = message.split_first().expect("a channel");
                    return Some((*channel, bytes.to_vec()));
                }
                Ok(Message::Close(_)) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// Types.
    pub fn input(&mut self, bytes: &[u8]) {
        self.send(STDIN, bytes);
    }

    /// Ends the input.
    pub fn end_input(&mut self) {
        self.send(CLOSE, &[STDIN]);
    }

    /// Gives the terminal a size.
    pub fn resize(&mut self, width: u16, height: u16) {
        let size = format!(r#"{{"Width":{width},"Height":{height}}}"#);
        self.send(RESIZE, size.as_bytes());
    }

    /// Reads on until stdout holds this; takes what was read.
    pub fn until(&mut self, wanted: &str) -> String {
        loop {
            let said = String::from_utf8_lossy(&self.stdout).into_owned();
            if said.contains(wanted) {
                self.stdout.clear();
                return said;
            }
            assert!(self.read(), "{said:?} and the end, but not {wanted:?}");
        }
    }

    /// Reads to the end.
    pub fn finish(mut self) -> Said {
        while self.read() {}
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Said {
            stdout: text(&self.stdout),
            stderr: text(&self.stderr),
            status: self.status.unwrap_or_default(),
        }
    }

    /// Takes one message in; `false` at the end.
    fn read(&mut self) -> bool {
        let Some((channel, bytes)) = self.message() else {
            return false;
        };
        match channel {
            STDOUT => self.stdout.extend(bytes),
            STDERR => self.stderr.extend(bytes),
            ERROR if bytes.is_empty() => {}
            ERROR => self.status = Some(serde_json::from_slice(&bytes).expect("a status")),
            CLOSE => {}
            other => panic!("{} bytes on channel {other}", bytes.len()),
        }
        true
    }
}

fn within<T>(work: impl Future<Output = T>) -> T {
    RUNTIME.block_on(async { timeout(GUARD, work).await.expect("it hangs") })
}
