//! A live connection, the server's side of it: one reader, one writer, streams as the client opens them.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::decode::{Decoded, Decoder};
use super::frame::{Frame, HeaderList, RstStatus, SETTINGS_INITIAL_WINDOW_SIZE, SpdyError};
use super::state::{ASK, Shared, StreamState};
use super::writer::{self, Queues};
use crate::streaming::limits::Limits;
use crate::streaming::stream::{Budget, End, Inbox, Incoming, Outbound, Outgoing, Pace, QUEUE};

/// Streams that wait to be looked at.
const BACKLOG: usize = 64;
/// How often a client that is not read from is looked after.
const LOOK: Duration = Duration::from_secs(1);
/// How long a client that has got everything may take to close first; the Go clients do so at once.
const CLIENT_FIRST: Duration = Duration::from_secs(2);

/// Tells whether the client has closed its side, though not all that it sent was read.
pub type HangUp = Arc<dyn Fn() -> bool + Send + Sync>;

/// A stream that the client opened; the reply has been sent. Dropping it resets it.
pub struct NewStream {
    /// What the client says it is for.
    pub headers: HeaderList,
    pub(in crate::streaming) incoming: Incoming,
    pub(in crate::streaming) outgoing: Outgoing,
}

impl NewStream {
    /// Its number.
    pub fn id(&self) -> u32 {
        self.outgoing.stream()
    }

    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// A live connection. Dropping it ends it at once.
pub struct Connection<T> {
    shared: Arc<Shared>,
    data: mpsc::Sender<Outbound>,
    reader: JoinHandle<()>,
    writer: Option<JoinHandle<Option<WriteHalf<T>>>>,
    linger: Duration,
}

/// Begins to serve a client on a byte stream.
pub fn serve<T>(
    io: T,
    limits: &Limits,
    hang_up: Option<HangUp>,
) -> (Connection<T>, mpsc::Receiver<NewStream>)
where
    T: AsyncRead + AsyncWrite + Send + 'static,
{
    let (controls, control_queue) = mpsc::unbounded_channel();
    let (data, data_queue) = mpsc::channel(QUEUE);
    let (opened, streams) = mpsc::channel(BACKLOG);
    let shared = Shared::new(controls);
    let (read, write) = tokio::io::split(io);

    let reader = Reader {
        shared: Arc::clone(&shared),
        budget: Budget::new(limits.connection_buffer, limits.stream_buffer),
        data: data.clone(),
        opened,
        hang_up,
        last_stream: 0,
        going_away: false,
        max_streams: limits.streams,
    };
    let idle = limits.idle;
    let reader = tokio::spawn(async move {
        let shared = Arc::clone(&reader.shared);
        tokio::select! {
            ended = reader.read(read) => if let Err(error) = ended {
                tracing::debug!(%error, "a SPDY connection ends");
            },
            () = shared.activity.idle_for(idle) => tracing::info!("an idle SPDY connection is ended"),
        }
        shared.end_all();
    });
    let queues = Queues {
        controls: control_queue,
        data: data_queue,
    };
    let for_writer = Arc::clone(&shared);
    let writer = tokio::spawn(async move {
        match writer::write(write, queues, &for_writer).await {
            Ok(write) => Some(write),
            Err(error) => {
                tracing::debug!(%error, "a SPDY connection cannot be written");
                for_writer.end_all();
                None
            }
        }
    });
    let connection = Connection {
        shared,
        data,
        reader,
        writer: Some(writer),
        linger: limits.linger,
    };
    (connection, streams)
}

impl<T> Connection<T>
where
    T: AsyncRead + AsyncWrite + Send + 'static,
{
    /// Cancelled when the connection has ended, whoever ended it.
    pub fn gone(&self) -> CancellationToken {
        self.shared.gone.clone()
    }

    /// Ends it in order: what was sent arrives in full, however slow the client is. Whatever the client still sends is
    /// read and thrown away first: closing a socket with unread bytes would make the kernel drop what is under way.
    pub async fn close(mut self) {
        let gone = self.gone();
        let ended = async {
            self.data.send(Outbound::End).await.ok()?;
            self.writer.take()?.await.ok().flatten()
        };
        let write = tokio::select! {
            write = ended => write,
            () = gone.cancelled() => None,
        };
        let Some(mut write) = write else { return };
        let _ = tokio::time::timeout(CLIENT_FIRST.min(self.linger), gone.cancelled()).await;
        let last = async {
            let _ = write.shutdown().await;
            gone.cancelled().await;
        };
        let _ = tokio::time::timeout(self.linger, last).await;
    }
}

impl<T> Drop for Connection<T> {
    fn drop(&mut self) {
        self.reader.abort();
        if let Some(writer) = &self.writer {
            writer.abort();
        }
        self.shared.end_all();
    }
}

struct Reader {
    shared: Arc<Shared>,
    budget: Arc<Budget>,
    data: mpsc::Sender<Outbound>,
    opened: mpsc::Sender<NewStream>,
    hang_up: Option<HangUp>,
    last_stream: u32,
    going_away: bool,
    max_streams: usize,
}

impl Reader {
    async fn read<T: AsyncRead>(mut self, mut io: ReadHalf<T>) -> Result<(), SpdyError> {
        let mut decoder = Decoder::default();
        let mut input = BytesMut::new();
        loop {
            while let Some(decoded) = decoder.decode(&mut input)? {
                match decoded {
                    Decoded::Frame(frame) => self.frame(frame).await?,
                    Decoded::Broken { stream, status } => {
                        self.end_stream(stream);
                        self.last_stream = self.last_stream.max(stream);
                        self.shared.reset(stream, status);
                    }
                }
                if self.shared.too_many_controls() {
                    return Err(SpdyError::Abuse("it reads no answers"));
                }
            }
            if input.capacity() - input.len() < 4 * 1024 {
                input.reserve(64 * 1024);
            }
            if io.read_buf(&mut input).await? == 0 {
                return Ok(());
            }
            self.shared.activity.seen();
        }
    }

    async fn frame(&mut self, frame: Frame) -> Result<(), SpdyError> {
        match frame {
            Frame::SynStream {
                stream,
                fin,
                unidirectional,
                headers,
            } => self.open(stream, fin, unidirectional, headers).await,
            Frame::Data { stream, bytes, fin } => return self.data(stream, bytes, fin).await,
            Frame::RstStream { stream, .. } => self.end_stream(stream),
            Frame::Headers { stream, fin, .. } | Frame::SynReply { stream, fin, .. } => {
                if fin && let Some(stream) = self.shared.stream(stream) {
                    stream.inbox.end(End::Finished);
                }
            }
            Frame::Settings(settings) => {
                for (id, value) in settings {
                    if id == SETTINGS_INITIAL_WINDOW_SIZE {
                        self.shared.flow.set_initial(value);
                    }
                }
            }
            Frame::Ping(ASK) => self.shared.flow.answered(),
            Frame::Ping(id) if id % 2 == 1 => self.shared.control(Frame::Ping(id)),
            Frame::Ping(_) => {}
            Frame::GoAway { .. } => self.going_away = true,
            Frame::WindowUpdate { stream, delta } => {
                if self.shared.flow.update(stream, delta).is_err() {
                    if stream == 0 {
                        return Err(SpdyError::Abuse("it allows more than a window can hold"));
                    }
                    self.end_stream(stream);
                    self.shared.reset(stream, RstStatus::FlowControl);
                }
            }
        }
        Ok(())
    }

    async fn open(&mut self, id: u32, fin: bool, unidirectional: bool, headers: HeaderList) {
        if self.going_away {
            return;
        }
        if id.is_multiple_of(2) || id <= self.last_stream {
            self.end_stream(id);
            return self.shared.reset(id, RstStatus::Protocol);
        }
        self.last_stream = id;
        if self.shared.open_streams() >= self.max_streams {
            return self.shared.reset(id, RstStatus::Refused);
        }
        // Who takes streams takes them at once; who has all that it wants has closed the queue.
        let Ok(slot) = self.opened.reserve().await else {
            return self.shared.reset(id, RstStatus::Refused);
        };
        let due = AtomicU32::new(0);
        let for_credit = Arc::downgrade(&self.shared);
        let credit = Box::new(move |bytes| {
            if let Some(shared) = for_credit.upgrade() {
                shared.credit_session(bytes);
                shared.credit(&due, id, bytes);
            }
        });
        let inbox = Inbox::new(Arc::clone(&self.budget), credit);
        if fin {
            inbox.end(End::Finished);
        }
        let stream = StreamState::new(id, Arc::clone(&inbox), &self.shared);
        self.shared.flow.open(id);
        self.shared.add(id, &stream);
        self.shared.control(Frame::SynReply {
            stream: id,
            fin: false,
            headers: HeaderList::new(),
        });
        if unidirectional {
            stream.stopped.cancel();
        }
        let pace: Arc<dyn Pace> = Arc::new(Paced(Arc::clone(&self.shared)));
        let outgoing = Outgoing::new(
            id,
            self.data.clone(),
            Some(pace),
            stream.stopped.clone(),
            stream.clone(),
        );
        slot.send(NewStream {
            headers,
            incoming: Incoming::new(inbox, stream),
            outgoing,
        });
    }

    async fn data(&mut self, id: u32, bytes: bytes::Bytes, fin: bool) -> Result<(), SpdyError> {
        let Some(stream) = self.shared.stream(id) else {
            // It ended while this was under way; the session's window must not shrink for it.
            self.shared.credit_session(bytes.len());
            return Ok(());
        };
        stream.inbox.push(bytes);
        if fin {
            stream.inbox.end(End::Finished);
        }
        let inbox = Arc::clone(&stream.inbox);
        drop(stream); // waiting must not keep it alive
        let room = self.budget.room(&inbox);
        tokio::pin!(room);
        loop {
            tokio::select! {
                biased;
                () = &mut room => return Ok(()),
                () = tokio::time::sleep(LOOK) => {
                    if self.hang_up.as_ref().is_some_and(|hung_up| hung_up()) {
                        return Err(SpdyError::Abuse("the client hung up"));
                    }
                }
            }
        }
    }

    fn end_stream(&self, id: u32) {
        if let Some(stream) = self.shared.stream(id) {
            stream.stopped.cancel();
            stream.inbox.end(End::Broken);
        }
    }
}

struct Paced(Arc<Shared>);

#[async_trait::async_trait]
impl Pace for Paced {
    async fn reserve(&self, stream: u32, want: usize) -> usize {
        self.0.flow.reserve(stream, want).await
    }
}
