//! A session from its upgraded connection to its end: which streams belong to what, in each protocol.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::command::{self, Channels};
use super::forward::{Pair, forward};
use super::limits::Limits;
use super::protocol::{Codec, Forward, Version};
use super::socket::Socket;
use super::spdy::{self, HangUp, NewStream};
use super::stream::{Incoming, Outgoing};
use super::websocket::{self, Direction, Halves, Tunnel};
use crate::error::Error;
use crate::runtime::ports::{ExecSpec, Session, StreamBackend, StreamSpec};

/// What a token stands for.
#[derive(Debug, Clone)]
pub(super) enum Request {
    /// Run a command.
    Exec { container: String, spec: ExecSpec },
    /// Attach to a container's process.
    Attach {
        container: String,
        streams: StreamSpec,
    },
    /// Forward ports of a sandbox.
    PortForward { sandbox: String, ports: Vec<u16> },
}

impl Request {
    /// The first part of its URL's path.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Exec { .. } => "exec",
            Self::Attach { .. } => "attach",
            Self::PortForward { .. } => "portforward",
        }
    }
}

/// A process that a client wants to talk to.
pub(super) enum Command {
    /// A new one.
    Exec { container: String, spec: ExecSpec },
    /// A container's own.
    Attach {
        container: String,
        streams: StreamSpec,
    },
}

impl Command {
    fn streams(&self) -> StreamSpec {
        match self {
            Self::Exec { spec, .. } => spec.streams,
            Self::Attach { streams, .. } => *streams,
        }
    }

    async fn begin(&self, backend: &dyn StreamBackend) -> Result<Session, Error> {
        match self {
            Self::Exec { container, spec } => backend.exec(container, spec).await,
            Self::Attach { container, streams } => backend.attach(container, *streams).await,
        }
    }
}

/// What every session needs.
pub(super) struct Around {
    pub backend: Arc<dyn StreamBackend>,
    pub limits: Limits,
    /// The daemon ends.
    pub stop: CancellationToken,
}

impl Around {
    /// The end of the daemon ends the session as the client's going does.
    fn tie(&self, gone: CancellationToken) -> AbortOnDropHandle<()> {
        let stop = self.stop.clone();
        AbortOnDropHandle::new(tokio::spawn(async move {
            stop.cancelled().await;
            gone.cancel();
        }))
    }
}

/// Exec and attach over SPDY.
pub(super) async fn spdy_command(
    around: &Around,
    socket: Socket,
    command: Command,
    version: Version,
) {
    let hang_up = socket.hang_up();
    let (connection, mut opened) = spdy::serve(socket, &around.limits, Some(hang_up));
    let gone = connection.gone();
    let _tied = around.tie(gone.clone());
    let mut gathered = Gathered::default();
    let complete = async {
        while !gathered.is_complete(command.streams(), version) {
            match opened.recv().await {
                Some(stream) => gathered.add(stream),
                None => return false,
            }
        }
        true
    };
    let complete = tokio::select! {
        complete = tokio::time::timeout(around.limits.stream_creation, complete) => complete,
        () = gone.cancelled() => return,
    };
    drop(opened);
    let begin = async {
        match complete {
            Ok(true) => command.begin(around.backend.as_ref()).await,
            _ => Err(Error::Deadline("for the client to open its streams".into())),
        }
    };
    let open = command::serve(begin, gathered.channels(version), gone).await;
    connection.close().await;
    drop(open);
}

/// The streams of one command, as the client opens them.
#[derive(Default)]
struct Gathered {
    streams: HashMap<&'static str, (Incoming, Outgoing)>,
}

const TYPES: [&str; 5] = ["error", "stdin", "stdout", "stderr", "resize"];

impl Gathered {
    /// One of no known type, or the second of its type, is dropped, which resets it.
    fn add(&mut self, stream: NewStream) {
        let named = stream.header("streamtype").unwrap_or_default();
        let known = TYPES.into_iter().find(|known| *known == named);
        if let Some(known) = known
            && !self.streams.contains_key(known)
        {
            let halves = (stream.incoming, stream.outgoing);
            self.streams.insert(known, halves);
        }
    }

    fn is_complete(&self, wanted: StreamSpec, version: Version) -> bool {
        let has = |name| self.streams.contains_key(name);
        has("error")
            && (!wanted.stdin || has("stdin"))
            && (!wanted.stdout || has("stdout"))
            && (!wanted.stderr || wanted.tty || has("stderr"))
            && (!wanted.tty || !version.has_resize() || has("resize"))
    }

    fn channels(mut self, version: Version) -> Channels {
        let mut idle = Vec::new();
        let mut input = |gathered: &mut Self, name| {
            let (incoming, outgoing) = gathered.streams.remove(name)?;
            idle.push(outgoing);
            Some(incoming)
        };
        let stdin = input(&mut self, "stdin");
        let resize = input(&mut self, "resize");
        let mut output = |name| self.streams.remove(name).map(|(_, outgoing)| outgoing);
        Channels {
            stdin,
            resize,
            stdout: output("stdout"),
            stderr: output("stderr"),
            error: output("error"),
            idle,
            form: version.form(),
        }
    }
}

/// Exec and attach over WebSocket.
pub(super) async fn websocket_command(
    around: &Around,
    socket: Socket,
    command: Command,
    version: Version,
    codec: Codec,
) {
    let wanted = command.streams();
    let when = |wanted, direction| if wanted { direction } else { Direction::Unused };
    let directions = [
        when(wanted.stdin, Direction::In),
        when(wanted.stdout, Direction::Out),
        when(wanted.stderr && !wanted.tty, Direction::Out),
        Direction::Out,
        when(wanted.tty, Direction::In),
    ];
    let websocket = websocket::on(socket).await;
    let can_close = version >= Version::V5;
    let (connection, channels) =
        websocket::serve(websocket, codec, can_close, &directions, &around.limits);
    let gone = connection.gone();
    let _tied = around.tie(gone.clone());
    let Ok([stdin, stdout, stderr, error, resize]) = <[Halves; 5]>::try_from(channels) else {
        return;
    };
    let mut channels = Channels {
        stdin: stdin.incoming,
        stdout: stdout.outgoing,
        stderr: stderr.outgoing,
        error: error.outgoing,
        resize: resize.incoming,
        idle: Vec::new(),
        form: version.form(),
    };
    // An empty message on the first channel of ours tells the client that it is connected, as the kubelet does.
    let first = [
        &mut channels.stdout,
        &mut channels.stderr,
        &mut channels.error,
    ];
    if let Some(channel) = first.into_iter().flatten().next() {
        let _ = channel.greet().await;
    }
    let begin = command.begin(around.backend.as_ref());
    command::serve(begin, channels, gone).await;
    connection.close().await;
}

/// Port-forward over SPDY, or over SPDY in a WebSocket.
pub(super) async fn spdy_forward(around: &Around, socket: Socket, sandbox: String, tunnel: bool) {
    let hang_up = socket.hang_up();
    if tunnel {
        let tunnel = Tunnel::new(websocket::on(socket).await);
        spdy_pairs(around, tunnel, hang_up, sandbox).await;
    } else {
        spdy_pairs(around, socket, hang_up, sandbox).await;
    }
}

async fn spdy_pairs<T>(around: &Around, io: T, hang_up: HangUp, sandbox: String)
where
    T: AsyncRead + AsyncWrite + Send + 'static,
{
    let (connection, mut opened) = spdy::serve(io, &around.limits, Some(hang_up));
    let gone = connection.gone();
    let _tied = around.tie(gone.clone());
    let sandbox: Arc<str> = sandbox.into();
    let mut running = JoinSet::new();
    let mut pairs = Pairs::default();
    loop {
        let next_late = pairs.next_late(&around.limits);
        tokio::select! {
            () = gone.cancelled() => return,
            Some(_) = running.join_next() => {}
            () = sleep_until(next_late.unwrap_or_else(Instant::now)), if next_late.is_some() => {
                pairs.drop_late(&around.limits);
            }
            stream = next(&mut opened) => if let Some(pair) = pairs.add(stream) {
                running.spawn(forward(Arc::clone(&around.backend), Arc::clone(&sandbox), pair));
            }
        }
    }
}

/// The reader holds the other end, so no more streams means that the connection is ending: that is told by its token.
async fn next(opened: &mut mpsc::Receiver<NewStream>) -> NewStream {
    match opened.recv().await {
        Some(stream) => stream,
        None => std::future::pending().await,
    }
}

/// Streams whose partner has not been opened yet.
#[derive(Default)]
struct Pairs(HashMap<String, (Instant, bool, NewStream)>);

impl Pairs {
    /// Takes a stream; gives a pair when its partner was there. A stream that makes no sense is dropped, which resets it.
    fn add(&mut self, stream: NewStream) -> Option<Pair> {
        let is_error = match stream.header("streamtype") {
            Some("error") => true,
            Some("data") => false,
            _ => return None,
        };
        let port = stream.header("port").and_then(|port| port.parse().ok());
        port.filter(|port: &u16| *port > 0)?;
        let id = stream.header("requestid").map(str::to_owned);
        // Very old clients name no request: they open the error stream first, the data stream right after it.
        let id = id.unwrap_or_else(|| {
            format!(
                "#{}",
                stream.id().saturating_sub(if is_error { 0 } else { 2 })
            )
        });
        let (error, data) = match self.0.remove(&id) {
            None => {
                self.0.insert(id, (Instant::now(), is_error, stream));
                return None;
            }
            Some((_, true, error)) if !is_error => (error, stream),
            Some((_, false, data)) if is_error => (stream, data),
            Some(first) => {
                self.0.insert(id, first); // the second of its kind
                return None;
            }
        };
        let port = data.header("port")?.parse().ok()?;
        Some(Pair {
            port,
            incoming: data.incoming,
            data: data.outgoing,
            error: error.outgoing,
        })
    }

    fn next_late(&self, limits: &Limits) -> Option<Instant> {
        let first = self.0.values().map(|(since, ..)| *since).min()?;
        Some(first + limits.stream_creation)
    }

    fn drop_late(&mut self, limits: &Limits) {
        self.0
            .retain(|_, (since, ..)| since.elapsed() < limits.stream_creation);
    }
}

/// Port-forward over the channels of a WebSocket: two for each port of the request.
pub(super) async fn channel_forward(
    around: &Around,
    socket: Socket,
    sandbox: String,
    ports: &[u16],
    codec: Codec,
) {
    let directions: Vec<Direction> = ports
        .iter()
        .flat_map(|_| [Direction::Both, Direction::Out])
        .collect();
    let websocket = websocket::on(socket).await;
    let (connection, channels) =
        websocket::serve(websocket, codec, false, &directions, &around.limits);
    let gone = connection.gone();
    let _tied = around.tie(gone.clone());
    let sandbox: Arc<str> = sandbox.into();
    let mut running = JoinSet::new();
    let mut channels = channels.into_iter();
    for port in ports {
        let (Some(data), Some(error)) = (channels.next(), channels.next()) else {
            return;
        };
        let (Some(incoming), Some(mut data), Some(mut error)) =
            (data.incoming, data.outgoing, error.outgoing)
        else {
            return;
        };
        // Both channels begin with the port that they are for.
        for channel in [&mut data, &mut error] {
            let named = port.to_le_bytes().to_vec();
            if channel.send(named.into()).await.is_err() {
                return;
            }
        }
        let pair = Pair {
            port: *port,
            incoming,
            data,
            error,
        };
        let backend = Arc::clone(&around.backend);
        running.spawn(forward(backend, Arc::clone(&sandbox), pair));
    }
    tokio::select! {
        () = gone.cancelled() => return,
        () = async { while running.join_next().await.is_some() {} } => {}
    }
    connection.close().await;
}

/// Port-forward over WebSocket in either way.
pub(super) async fn websocket_forward(
    around: &Around,
    socket: Socket,
    sandbox: String,
    ports: &[u16],
    how: Forward,
) {
    match how {
        Forward::Tunnel => spdy_forward(around, socket, sandbox, true).await,
        Forward::Channels(codec) => channel_forward(around, socket, sandbox, ports, codec).await,
    }
}
