//! A backend whose processes follow the words of their command, and a server in front of it.

use std::future::pending;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use springline::error::Error;
use springline::runtime::ports::{
    EngineError, ExecSpec, Output, Session, SessionControl, StreamBackend, StreamSpec, StreamUrls,
};
use springline::streaming::{Limits, StreamingServer, StreamingSettings, TlsSettings};
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tokio_util::io::ReaderStream;
use tokio_util::sync::{CancellationToken, DropGuard};

/// What the backend saw.
pub struct Seen {
    pub abandoned: watch::Sender<usize>,
    pub produced: AtomicUsize,
    pub specs: mpsc::UnboundedSender<StreamSpec>,
}

pub struct Backend(Arc<Seen>);

struct Control {
    seen: Arc<Seen>,
    code: i32,
    sizes: mpsc::UnboundedSender<Output>,
}

#[async_trait::async_trait]
impl SessionControl for Control {
    async fn resize(&self, width: u16, height: u16) -> Result<(), EngineError> {
        let size = Output::Stdout(format!("{width}x{height};").into());
        self.sizes.send(size).ok();
        Ok(())
    }

    async fn exit_code(&self) -> Result<i32, EngineError> {
        Ok(self.code)
    }

    async fn abandon(&self) {
        self.seen.abandoned.send_modify(|count| *count += 1);
    }
}

type Outputs = Pin<Box<dyn Stream<Item = io::Result<Output>> + Send>>;
type Stdin = Option<Pin<Box<dyn AsyncWrite + Send>>>;

impl Backend {
    /// A process: `print OUT ERR CODE`, `bytes COUNT`, `cat`, `sizes` (until the end of input), `breaks`, `sleep`.
    fn process(&self, words: &[&str], streams: StreamSpec) -> Session {
        let mut code = 0;
        let mut stdin: Stdin = None;
        let (sizes, mut size) = mpsc::unbounded_channel();
        let output: Outputs = match words {
            ["print", out, err, exit] => {
                code = exit.parse().unwrap();
                Box::pin(stream::iter([
                    Ok(Output::Stdout(Bytes::copy_from_slice(out.as_bytes()))),
                    Ok(Output::Stderr(Bytes::copy_from_slice(err.as_bytes()))),
                ]))
            }
            ["bytes", count] => self.bytes(count.parse().unwrap()),
            ["cat"] => {
                let (theirs, ours) = tokio::io::duplex(64 * 1024);
                if streams.stdin {
                    stdin = Some(Box::pin(theirs));
                }
                let copied = ReaderStream::with_capacity(ours, 32 * 1024);
                Box::pin(copied.map(|piece| piece.map(Output::Stdout)))
            }
            ["sizes"] => {
                let (theirs, mut ours) = tokio::io::duplex(1024);
                stdin = Some(Box::pin(theirs));
                let (out, pieces) = mpsc::unbounded_channel();
                tokio::spawn(async move {
                    let mut byte = [0];
                    loop {
                        tokio::select! {
                            biased;
                            Some(size) = size.recv() => out.send(Ok(size)).unwrap(),
                            _ = ours.read(&mut byte) => return,
                        }
                    }
                });
                Box::pin(UnboundedReceiverStream::new(pieces))
            }
            ["breaks"] => Box::pin(stream::iter([
                Ok(Output::Stdout("so far".into())),
                Err(io::Error::other("the engine hung up")),
            ])),
            ["sleep"] => Box::pin(stream::once(pending())),
            other => panic!("no such script: {other:?}"),
        };
        let control = Arc::new(Control {
            seen: Arc::clone(&self.0),
            code,
            sizes,
        });
        Session {
            stdin,
            output,
            control,
        }
    }
}

impl Backend {
    /// Bytes of a known pattern, counted as they are asked for.
    fn bytes(&self, count: usize) -> Outputs {
        let seen = Arc::clone(&self.0);
        Box::pin(stream::unfold(0, move |from| {
            let length = (count - from).min(32 * 1024);
            seen.produced.fetch_add(length, Ordering::Relaxed);
            let piece: Vec<u8> = (from..from + length).map(pattern).collect();
            std::future::ready(
                (length > 0).then(|| (Ok(Output::Stdout(piece.into())), from + length)),
            )
        }))
    }
}

/// The byte at a position of the output of `bytes`.
pub fn pattern(position: usize) -> u8 {
    (position % 251) as u8
}

#[async_trait::async_trait]
impl StreamBackend for Backend {
    async fn exec(&self, container_id: &str, spec: &ExecSpec) -> Result<Session, Error> {
        if container_id != "c1" {
            return Err(Error::NotFound {
                what: "container",
                id: container_id.to_owned(),
            });
        }
        self.0.specs.send(spec.streams).ok();
        let words: Vec<&str> = spec.cmd.iter().map(String::as_str).collect();
        Ok(self.process(&words, spec.streams))
    }

    async fn attach(&self, container_id: &str, streams: StreamSpec) -> Result<Session, Error> {
        assert_eq!(container_id, "c1");
        Ok(self.process(&["cat"], streams))
    }

    async fn dial(&self, sandbox_id: &str, port: u16) -> Result<TcpStream, Error> {
        assert_eq!(sandbox_id, "s1");
        let connected = TcpStream::connect(("127.0.0.1", port)).await;
        connected.map_err(|error| Error::Internal(error.to_string()))
    }
}

/// A server in front of the backend; it ends with this value.
pub struct Scene {
    pub server: Arc<StreamingServer>,
    pub seen: Arc<Seen>,
    pub specs: mpsc::UnboundedReceiver<StreamSpec>,
    pub shutdown: CancellationToken,
    _ends: DropGuard,
}

impl Scene {
    pub fn new() -> Self {
        Self::with(Limits::default(), None)
    }

    pub fn with(limits: Limits, tls: Option<TlsSettings>) -> Self {
        let settings = StreamingSettings {
            addr: ([127, 0, 0, 1], 0).into(),
            tls,
            advertise: None,
            limits,
        };
        let server = StreamingServer::bind(settings).unwrap();
        let (specs, specs_seen) = mpsc::unbounded_channel();
        let seen = Arc::new(Seen {
            abandoned: watch::Sender::new(0),
            produced: AtomicUsize::new(0),
            specs,
        });
        let shutdown = CancellationToken::new();
        let ends = shutdown.clone().cancelled_owned();
        let backend = Arc::new(Backend(Arc::clone(&seen)));
        let served = Arc::clone(&server);
        tokio::spawn(async move { served.serve(backend, ends).await.unwrap() });
        Self {
            server,
            seen,
            specs: specs_seen,
            shutdown: shutdown.clone(),
            _ends: shutdown.drop_guard(),
        }
    }

    /// A URL for the script, with the streams that it needs.
    pub fn exec(&self, words: &str, streams: StreamSpec) -> String {
        let cmd = words.split(' ').map(str::to_owned).collect();
        self.server.exec("c1", ExecSpec { cmd, streams }).unwrap()
    }

    /// Ends once this many sessions were abandoned.
    pub async fn abandoned(&self, count: usize) {
        let mut seen = self.seen.abandoned.subscribe();
        seen.wait_for(|seen| *seen >= count).await.unwrap();
    }
}

pub const OUT: StreamSpec = StreamSpec {
    stdin: false,
    stdout: true,
    stderr: true,
    tty: false,
};
pub const IN_OUT: StreamSpec = StreamSpec { stdin: true, ..OUT };
pub const TTY: StreamSpec = StreamSpec {
    stdin: true,
    stdout: true,
    stderr: false,
    tty: true,
};
