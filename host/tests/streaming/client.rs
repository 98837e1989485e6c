//! A client of our own: HTTP by hand, SPDY frame by frame.

use std::collections::HashMap;
use std::io;

use bytes::{Bytes, BytesMut};
use springline::streaming::spdy::{Decoded, Decoder, Encoder, Frame};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

pub trait Io: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for T {}

/// Address and path of a URL.
pub fn split(url: &str) -> (&str, &str) {
    let rest = url.split_once("://").unwrap().1;
    let slash = rest.find('/').unwrap();
    rest.split_at(slash)
}

/// Sends a request and reads the head of the answer: status and headers in lower case.
pub async fn request(
    io: &mut (impl AsyncRead + AsyncWrite + Unpin),
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> (u16, HashMap<String, String>) {
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: node\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    io.write_all(head.as_bytes()).await.unwrap();
    answer(io).await.expect("an answer")
}

pub async fn answer(io: &mut (impl AsyncRead + Unpin)) -> Option<(u16, HashMap<String, String>)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(io.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let mut lines = head.lines();
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let mut headers: HashMap<String, String> = HashMap::new();
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        let values = headers.entry(name.to_lowercase()).or_default();
        if !values.is_empty() {
            values.push(',');
        }
        values.push_str(value);
    }
    Some((status, headers))
}

pub async fn upgrade(
    io: &mut (impl AsyncRead + AsyncWrite + Unpin),
    url: &str,
    protocols: &str,
) -> (u16, HashMap<String, String>) {
    let mut headers = vec![("Connection", "Upgrade"), ("Upgrade", "SPDY/3.1")];
    if !protocols.is_empty() {
        headers.push(("X-Stream-Protocol-Version", protocols));
    }
    request(io, "POST", split(url).1, &headers).await
}

/// A SPDY client.
pub struct Spdy {
    io: Box<dyn Io>,
    encoder: Encoder,
    decoder: Decoder,
    input: BytesMut,
    next: u32,
    /// Takes part in flow control.
    pub updates: bool,
}

impl Spdy {
    pub async fn dial(url: &str, protocol: &str) -> Self {
        let mut io = TcpStream::connect(split(url).0).await.unwrap();
        let (status, headers) = upgrade(&mut io, url, protocol).await;
        assert_eq!(status, 101, "{headers:?}");
        if !protocol.is_empty() {
            assert_eq!(headers["x-stream-protocol-version"], protocol);
        }
        assert_eq!(headers["upgrade"], "SPDY/3.1");
        Self::on(io)
    }

    pub fn on(io: impl Io + 'static) -> Self {
        Self {
            io: Box::new(io),
            encoder: Encoder::new().unwrap(),
            decoder: Decoder::default(),
            input: BytesMut::new(),
            next: 1,
            updates: false,
        }
    }

    pub async fn send(&mut self, frame: Frame) {
        self.try_send(frame).await.unwrap();
    }

    pub async fn try_send(&mut self, frame: Frame) -> io::Result<()> {
        let mut out = BytesMut::new();
        self.encoder.encode(&frame, &mut out).unwrap();
        self.io.write_all(&out).await?;
        self.io.flush().await
    }

    pub async fn raw(&mut self, bytes: &[u8]) {
        self.io.write_all(bytes).await.unwrap();
    }

    /// Opens a stream without waiting for its reply.
    pub async fn open(&mut self, headers: &[(&str, &str)]) -> u32 {
        let stream = self.next;
        self.next += 2;
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let headers = headers.iter().map(owned).collect();
        self.send(Frame::SynStream {
            stream,
            fin: false,
            unidirectional: false,
            headers,
        })
        .await;
        stream
    }

    pub async fn open_type(&mut self, kind: &str) -> u32 {
        self.open(&[("streamtype", kind)]).await
    }

    pub async fn data(&mut self, stream: u32, bytes: impl Into<Bytes>, fin: bool) {
        let bytes = bytes.into();
        self.send(Frame::Data { stream, bytes, fin }).await;
    }

    /// The next frame; `None` at the end of the connection.
    pub async fn next(&mut self) -> Option<Frame> {
        loop {
            match self.decoder.decode(&mut self.input).expect("SPDY") {
                Some(Decoded::Frame(frame)) => {
                    if let Frame::Data { stream, bytes, .. } = &frame
                        && self.updates
                        && !bytes.is_empty()
                    {
                        let delta = u32::try_from(bytes.len()).unwrap();
                        for stream in [*stream, 0] {
                            let _ = self.try_send(Frame::WindowUpdate { stream, delta }).await;
                        }
                    }
                    return Some(frame);
                }
                Some(broken) => panic!("{broken:?}"),
                None => {}
            }
            match self.io.read_buf(&mut self.input).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// The next frame that is not of flow control, nor a reply.
    pub async fn next_event(&mut self) -> Option<Frame> {
        loop {
            match self.next().await? {
                Frame::WindowUpdate { .. } | Frame::SynReply { .. } => {}
                Frame::Ping(id) if id % 2 == 0 => self.send(Frame::Ping(id)).await,
                frame => return Some(frame),
            }
        }
    }

    /// Reads until the given streams have ended: what each carried.
    pub async fn collect(&mut self, streams: &[u32]) -> HashMap<u32, Vec<u8>> {
        let mut got: HashMap<u32, Vec<u8>> = streams.iter().map(|id| (*id, Vec::new())).collect();
        let mut open = streams.len();
        while open > 0 {
            match self
                .next_event()
                .await
                .expect("streams end before the connection")
            {
                Frame::Data { stream, bytes, fin } => {
                    if let Some(got) = got.get_mut(&stream) {
                        got.extend_from_slice(&bytes);
                        open -= usize::from(fin);
                    }
                }
                other => panic!("{other:?}"),
            }
        }
        got
    }
}

/// A command's client with all its streams; 0 = not opened.
pub struct Command {
    pub spdy: Spdy,
    pub error: u32,
    pub stdin: u32,
    pub stdout: u32,
    pub stderr: u32,
    pub resize: u32,
}

/// What a command said.
#[derive(Debug, PartialEq, Eq)]
pub struct Said {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub error: String,
}

impl Command {
    pub async fn start(
        url: &str,
        protocol: &str,
        streams: springline::runtime::ports::StreamSpec,
    ) -> Self {
        Self::on(Spdy::dial(url, protocol).await, protocol, streams).await
    }

    pub async fn on(
        mut spdy: Spdy,
        protocol: &str,
        streams: springline::runtime::ports::StreamSpec,
    ) -> Self {
        let resizes = streams.tty && (protocol.starts_with("v3") || protocol.starts_with("v4"));
        let mut ids = [0; 5];
        let wanted = [
            ("error", true),
            ("stdin", streams.stdin),
            ("stdout", streams.stdout),
            ("stderr", streams.stderr && !streams.tty),
            ("resize", resizes),
        ];
        for (id, (kind, wanted)) in ids.iter_mut().zip(wanted) {
            if wanted {
                *id = spdy.open_type(kind).await;
            }
        }
        let [error, stdin, stdout, stderr, resize] = ids;
        Self {
            spdy,
            error,
            stdin,
            stdout,
            stderr,
            resize,
        }
    }

    /// Everything that it says, to its end.
    pub async fn said(&mut self) -> Said {
        let streams: Vec<u32> = [self.stdout, self.stderr, self.error]
            .into_iter()
            .filter(|id| *id > 0)
            .collect();
        let mut got = self.spdy.collect(&streams).await;
        Said {
            stdout: got.remove(&self.stdout).unwrap_or_default(),
            stderr: got.remove(&self.stderr).unwrap_or_default(),
            error: String::from_utf8(got.remove(&self.error).unwrap()).unwrap(),
        }
    }
}
