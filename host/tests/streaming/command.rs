//! Exec and attach over SPDY.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;
use springline::runtime::ports::{StreamSpec, StreamUrls};
use springline::streaming::spdy::Frame;
use springline::streaming::{Limits, TlsSettings};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::backend::{IN_OUT, OUT, Scene, TTY, pattern};
use crate::client::{Command, Spdy, request, split, upgrade};

const V4: &str = "v4.channel.k8s.io";

pub fn status(json: &str) -> (String, String) {
    let status: Value = serde_json::from_str(json).expect(json);
    let cause = status["details"]["causes"][0]["message"].as_str();
    (
        status["status"].as_str().unwrap().to_owned(),
        cause.unwrap_or_default().to_owned(),
    )
}

#[tokio::test]
async fn every_version_tells_output_and_exit_code() {
    let scene = Scene::new();
    for protocol in [
        "v4.channel.k8s.io",
        "v3.channel.k8s.io",
        "v2.channel.k8s.io",
        "channel.k8s.io",
        "",
    ] {
        for code in ["0", "42"] {
            let url = scene.exec(&format!("print hello oops {code}"), OUT);
            let said = Command::start(&url, protocol, OUT).await.said().await;
            assert_eq!(said.stdout, b"hello", "{protocol}");
            assert_eq!(said.stderr, b"oops", "{protocol}");
            let expected = if code == "0" {
                ("Success", "")
            } else {
                ("Failure", code)
            };
            if protocol == V4 {
                let (status, cause) = status(&said.error);
                assert_eq!((status.as_str(), cause.as_str()), expected);
            } else if code == "0" {
                assert_eq!(said.error, "", "{protocol}");
            } else {
                assert!(said.error.ends_with("exit status 42"), "{}", said.error);
            }
        }
    }
}

#[tokio::test]
async fn what_cannot_begin_or_breaks_off_is_told_on_the_error_stream() {
    let scene = Scene::new();
    let spec = springline::runtime::ports::ExecSpec {
        cmd: vec!["cat".into()],
        streams: OUT,
    };
    let url = scene.server.exec("nobody", spec).unwrap();
    let said = Command::start(&url, V4, OUT).await.said().await;
    let (word, cause) = status(&said.error);
    assert_eq!(word, "Failure");
    assert!(cause.contains("container \"nobody\" not found"), "{cause}");

    let url = scene.exec("breaks", OUT);
    let said = Command::start(&url, V4, OUT).await.said().await;
    assert_eq!(said.stdout, b"so far");
    assert!(status(&said.error).1.contains("the engine hung up"));
    scene.abandoned(1).await;
}

#[tokio::test]
async fn the_end_of_input_reaches_the_process_while_output_goes_on() {
    let scene = Scene::new();
    let attach = scene.server.attach("c1", IN_OUT).unwrap();
    for url in [scene.exec("cat", IN_OUT), attach] {
        let mut client = Command::start(&url, V4, IN_OUT).await;
        let stdin = client.stdin;
        client.spdy.data(stdin, "one ", false).await;
        client.spdy.data(stdin, "two", false).await;
        client.spdy.data(stdin, "", true).await;
        let said = client.said().await;
        assert_eq!(said.stdout, b"one two");
        assert_eq!(status(&said.error).0, "Success");
    }
}

#[tokio::test]
async fn sizes_before_and_during() {
    let scene = Scene::new();
    for protocol in [V4, "v3.channel.k8s.io"] {
        let url = scene.exec("sizes", TTY);
        let mut client = Command::start(&url, protocol, TTY).await;
        let (resize, stdout) = (client.resize, client.stdout);
        let mut got = String::new();
        // The third piece completes what the second begins.
        for (more, expected) in [
            ("{\"Width\":80,\"Height\":24}\n", "80x24;"),
            ("{\"Width\":100,\"Hei", "80x24;"),
            ("ght\":30}\n", "80x24;100x30;"),
        ] {
            client.spdy.data(resize, more, false).await;
            while got != expected {
                match client.spdy.next_event().await.unwrap() {
                    Frame::Data { stream, bytes, .. } if stream == stdout => {
                        got.push_str(std::str::from_utf8(&bytes).unwrap());
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        let stdin = client.stdin;
        client.spdy.data(stdin, "", true).await;
        let said = client.said().await;
        assert!(said.error.is_empty() || status(&said.error).0 == "Success");
    }
}

const MANY: usize = 100 * 1024 * 1024;

async fn takes_all(mut client: Command, count: usize) {
    let mut position = 0;
    loop {
        match client.spdy.next_event().await.expect("more output") {
            Frame::Data { stream, bytes, fin } if stream == client.stdout => {
                for (at, byte) in (position..).zip(&bytes) {
                    assert_eq!(*byte, pattern(at), "at {at}");
                }
                position += bytes.len();
                if fin {
                    break;
                }
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(position, count);
    client.stdout = 0;
    assert_eq!(status(&client.said().await.error).0, "Success");
}

#[tokio::test]
async fn not_a_byte_of_100_mb_is_lost_to_a_client_without_flow_control() {
    let scene = Scene::new();
    let url = scene.exec(&format!("bytes {MANY}"), OUT);
    takes_all(Command::start(&url, V4, OUT).await, MANY).await;
}

#[tokio::test]
async fn a_client_with_flow_control_is_never_sent_more_than_it_allowed() {
    let scene = Scene::new();
    let count = 10 * 1024 * 1024;
    let url = scene.exec(&format!("bytes {count}"), OUT);
    let mut client = Command::start(&url, V4, OUT).await;
    let initial = 10_000;
    client.spdy.send(Frame::Settings(vec![(7, initial)])).await;
    let (mut allowed, mut session) = (i64::from(initial), 64 * 1024_i64);
    let mut got = 0;
    while got < count {
        match client.spdy.next().await.expect("more output") {
            Frame::Data { bytes, .. } => {
                let length = i64::try_from(bytes.len()).unwrap();
                // The setting may arrive after the first data was sent with the window of before.
                if got >= 64 * 1024 {
                    assert!(length <= allowed.max(0), "{length} of {allowed}");
                }
                (allowed, session) = (allowed - length, session - length);
                got += bytes.len();
                if allowed < 5_000 {
                    let stream = client.stdout;
                    let delta = 9_000;
                    client
                        .spdy
                        .send(Frame::WindowUpdate { stream, delta })
                        .await;
                    allowed += i64::from(delta);
                }
                if session < 10_000 {
                    let delta = 50_000;
                    client
                        .spdy
                        .send(Frame::WindowUpdate { stream: 0, delta })
                        .await;
                    session += i64::from(delta);
                }
            }
            Frame::SynReply { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(got, count);
}

/// Ends when the backend has produced the same for a while, with how much that is.
async fn settles(scene: &Scene) -> usize {
    let produced = || scene.seen.produced.load(Ordering::Relaxed);
    let mut last = produced();
    let mut same = 0;
    while same < 20 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        same = if produced() == last && last > 0 {
            same + 1
        } else {
            0
        };
        last = produced();
    }
    last
}

#[tokio::test]
async fn a_slow_reader_stops_the_process_and_loses_nothing() {
    let scene = Scene::new();
    let url = scene.exec(&format!("bytes {MANY}"), OUT);
    let mut client = Command::start(&url, V4, OUT).await;
    // Read past the question about flow control, then no more.
    let mut got = 0;
    while got < 200 * 1024 {
        if let Frame::Data { bytes, .. } = client.spdy.next_event().await.unwrap() {
            got += bytes.len();
        }
    }
    let produced = settles(&scene).await;
    // What the kernel's buffers of a loopback connection hold, and ours of less than 1 MB.
    assert!(
        produced < 16 * 1024 * 1024,
        "{produced} bytes went somewhere"
    );
    let stdout = client.stdout;
    let rest = client.spdy.collect(&[stdout]).await;
    assert_eq!(got + rest[&stdout].len(), MANY);
}

#[tokio::test]
async fn input_that_nobody_reads_is_bounded_and_does_not_hide_a_client_that_leaves() {
    let scene = Scene::new();
    let url = scene.exec("sleep", IN_OUT);
    let mut client = Command::start(&url, V4, IN_OUT).await;
    let stdin = client.stdin;
    // `sleep` has no input here: all of it is thrown away, and the client is not held up.
    let piece = vec![7_u8; 1024 * 1024];
    for _ in 0..20 {
        client.spdy.data(stdin, piece.clone(), false).await;
    }
    drop(client);
    scene.abandoned(1).await;

    // `cat` takes input, but its output is not read: the connection backs up, then the client leaves.
    let url = scene.exec("cat", IN_OUT);
    let mut client = Command::start(&url, V4, IN_OUT).await;
    let stdin = client.stdin;
    let flood = async {
        loop {
            let bytes = piece.clone().into();
            let fin = false;
            let frame = Frame::Data {
                stream: stdin,
                bytes,
                fin,
            };
            if client.spdy.try_send(frame).await.is_err() {
                return;
            }
        }
    };
    let held_up = tokio::time::timeout(Duration::from_secs(2), flood).await;
    assert!(held_up.is_err(), "the client could send for ever");
    drop(client);
    scene.abandoned(2).await;
}

#[tokio::test]
async fn a_client_that_leaves_ends_what_it_started() {
    let mut scene = Scene::new();
    let client = Command::start(&scene.exec("sleep", OUT), V4, OUT).await;
    scene.specs.recv().await.unwrap();
    drop(client);
    scene.abandoned(1).await;
}

#[tokio::test]
async fn the_end_of_the_daemon_ends_sessions() {
    let mut scene = Scene::new();
    let mut client = Command::start(&scene.exec("sleep", OUT), V4, OUT).await;
    scene.specs.recv().await.unwrap();
    scene.shutdown.cancel();
    scene.abandoned(1).await;
    while client.spdy.next().await.is_some() {}
}

#[tokio::test]
async fn a_client_that_opens_too_few_streams_is_told_so() {
    let limits = Limits {
        stream_creation: Duration::from_millis(50),
        ..Limits::default()
    };
    let scene = Scene::with(limits, None);
    let mut spdy = Spdy::dial(&scene.exec("cat", OUT), V4).await;
    let error = spdy.open_type("error").await;
    let got = spdy.collect(&[error]).await;
    let told = String::from_utf8(got[&error].clone()).unwrap();
    assert!(status(&told).1.contains("to open its streams"), "{told}");
}

#[tokio::test]
async fn streams_nobody_asked_for_are_reset_and_pings_answered() {
    let scene = Scene::new();
    let mut spdy = Spdy::dial(&scene.exec("cat", IN_OUT), V4).await;
    spdy.send(Frame::Ping(1)).await;
    let odd = spdy.open_type("colour").await;
    let mut seen = Vec::new();
    while seen.len() < 3 {
        seen.push(spdy.next().await.unwrap());
    }
    assert!(seen.contains(&Frame::Ping(1)), "{seen:?}");
    let reset = Frame::RstStream {
        stream: odd,
        status: 5,
    };
    assert!(seen.contains(&reset), "{seen:?}");
    // The session goes on.
    let mut client = Command::on(spdy, V4, IN_OUT).await;
    let stdin = client.stdin;
    client.spdy.data(stdin, "still here", true).await;
    assert_eq!(client.said().await.stdout, b"still here");
}

#[tokio::test]
async fn a_token_is_good_once_and_for_its_verb() {
    let scene = Scene::new();
    let dial = |url: String, protocols: &'static str| async move {
        let mut io = TcpStream::connect(split(&url).0).await.unwrap();
        upgrade(&mut io, &url, protocols).await
    };
    let url = scene.exec("print a b 0", OUT);
    assert_eq!(dial(url.clone(), V4).await.0, 101);
    assert_eq!(dial(url.clone(), V4).await.0, 404, "used");
    let url = scene.exec("print a b 0", OUT);
    let other = url.replace("/exec/", "/attach/");
    assert_eq!(dial(other, V4).await.0, 404);
    let (status, headers) = dial(scene.exec("print a b 0", OUT), "v9.channel.k8s.io").await;
    assert_eq!(status, 403);
    assert_eq!(
        headers["x-accepted-stream-protocol-versions"],
        "v4.channel.k8s.io,v3.channel.k8s.io,v2.channel.k8s.io,channel.k8s.io"
    );
    let url = scene.exec("print a b 0", OUT);
    let (address, path) = split(&url);
    let mut io = TcpStream::connect(address).await.unwrap();
    assert_eq!(request(&mut io, "GET", path, &[]).await.0, 400);
    let mut io = TcpStream::connect(address).await.unwrap();
    assert_eq!(request(&mut io, "DELETE", path, &[]).await.0, 405);
}

#[tokio::test]
async fn urls_are_absolute_and_can_be_dialled() {
    let scene = Scene::new();
    let url = scene.exec("cat", OUT);
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
    for wildcard in ["0.0.0.0:0", "[::]:0"] {
        let settings = springline::streaming::StreamingSettings {
            addr: wildcard.parse().unwrap(),
            tls: None,
            advertise: None,
            limits: Limits::default(),
        };
        let server = springline::streaming::StreamingServer::bind(settings).unwrap();
        let url = server.port_forward("s1", Vec::new()).unwrap();
        assert!(!url.contains("0.0.0.0") && !url.contains("[::]"), "{url}");
        TcpStream::connect(split(&url).0).await.expect(&url);
    }
}

#[tokio::test]
async fn over_tls_with_a_certificate_of_its_own() {
    let scene = Scene::with(Limits::default(), Some(TlsSettings::SelfMade));
    let url = scene.exec("print hello oops 3", OUT);
    assert!(url.starts_with("https://127.0.0.1:"), "{url}");
    let mut io = crate::hostile::tls(split(&url).0).await;
    assert_eq!(upgrade(&mut io, &url, V4).await.0, 101);
    let mut client = Command::on(Spdy::on(io), V4, OUT).await;
    let said = client.said().await;
    assert_eq!(
        (said.stdout.as_slice(), said.stderr.as_slice()),
        (&b"hello"[..], &b"oops"[..])
    );
    assert_eq!(status(&said.error), ("Failure".into(), "3".into()));
    // Plain HTTP there is refused, and nobody else suffers.
    let mut plain = TcpStream::connect(split(&url).0).await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut plain, b"GET / HTTP/1.1\r\n\r\n")
        .await
        .unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP"));
}

#[tokio::test]
async fn a_thousand_sessions_end_with_all_of_their_output() {
    let scene = Scene::new();
    for round in 0..1000 {
        let url = scene.exec("bytes 108894", OUT);
        let said = Command::start(&url, V4, OUT).await.said().await;
        assert_eq!(said.stdout.len(), 108_894, "round {round}");
    }
}

#[tokio::test]
async fn only_what_was_asked_for_is_sent() {
    let scene = Scene::new();
    let only_stdout = StreamSpec {
        stderr: false,
        ..OUT
    };
    let url = scene.exec("print hello oops 0", only_stdout);
    let said = Command::start(&url, V4, only_stdout).await.said().await;
    assert_eq!(
        (said.stdout.as_slice(), said.stderr.as_slice()),
        (&b"hello"[..], &b""[..])
    );
}
