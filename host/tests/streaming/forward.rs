//! Port-forward over SPDY, over SPDY in a WebSocket, and over the channels of a WebSocket.

use std::collections::HashMap;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::{Sink, Stream};
use springline::runtime::ports::StreamUrls;
use springline::streaming::Limits;
use springline::streaming::spdy::Frame;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use crate::backend::Scene;
use crate::client::Spdy;
use crate::websocket::{Channels, dial};

const PROTOCOL: &str = "portforward.k8s.io";
const TUNNEL: &str = "SPDY/3.1+portforward.k8s.io";

/// A port that sends back what it gets, with `!` after the end of it.
async fn echo() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let (mut from, mut to) = stream.split();
                let _ = tokio::io::copy(&mut from, &mut to).await;
                let _ = to.write_all(b"!").await;
            });
        }
    });
    port
}

async fn closed_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().port()
}

struct Tunnel(WebSocketStream<TcpStream>, Bytes);

impl AsyncRead for Tunnel {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        while self.1.is_empty() {
            match ready!(Pin::new(&mut self.0).poll_next(context)) {
                Some(Ok(Message::Binary(bytes))) => self.1 = bytes,
                Some(Ok(Message::Close(_)) | Err(_)) | None => return Poll::Ready(Ok(())),
                Some(Ok(other)) => panic!("{other:?}"),
            }
        }
        let length = self.1.len().min(buffer.remaining());
        buffer.put_slice(&self.1.split_to(length));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Tunnel {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        ready!(Pin::new(&mut self.0).poll_ready(context)).unwrap();
        let message = Message::binary(bytes.to_vec());
        Pin::new(&mut self.0).start_send(message).unwrap();
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0)
            .poll_flush(context)
            .map_err(std::io::Error::other)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        self.poll_flush(context)
    }
}

async fn both_ways(scene: &Scene) -> [Spdy; 2] {
    let url = || scene.server.port_forward("s1", Vec::new()).unwrap();
    let tunnel = Tunnel(dial(&url(), TUNNEL).await, Bytes::new());
    [Spdy::dial(&url(), PROTOCOL).await, Spdy::on(tunnel)]
}

/// Error and data stream of one connection.
async fn open(client: &mut Spdy, request: usize, port: u16) -> (u32, u32) {
    let (request, port) = (request.to_string(), port.to_string());
    let mut ids = [0; 2];
    for (id, kind) in ids.iter_mut().zip(["error", "data"]) {
        let headers = [
            ("streamtype", kind),
            ("port", &*port),
            ("requestid", &*request),
        ];
        *id = client.open(&headers).await;
    }
    let [error, data] = ids;
    client.data(error, "", true).await;
    (error, data)
}

#[tokio::test]
async fn many_connections_each_end_by_themselves() {
    let scene = Scene::new();
    let port = echo().await;
    for mut client in both_ways(&scene).await {
        let mut streams = HashMap::new();
        for request in 0..50 {
            streams.insert(request, open(&mut client, request, port).await);
        }
        for (request, (_, data)) in &streams {
            client.data(*data, format!("hello {request}"), true).await;
        }
        let all: Vec<u32> = streams
            .values()
            .flat_map(|(error, data)| [*error, *data])
            .collect();
        let got = client.collect(&all).await;
        for (request, (error, data)) in &streams {
            assert_eq!(got[data], format!("hello {request}!").as_bytes());
            assert_eq!(got[error], b"");
        }
    }
}

#[tokio::test]
async fn many_thousand_connections_one_after_another() {
    let scene = Scene::new();
    let port = echo().await;
    let url = scene.server.port_forward("s1", Vec::new()).unwrap();
    let mut client = Spdy::dial(&url, PROTOCOL).await;
    // More than may be open at once: each must be forgotten in the end.
    for request in 0..3000 {
        let (error, data) = open(&mut client, request, port).await;
        client.data(data, "hello", true).await;
        let got = client.collect(&[error, data]).await;
        assert_eq!(
            (got[&data].as_slice(), got[&error].as_slice()),
            (&b"hello!"[..], &b""[..])
        );
    }
}

#[tokio::test]
async fn a_port_that_nobody_listens_on_is_told_in_words() {
    let scene = Scene::new();
    let port = closed_port().await;
    for mut client in both_ways(&scene).await {
        let (error, data) = open(&mut client, 0, port).await;
        client.data(data, "hello", true).await;
        let got = client.collect(&[error, data]).await;
        let told = String::from_utf8(got[&error].clone()).unwrap();
        assert!(
            told.contains("refused") && told.contains(&port.to_string()),
            "{told}"
        );
        assert_eq!(got[&data], b"");
        // The session goes on.
        let (error, data) = open(&mut client, 1, echo().await).await;
        client.data(data, "hello", true).await;
        assert_eq!(client.collect(&[error, data]).await[&data], b"hello!");
    }
}

#[tokio::test]
async fn the_pods_end_does_not_end_the_clients() {
    let scene = Scene::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    for mut client in both_ways(&scene).await {
        let (error, data) = open(&mut client, 0, port).await;
        let (mut pod, _) = listener.accept().await.unwrap();
        pod.write_all(b"bye").await.unwrap();
        pod.shutdown().await.unwrap();
        // The error stream ends with the pod's side: clients wait for it.
        let got = client.collect(&[error, data]).await;
        assert_eq!(got[&data], b"bye");
        client.data(data, "still ", false).await;
        client.data(data, "here", true).await;
        let mut heard = String::new();
        pod.read_to_string(&mut heard).await.unwrap();
        assert_eq!(heard, "still here");
    }
}

#[tokio::test]
async fn a_reset_closes_the_pods_connection() {
    let scene = Scene::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let [mut client, other] = both_ways(&scene).await;
    let (_, data) = open(&mut client, 0, port).await;
    let (mut pod, _) = listener.accept().await.unwrap();
    client
        .send(Frame::RstStream {
            stream: data,
            status: 5,
        })
        .await;
    assert_eq!(pod.read(&mut [0]).await.unwrap_or(0), 0);
    // So does the client's going.
    open(&mut client, 1, port).await;
    let (mut pod, _) = listener.accept().await.unwrap();
    drop((client, other));
    assert_eq!(pod.read(&mut [0]).await.unwrap_or(0), 0);
}

#[tokio::test]
async fn not_a_byte_of_100_mb_is_lost_either_way() {
    let scene = Scene::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = 100 * 1024 * 1024;
    let url = scene.server.port_forward("s1", Vec::new()).unwrap();
    let mut client = Spdy::dial(&url, PROTOCOL).await;
    let (error, data) = open(&mut client, 0, port).await;
    let (mut pod, _) = listener.accept().await.unwrap();
    let sends = tokio::spawn(async move {
        let piece: Vec<u8> = (0..64 * 1024).map(|at| (at % 251) as u8).collect();
        for _ in 0..count / piece.len() {
            pod.write_all(&piece).await.unwrap();
        }
        pod.shutdown().await.unwrap();
        let mut heard = Vec::new();
        pod.read_to_end(&mut heard).await.unwrap();
        heard.len()
    });
    let got = client.collect(&[error, data]).await;
    assert_eq!(got[&data].len(), count);
    // One frame of nearly the largest size, as Go clients send them.
    let big = vec![1_u8; 0xff_ffff];
    for _ in 0..6 {
        client.data(data, big.clone(), false).await;
    }
    client.data(data, "", true).await;
    assert_eq!(sends.await.unwrap(), 6 * big.len());
}

#[tokio::test]
async fn a_stream_without_its_partner_is_reset_in_the_end() {
    let limits = Limits {
        stream_creation: std::time::Duration::from_millis(50),
        ..Limits::default()
    };
    let scene = Scene::with(limits, None);
    let url = scene.server.port_forward("s1", Vec::new()).unwrap();
    let mut client = Spdy::dial(&url, PROTOCOL).await;
    let headers = [("streamtype", "data"), ("port", "80"), ("requestid", "1")];
    let lonely = client.open(&headers).await;
    let reset = Frame::RstStream {
        stream: lonely,
        status: 5,
    };
    assert_eq!(client.next_event().await.unwrap(), reset);
    for nonsense in [("port", "0"), ("port", "99999"), ("colour", "red")] {
        let stream = client.open(&[("streamtype", "data"), nonsense]).await;
        let reset = Frame::RstStream { stream, status: 5 };
        assert_eq!(client.next_event().await.unwrap(), reset, "{nonsense:?}");
    }
}

#[tokio::test]
async fn clients_that_name_no_request_are_paired_by_order() {
    let scene = Scene::new();
    let port = echo().await.to_string();
    let url = scene.server.port_forward("s1", Vec::new()).unwrap();
    let mut client = Spdy::dial(&url, PROTOCOL).await;
    let error = client
        .open(&[("streamtype", "error"), ("port", &port)])
        .await;
    let data = client
        .open(&[("streamtype", "data"), ("port", &port)])
        .await;
    client.data(data, "hello", true).await;
    client.data(error, "", true).await;
    assert_eq!(client.collect(&[error, data]).await[&data], b"hello!");
}

#[tokio::test]
async fn two_channels_for_each_port() {
    let scene = Scene::new();
    let (open, closed) = (echo().await, closed_port().await);
    for protocol in ["v4.channel.k8s.io", "v4.base64.channel.k8s.io", ""] {
        let url = scene.server.port_forward("s1", vec![open, closed]).unwrap();
        let mut client = Channels::start(&url, protocol).await;
        client.send(0, b"hello").await;
        let mut said: [Vec<u8>; 4] = Default::default();
        while said[0].len() < 7 || said[1].len() < 2 || said[3].len() < 10 {
            let (channel, bytes) = client.next().await.expect("more");
            said[usize::from(channel)].extend(bytes);
        }
        assert_eq!(
            said[0],
            [&open.to_le_bytes(), &b"hello"[..]].concat(),
            "{protocol}"
        );
        assert_eq!(said[1], open.to_le_bytes());
        assert_eq!(said[2], closed.to_le_bytes());
        assert_eq!(said[3][..2], closed.to_le_bytes());
        let told = String::from_utf8_lossy(&said[3][2..]).into_owned();
        assert!(told.contains("refused"), "{told}");
    }
}
