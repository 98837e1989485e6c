//! Exec and attach over WebSocket.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use futures_util::{SinkExt, StreamExt};
use springline::runtime::ports::{StreamSpec, StreamUrls};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::backend::{IN_OUT, OUT, Scene, TTY};
use crate::client::split;
use crate::command::status;

/// A client of channels.
pub struct Channels {
    pub websocket: WebSocketStream<TcpStream>,
    base64: bool,
}

pub async fn dial(url: &str, protocol: &str) -> WebSocketStream<TcpStream> {
    let tcp = TcpStream::connect(split(url).0).await.unwrap();
    let mut request = url
        .replace("http://", "ws://")
        .into_client_request()
        .unwrap();
    if !protocol.is_empty() {
        let name = "sec-websocket-protocol";
        request
            .headers_mut()
            .insert(name, protocol.parse().unwrap());
    }
    let (websocket, response) = tokio_tungstenite::client_async(request, tcp).await.unwrap();
    let agreed = response.headers().get("sec-websocket-protocol");
    let agreed = agreed.map(|agreed| agreed.to_str().unwrap());
    assert_eq!(agreed.unwrap_or_default(), protocol);
    websocket
}

impl Channels {
    pub async fn start(url: &str, protocol: &str) -> Self {
        Self {
            websocket: dial(url, protocol).await,
            base64: protocol.contains("base64"),
        }
    }

    pub async fn send(&mut self, channel: u8, bytes: &[u8]) {
        let message = if self.base64 {
            let digit = char::from(b'0' + channel);
            Message::text(format!("{digit}{}", BASE64_STANDARD.encode(bytes)))
        } else {
            let mut message = vec![channel];
            message.extend_from_slice(bytes);
            Message::binary(message)
        };
        self.websocket.send(message).await.unwrap();
    }

    /// The next message; `None` when the server closes in order.
    pub async fn next(&mut self) -> Option<(u8, Vec<u8>)> {
        loop {
            let message = match self.websocket.next().await.expect("a close first").unwrap() {
                Message::Binary(bytes) if !self.base64 => bytes.to_vec(),
                Message::Text(text) if self.base64 => {
                    let (digit, coded) = text.split_at(1);
                    let mut message = vec![digit.as_bytes()[0] - b'0'];
                    message.extend(BASE64_STANDARD.decode(coded).unwrap());
                    message
                }
                Message::Close(frame) => {
                    assert_eq!(frame.expect("a code").code, CloseCode::Normal);
                    return None;
                }
                Message::Ping(_) | Message::Pong(_) => continue,
                other => panic!("{other:?}"),
            };
            return Some((message[0], message[1..].to_vec()));
        }
    }

    /// What channels 1, 2 and 3 carried to the end.
    pub async fn said(&mut self) -> (Vec<u8>, Vec<u8>, String) {
        let mut said = [Vec::new(), Vec::new(), Vec::new()];
        while let Some((channel, bytes)) = self.next().await {
            said[usize::from(channel) - 1].extend(bytes);
        }
        let [stdout, stderr, error] = said;
        (stdout, stderr, String::from_utf8(error).unwrap())
    }
}

#[tokio::test]
async fn every_protocol_tells_output_and_exit_code() {
    let scene = Scene::new();
    for protocol in [
        "v5.channel.k8s.io",
        "v4.channel.k8s.io",
        "v4.base64.channel.k8s.io",
        "channel.k8s.io",
        "base64.channel.k8s.io",
        "",
    ] {
        for code in ["0", "42"] {
            let url = scene.exec(&format!("print hello oops {code}"), OUT);
            let mut client = Channels::start(&url, protocol).await;
            let greeting = client.next().await;
            assert_eq!(greeting, Some((1, Vec::new())), "{protocol}");
            let (stdout, stderr, error) = client.said().await;
            assert_eq!(
                (stdout.as_slice(), stderr.as_slice()),
                (&b"hello"[..], &b"oops"[..])
            );
            let expected = if code == "0" {
                ("Success", "")
            } else {
                ("Failure", code)
            };
            if protocol.starts_with('v') {
                let (status, cause) = status(&error);
                assert_eq!((status.as_str(), cause.as_str()), expected, "{protocol}");
            } else {
                assert_eq!(error.is_empty(), code == "0", "{protocol}: {error}");
            }
        }
    }
}

#[tokio::test]
async fn v5_closes_input() {
    let scene = Scene::new();
    let attach = scene.server.attach("c1", IN_OUT).unwrap();
    for url in [scene.exec("cat", IN_OUT), attach] {
        let mut client = Channels::start(&url, "v5.channel.k8s.io").await;
        client.send(0, b"one ").await;
        client.send(0, b"two").await;
        client.send(255, &[0]).await;
        let (stdout, _, error) = client.said().await;
        assert_eq!(stdout, b"one two");
        assert_eq!(status(&error).0, "Success");
    }
}

#[tokio::test]
async fn input_and_sizes_in_every_codec() {
    let scene = Scene::new();
    for protocol in [
        "v5.channel.k8s.io",
        "v4.channel.k8s.io",
        "v4.base64.channel.k8s.io",
    ] {
        let mut client = Channels::start(&scene.exec("cat", IN_OUT), protocol).await;
        client.send(0, b"hello").await;
        assert_eq!(client.next().await, Some((1, Vec::new())));
        assert_eq!(
            client.next().await,
            Some((1, b"hello".to_vec())),
            "{protocol}"
        );
        client.websocket.close(None).await.unwrap();
        let mut client = Channels::start(&scene.exec("sizes", TTY), protocol).await;
        client.send(4, b"{\"Width\":80,\"Height\":24}").await;
        assert_eq!(client.next().await, Some((1, Vec::new())));
        assert_eq!(
            client.next().await,
            Some((1, b"80x24;".to_vec())),
            "{protocol}"
        );
    }
    // All of them left without an end of input.
    scene.abandoned(6).await;
}

#[tokio::test]
async fn a_client_that_leaves_ends_what_it_started() {
    let mut scene = Scene::new();
    for (count, politely) in [(1, true), (2, false)] {
        let mut client = Channels::start(&scene.exec("sleep", OUT), "v5.channel.k8s.io").await;
        scene.specs.recv().await.unwrap();
        if politely {
            client.websocket.close(None).await.unwrap();
        }
        drop(client);
        scene.abandoned(count).await;
    }
}

#[tokio::test]
async fn not_a_byte_of_100_mb_is_lost() {
    let scene = Scene::new();
    let count = 100 * 1024 * 1024;
    let only_stdout = StreamSpec {
        stderr: false,
        ..OUT
    };
    let url = scene.exec(&format!("bytes {count}"), only_stdout);
    let mut client = Channels::start(&url, "v5.channel.k8s.io").await;
    let (stdout, _, error) = client.said().await;
    assert_eq!(stdout.len(), count);
    let wrong = stdout
        .iter()
        .enumerate()
        .find(|(at, byte)| **byte != crate::backend::pattern(*at));
    assert_eq!(wrong, None);
    assert_eq!(status(&error).0, "Success");
}

#[tokio::test]
async fn what_makes_no_sense_ends_the_connection_or_is_skipped() {
    let scene = Scene::new();
    let mut client = Channels::start(&scene.exec("cat", IN_OUT), "v5.channel.k8s.io").await;
    for (channel, bytes) in [(1, b"not yours".as_slice()), (9, b"nobody's"), (0, b"x")] {
        client.send(channel, bytes).await;
    }
    assert_eq!(client.next().await, Some((1, Vec::new())));
    assert_eq!(client.next().await, Some((1, b"x".to_vec())));
    client.send(255, &[9]).await;
    scene.abandoned(1).await;

    let client = Channels::start(&scene.exec("sleep", IN_OUT), "base64.channel.k8s.io").await;
    let mut websocket = client.websocket;
    websocket.send(Message::text("0***")).await.unwrap();
    scene.abandoned(2).await;

    let client = Channels::start(&scene.exec("sleep", IN_OUT), "v5.channel.k8s.io").await;
    let mut websocket = client.websocket;
    let huge = Message::binary(vec![0; 5 * 1024 * 1024]);
    let _ = websocket.send(huge).await;
    scene.abandoned(3).await;
}
