//! Clients that mean harm, or are broken: each costs its own connection, and the next honest one is served.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use springline::error::Kind;
use springline::runtime::ports::{ExecSpec, StreamUrls};
use springline::streaming::Limits;
use springline::streaming::spdy::{Encoder, Frame};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::backend::{IN_OUT, OUT, Scene};
use crate::client::{Command, Spdy, answer, split};

const V4: &str = "v4.channel.k8s.io";

async fn serves(scene: &Scene) {
    let url = scene.exec("print hello oops 0", OUT);
    assert_eq!(
        Command::start(&url, V4, OUT).await.said().await.stdout,
        b"hello"
    );
}

/// Ends once the server has ended the connection.
async fn ended(mut io: impl AsyncReadExt + Unpin) {
    let mut rest = Vec::new();
    let _ = io.read_to_end(&mut rest).await;
}

#[tokio::test]
async fn slow_heads_run_out_of_time() {
    let limits = Limits {
        head_time: Duration::from_millis(200),
        ..Limits::default()
    };
    let scene = Scene::with(limits, None);
    let url = scene.exec("cat", OUT);
    let mut silent = TcpStream::connect(split(&url).0).await.unwrap();
    let mut slow = TcpStream::connect(split(&url).0).await.unwrap();
    slow.write_all(b"GET /exec/").await.unwrap();
    let drip = async {
        while slow.write_all(b"a").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    drip.await;
    ended(&mut silent).await;
    serves(&scene).await;
}

#[tokio::test]
async fn a_crowd_without_tokens_makes_room_for_an_honest_client() {
    let limits = Limits {
        newcomers: 8,
        ..Limits::default()
    };
    let scene = Scene::with(limits, None);
    let url = scene.exec("cat", OUT);
    let mut crowd = Vec::new();
    for _ in 0..100 {
        let mut io = TcpStream::connect(split(&url).0).await.unwrap();
        io.write_all(b"GET /").await.unwrap();
        crowd.push(io);
    }
    serves(&scene).await;
    ended(crowd.remove(0)).await;
}

#[tokio::test]
async fn long_heads_are_refused() {
    let scene = Scene::new();
    let url = scene.exec("cat", OUT);
    let mut io = TcpStream::connect(split(&url).0).await.unwrap();
    let line = format!("X-Much: {}\r\n", "a".repeat(1000));
    io.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
    for _ in 0..100 {
        if io.write_all(line.as_bytes()).await.is_err() {
            break;
        }
    }
    if let Some((status, _)) = answer(&mut io).await {
        assert_eq!(status, 431);
    }
    ended(io).await;
    serves(&scene).await;
}

#[tokio::test]
async fn thousands_of_tokens_are_refused_in_words() {
    let scene = Scene::new();
    let spec = ExecSpec {
        cmd: vec!["cat".into()],
        streams: OUT,
    };
    let issued = (0..5000).map(|_| scene.server.exec("c1", spec.clone()));
    let refused: Vec<_> = issued.filter_map(Result::err).collect();
    assert_eq!(refused.len(), 4000);
    assert!(
        refused
            .iter()
            .all(|error| error.kind() == Kind::ResourceExhausted)
    );
}

#[tokio::test]
async fn more_sessions_than_allowed_are_told_to_come_later() {
    let limits = Limits {
        sessions: 1,
        ..Limits::default()
    };
    let mut scene = Scene::with(limits, None);
    let first = Command::start(&scene.exec("sleep", OUT), V4, OUT).await;
    scene.specs.recv().await.unwrap();
    let url = scene.exec("cat", OUT);
    let mut io = TcpStream::connect(split(&url).0).await.unwrap();
    assert_eq!(crate::client::upgrade(&mut io, &url, V4).await.0, 503);
    drop(first);
    scene.abandoned(1).await;
}

#[tokio::test]
async fn frames_that_end_a_connection() {
    let scene = Scene::new();
    let mut bomb = BytesMut::new();
    let headers = vec![("a".repeat(10), "b".repeat(60_000))];
    let open = Frame::SynStream {
        stream: 1,
        fin: false,
        unidirectional: false,
        headers,
    };
    Encoder::new().unwrap().encode(&open, &mut bomb).unwrap();
    assert!(bomb.len() < 1000, "a bomb is small on the wire");
    let cases: [(&str, &[u8]); 5] = [
        (
            "a control frame of 16 MB",
            b"\x80\x03\x00\x01\x00\xff\xff\xff",
        ),
        ("a header bomb", &bomb),
        (
            "headers that are no zlib",
            b"\x80\x03\x00\x01\x00\x00\x00\x0e\0\0\0\x01\0\0\0\0\0\0nope",
        ),
        ("data of no stream", b"\0\0\0\0\0\0\0\x01a"),
        (
            "SETTINGS that lie",
            b"\x80\x03\x00\x04\x00\x00\x00\x04\xff\xff\xff\xff",
        ),
    ];
    for (name, bytes) in cases {
        let mut spdy = Spdy::dial(&scene.exec("cat", IN_OUT), V4).await;
        spdy.raw(bytes).await;
        let end = async { while spdy.next().await.is_some() {} };
        let ends = tokio::time::timeout(Duration::from_secs(20), end).await;
        assert!(ends.is_ok(), "{name}");
    }
    serves(&scene).await;
}

#[tokio::test]
async fn a_broken_header_block_costs_its_stream_only() {
    let scene = Scene::new();
    let mut spdy = Spdy::dial(&scene.exec("cat", IN_OUT), V4).await;
    let twice = spdy
        .open(&[("streamtype", "stdin"), ("streamtype", "stdout")])
        .await;
    let reset = Frame::RstStream {
        stream: twice,
        status: 1,
    };
    assert_eq!(spdy.next_event().await.unwrap(), reset);
    let mut client = Command::on(spdy, V4, IN_OUT).await;
    let stdin = client.stdin;
    client.spdy.data(stdin, "fine", true).await;
    assert_eq!(client.said().await.stdout, b"fine");
}

#[tokio::test]
async fn more_streams_than_allowed_are_refused() {
    let limits = Limits {
        streams: 4,
        ..Limits::default()
    };
    let scene = Scene::with(limits, None);
    let url = scene.server.port_forward("s1", Vec::new()).unwrap();
    let mut spdy = Spdy::dial(&url, "portforward.k8s.io").await;
    for request in 0..6 {
        let request = request.to_string();
        spdy.open(&[
            ("streamtype", "error"),
            ("port", "1"),
            ("requestid", &request),
        ])
        .await;
    }
    for stream in [9, 11] {
        let refused = Frame::RstStream { stream, status: 3 };
        assert_eq!(spdy.next_event().await.unwrap(), refused);
    }
}

#[tokio::test]
async fn pings_that_are_never_read_end_the_connection() {
    let scene = Scene::new();
    let mut spdy = Spdy::dial(&scene.exec("cat", IN_OUT), V4).await;
    let flood = async { while spdy.try_send(Frame::Ping(1)).await.is_ok() {} };
    let ends = tokio::time::timeout(Duration::from_secs(60), flood).await;
    assert!(ends.is_ok(), "pings are kept for ever");
    serves(&scene).await;
}

#[tokio::test]
async fn an_idle_session_is_ended() {
    let limits = Limits {
        idle: Duration::from_millis(200),
        ..Limits::default()
    };
    let scene = Scene::with(limits, None);
    let mut client = Command::start(&scene.exec("sleep", OUT), V4, OUT).await;
    while client.spdy.next().await.is_some() {}
    scene.abandoned(1).await;
}

#[derive(Debug)]
struct AnyCertificate;

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ring::default_provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// TLS with whoever answers.
pub async fn tls(address: &str) -> TlsStream<TcpStream> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate))
        .with_no_client_auth();
    let tcp = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config))
        .connect(name, tcp)
        .await
        .unwrap()
}
