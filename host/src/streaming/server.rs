//! The server itself: its address, its URLs, its connections until each has become a session.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::net::sockopt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::limits::Limits;
use super::newcomers::Newcomers;
use super::session::{Around, Request};
use super::socket::{Socket, Tcp};
use super::tls::{self, TlsError, TlsSettings};
use super::tokens::Tokens;
use super::upgrade;
use crate::config::Config;
use crate::error::Error;
use crate::runtime::ports::{ExecSpec, StreamBackend, StreamSpec, StreamUrls};

/// How long sessions get at the daemon's end to let go of what they started.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// After how long without a sign of life a client's machine is asked for one.
const KEEPALIVE: Duration = Duration::from_secs(60);
/// How long to wait when no connection can be accepted, as when file descriptors are used up.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How the server is set up.
#[derive(Debug, Clone)]
pub struct StreamingSettings {
    /// Where to listen; port 0 = any free one.
    pub addr: SocketAddr,
    /// TLS, unless plain HTTP will do.
    pub tls: Option<TlsSettings>,
    /// The address in URLs. `None`: the one listened on, or the node's own when that is a wildcard.
    pub advertise: Option<IpAddr>,
    /// What clients may cost.
    pub limits: Limits,
}

impl StreamingSettings {
    /// What the node's configuration says, with the usual limits.
    ///
    /// # Errors
    /// When only one of certificate and key is given, or either while TLS is off.
    pub fn from_config(config: &Config) -> Result<Self, StreamingError> {
        let files = (&config.streaming_tls_cert, &config.streaming_tls_key);
        let tls = match (config.streaming_tls, files) {
            (false, (None, None)) => None,
            (true, (None, None)) => Some(TlsSettings::SelfMade),
            (true, (Some(cert), Some(key))) => Some(TlsSettings::Files {
                cert: cert.clone(),
                key: key.clone(),
            }),
            (true, _) => {
                return Err(StreamingError::Settings(
                    "streaming-tls-cert and streaming-tls-key need each other",
                ));
            }
            (false, _) => {
                return Err(StreamingError::Settings(
                    "a certificate or key for streaming is given, but streaming-tls is off",
                ));
            }
        };
        Ok(Self {
            addr: config.streaming_bind_addr,
            tls,
            advertise: None,
            limits: Limits::default(),
        })
    }
}

/// Why the server cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum StreamingError {
    /// The address cannot be listened on.
    #[error("cannot listen for streams on {addr}: {source}")]
    Bind {
        /// Which address.
        addr: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// TLS.
    #[error("cannot serve streams with TLS: {0}")]
    Tls(#[from] TlsError),
    /// Settings that contradict each other.
    #[error("{0}")]
    Settings(&'static str),
    /// It was served already.
    #[error("the streaming server was served before")]
    Served,
}

/// The streaming server. It listens from [`bind`](Self::bind) on, and answers from [`serve`](Self::serve) on.
pub struct StreamingServer {
    pub(super) tokens: Tokens<Request>,
    pub(super) sessions: Arc<Semaphore>,
    listener: Mutex<Option<std::net::TcpListener>>,
    tls: Option<TlsAcceptor>,
    base: String,
    limits: Limits,
}

impl StreamingServer {
    /// Listens.
    ///
    /// # Errors
    /// When the address is taken or not ours, or the certificate cannot be used.
    pub fn bind(settings: StreamingSettings) -> Result<Arc<Self>, StreamingError> {
        let addr = settings.addr;
        let bound = || {
            let listener = std::net::TcpListener::bind(addr)?;
            listener.set_nonblocking(true)?;
            let port = listener.local_addr()?.port();
            Ok((listener, port))
        };
        let (listener, port) = bound().map_err(|source| StreamingError::Bind { addr, source })?;
        let host = settings.advertise.unwrap_or_else(|| dialable(addr.ip()));
        let tls = settings
            .tls
            .as_ref()
            .map(|tls| tls::acceptor(tls, host))
            .transpose()?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let limits = settings.limits;
        Ok(Arc::new(Self {
            tokens: Tokens::new(limits.tokens, limits.token_life),
            sessions: Arc::new(Semaphore::new(limits.sessions)),
            listener: Mutex::new(Some(listener)),
            tls,
            base: format!("{scheme}://{}", SocketAddr::new(host, port)),
            limits,
        }))
    }

    /// What all URLs begin with.
    pub fn base_url(&self) -> &str {
        &self.base
    }

    /// Serves until `shutdown`; sessions end then as if their clients had gone.
    ///
    /// # Errors
    /// When it was served before.
    pub async fn serve(
        self: Arc<Self>,
        backend: Arc<dyn StreamBackend>,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), StreamingError> {
        let listener = self.take_listener()?;
        let stop = CancellationToken::new();
        let around = Arc::new(Around {
            backend,
            limits: self.limits.clone(),
            stop: stop.clone(),
        });
        let sessions = TaskTracker::new();
        let newcomers = Newcomers::new(self.limits.newcomers);
        tokio::pin!(shutdown);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = &mut shutdown => break,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "a streaming client cannot be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let newcomer = newcomers.admit();
            let welcomed = Arc::clone(&self).welcome(stream, Arc::clone(&around), sessions.clone());
            let stop = stop.clone();
            sessions.spawn(async move {
                tokio::select! {
                    () = welcomed => {}
                    () = newcomer.evicted.cancelled() => {
                        tracing::info!("too many streaming clients show no token; the oldest is dropped");
                    }
                    () = stop.cancelled() => {}
                }
            });
        }
        stop.cancel();
        sessions.close();
        if tokio::time::timeout(LAST_WORDS, sessions.wait())
            .await
            .is_err()
        {
            tracing::warn!("streaming sessions were still running at the end");
        }
        Ok(())
    }

    fn take_listener(&self) -> Result<TcpListener, StreamingError> {
        let taken = self
            .listener
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let listener = taken.ok_or(StreamingError::Served)?;
        let addr = listener.local_addr().ok();
        TcpListener::from_std(listener).map_err(|source| StreamingError::Bind {
            addr: addr.unwrap_or_else(|| SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))),
            source,
        })
    }

    /// A client until its session begins, or its time is up.
    async fn welcome(
        self: Arc<Self>,
        stream: TcpStream,
        around: Arc<Around>,
        sessions: TaskTracker,
    ) {
        // Neither is worth a refusal. The second finds clients whose machine went away without a word.
        let _ = stream.set_nodelay(true);
        let _ = sockopt::set_socket_keepalive(&stream, true)
            .and_then(|()| sockopt::set_tcp_keepidle(&stream, KEEPALIVE));
        let tcp = Tcp::new(stream);
        let time = self.limits.head_time;
        let socket = match &self.tls {
            None => Socket::plain(tcp),
            Some(tls) => match tokio::time::timeout(time, tls.accept(tcp)).await {
                Ok(Ok(stream)) => Socket::tls(stream),
                Ok(Err(error)) => return tracing::debug!(%error, "no TLS with a streaming client"),
                Err(_) => return,
            },
        };
        let head_bytes = self.limits.head_bytes;
        let service = service_fn(move |request| {
            upgrade::answer(
                Arc::clone(&self),
                Arc::clone(&around),
                sessions.clone(),
                request,
            )
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(time)
            .max_buf_size(head_bytes)
            .serve_connection(TokioIo::new(socket), service)
            .with_upgrades();
        if let Ok(Err(error)) = tokio::time::timeout(time * 2, connection).await {
            tracing::debug!(%error, "a streaming client makes no sense");
        }
    }

    fn url(&self, request: Request) -> Result<String, Error> {
        let verb = request.verb();
        let token = self.tokens.issue(request)?;
        Ok(format!("{}/{verb}/{token}", self.base))
    }
}

impl StreamUrls for StreamingServer {
    fn exec(&self, container_id: &str, spec: ExecSpec) -> Result<String, Error> {
        let container = container_id.to_owned();
        self.url(Request::Exec { container, spec })
    }

    fn attach(&self, container_id: &str, streams: StreamSpec) -> Result<String, Error> {
        let container = container_id.to_owned();
        self.url(Request::Attach { container, streams })
    }

    fn port_forward(&self, sandbox_id: &str, ports: Vec<u16>) -> Result<String, Error> {
        let sandbox = sandbox_id.to_owned();
        self.url(Request::PortForward { sandbox, ports })
    }
}

/// The address itself, or for a wildcard the one from which this node would talk to the world.
fn dialable(listening: IpAddr) -> IpAddr {
    if !listening.is_unspecified() {
        return listening;
    }
    // Connecting a datagram socket sends nothing; it asks the kernel which way it would go. The far ends are addresses
    // that are set aside for documentation.
    let far_v4 = SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1), 9));
    let far_v6 = SocketAddr::from((Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1), 9));
    let (any_v4, any_v6) = (
        SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    );
    let own = |from: SocketAddr, far: SocketAddr| {
        let socket = UdpSocket::bind(from).ok()?;
        socket.connect(far).ok()?;
        let own = socket.local_addr().ok()?.ip();
        (!own.is_unspecified()).then_some(own)
    };
    // An IPv6 wildcard takes IPv4 clients as well.
    let found =
        own(any_v4, far_v4).or_else(|| listening.is_ipv6().then(|| own(any_v6, far_v6)).flatten());
    found.unwrap_or(if listening.is_ipv6() {
        IpAddr::from(Ipv6Addr::LOCALHOST)
    } else {
        IpAddr::from(Ipv4Addr::LOCALHOST)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_configuration_says_of_tls() {
        let config = |on, cert: bool, key: bool| Config {
            streaming_tls: on,
            streaming_tls_cert: cert.then(|| "/c".into()),
            streaming_tls_key: key.then(|| "/k".into()),
            ..Config::default()
        };
        let tls = |on, cert, key| {
            let settings = StreamingSettings::from_config(&config(on, cert, key));
            settings.map(|settings| settings.tls)
        };
        assert_eq!(tls(false, false, false).unwrap(), None);
        assert_eq!(
            tls(true, false, false).unwrap(),
            Some(TlsSettings::SelfMade)
        );
        let files = TlsSettings::Files {
            cert: "/c".into(),
            key: "/k".into(),
        };
        assert_eq!(tls(true, true, true).unwrap(), Some(files));
        for (on, cert, key) in [
            (true, true, false),
            (true, false, true),
            (false, true, true),
        ] {
            assert!(tls(on, cert, key).is_err(), "{on} {cert} {key}");
        }
    }
}
