//! The channels of a WebSocket connection: each message carries one channel's bytes.
//!
//! There is no flow control and no half-close but v5's (a message of 255 and the channel's number, from the client only). A
//! client's message for a channel that it may not write is skipped.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_util::sync::CancellationToken;

use crate::streaming::limits::{Activity, Limits};
use crate::streaming::protocol::Codec;
use crate::streaming::socket::Socket;
use crate::streaming::spdy::HangUp;
use crate::streaming::stream::{Budget, End, Inbox, Incoming, Lifeline, Outbound, Outgoing, QUEUE};

/// The channel by which v5 clients close others.
const CLOSE: u8 = 255;
const LOOK: Duration = Duration::from_secs(1);

/// Who writes a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Nobody: what comes is skipped.
    Unused,
    /// The client.
    In,
    /// We.
    Out,
    /// Both.
    Both,
}

/// The halves of a channel that exist.
pub(crate) struct Halves {
    pub incoming: Option<Incoming>,
    pub outgoing: Option<Outgoing>,
}

/// A live connection. Dropping it ends it at once.
pub(crate) struct Connection {
    gone: CancellationToken,
    data: mpsc::Sender<Outbound>,
    reader: JoinHandle<()>,
    writer: JoinHandle<()>,
    linger: Duration,
}

struct Line(Option<Arc<Inbox>>);

impl Lifeline for Line {
    fn finished(&self) {}

    fn client_ended(&self) -> bool {
        self.0.as_ref().is_none_or(|inbox| inbox.ended())
    }
}

/// Begins to serve a client; gives the channels in their order.
pub(crate) fn serve(
    websocket: WebSocketStream<Socket>,
    codec: Codec,
    can_close: bool,
    directions: &[Direction],
    limits: &Limits,
) -> (Connection, Vec<Halves>) {
    let gone = CancellationToken::new();
    let (data, queue) = mpsc::channel(QUEUE);
    let budget = Budget::new(limits.connection_buffer, limits.stream_buffer);
    let activity = Arc::new(Activity::new());
    let mut inboxes = Vec::new();
    let mut halves = Vec::new();
    for (channel, direction) in (0..).zip(directions) {
        let inbox = matches!(direction, Direction::In | Direction::Both)
            .then(|| Inbox::new(Arc::clone(&budget), Box::new(|_| ())));
        let line: Arc<dyn Lifeline> = Arc::new(Line(inbox.clone()));
        halves.push(Halves {
            incoming: inbox
                .clone()
                .map(|inbox| Incoming::new(inbox, Arc::clone(&line))),
            outgoing: matches!(direction, Direction::Out | Direction::Both)
                .then(|| Outgoing::new(channel, data.clone(), None, gone.child_token(), line)),
        });
        inboxes.push(inbox);
    }
    let hang_up = websocket.get_ref().hang_up();
    let (sink, stream) = websocket.split();
    let reader = Reader {
        stream,
        codec,
        can_close,
        inboxes,
        budget,
        activity: Arc::clone(&activity),
        hang_up,
    };
    let reader = tokio::spawn(read_to_end(reader, gone.clone(), limits.idle));
    let for_writer = gone.clone();
    let writer = tokio::spawn(async move {
        if let Err(error) = write(sink, queue, codec, &activity).await {
            tracing::debug!(%error, "a WebSocket cannot be written");
            for_writer.cancel();
        }
    });
    let connection = Connection {
        gone,
        data,
        reader,
        writer,
        linger: limits.linger,
    };
    (connection, halves)
}

impl Connection {
    /// Cancelled when the connection has ended, whoever ended it.
    pub fn gone(&self) -> CancellationToken {
        self.gone.clone()
    }

    /// Ends it in order: what was sent arrives in full, then the close of WebSocket; the client answers or hangs up.
    pub async fn close(mut self) {
        let ended = async {
            let _ = self.data.send(Outbound::End).await;
            let _ = (&mut self.writer).await;
        };
        tokio::select! {
            () = ended => {}
            () = self.gone.cancelled() => return,
        }
        let _ = tokio::time::timeout(self.linger, self.gone.cancelled()).await;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.reader.abort();
        self.writer.abort();
        self.gone.cancel();
    }
}

struct Reader {
    stream: SplitStream<WebSocketStream<Socket>>,
    codec: Codec,
    can_close: bool,
    inboxes: Vec<Option<Arc<Inbox>>>,
    budget: Arc<Budget>,
    activity: Arc<Activity>,
    hang_up: HangUp,
}

async fn read_to_end(mut reader: Reader, gone: CancellationToken, idle: Duration) {
    let activity = Arc::clone(&reader.activity);
    tokio::select! {
        ended = reader.read() => if let Err(reason) = ended {
            tracing::debug!(%reason, "a WebSocket connection ends");
        },
        () = activity.idle_for(idle) => tracing::info!("an idle WebSocket connection is ended"),
    }
    for inbox in reader.inboxes.iter().flatten() {
        inbox.end(End::Broken);
    }
    gone.cancel();
}

impl Reader {
    async fn read(&mut self) -> Result<(), String> {
        while let Some(message) = self.stream.next().await {
            self.activity.seen();
            let bytes = match message {
                Ok(Message::Binary(bytes)) => bytes,
                Ok(Message::Text(text)) => text.into(),
                Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => continue,
                Ok(Message::Close(_)) | Err(Error::ConnectionClosed) => return Ok(()),
                Err(error) => return Err(error.to_string()),
            };
            self.message(bytes).await?;
        }
        Ok(())
    }

    async fn message(&self, mut bytes: Bytes) -> Result<(), String> {
        let Some(first) = bytes.first().copied() else {
            return Ok(());
        };
        if self.can_close && first == CLOSE {
            let channel = match (bytes.get(1), bytes.len()) {
                (Some(channel), 2) => usize::from(*channel),
                _ => return Err("a close signal without one channel".to_owned()),
            };
            return match self.inboxes.get(channel) {
                Some(inbox) => {
                    if let Some(inbox) = inbox {
                        inbox.end(End::Finished);
                    }
                    Ok(())
                }
                None => Err(format!("a close signal for channel {channel}")),
            };
        }
        let number = match self.codec {
            Codec::Binary => first,
            Codec::Base64 => first.wrapping_sub(b'0'),
        };
        let Some(Some(inbox)) = self.inboxes.get(usize::from(number)) else {
            return Ok(());
        };
        let _ = bytes.split_to(1);
        if self.codec == Codec::Base64 {
            bytes = BASE64_STANDARD
                .decode(&bytes)
                .map_err(|error| format!("not base64: {error}"))?
                .into();
        }
        inbox.push(bytes);
        self.room(inbox).await
    }

    async fn room(&self, inbox: &Inbox) -> Result<(), String> {
        let room = self.budget.room(inbox);
        tokio::pin!(room);
        loop {
            tokio::select! {
                biased;
                () = &mut room => return Ok(()),
                () = tokio::time::sleep(LOOK) => if (self.hang_up)() {
                    return Err("the client hung up".to_owned());
                }
            }
        }
    }
}

async fn write(
    mut sink: SplitSink<WebSocketStream<Socket>, Message>,
    mut queue: mpsc::Receiver<Outbound>,
    codec: Codec,
    activity: &Activity,
) -> Result<(), Error> {
    loop {
        match queue.recv().await {
            Some(Outbound::Data { bytes, fin, .. }) if fin && bytes.is_empty() => {}
            Some(Outbound::Data { stream, bytes, .. }) => {
                sink.feed(message(codec, stream, &bytes)).await?;
                activity.seen();
            }
            Some(Outbound::Reset { .. }) => {}
            Some(Outbound::End) | None => {
                let normal = CloseFrame {
                    code: CloseCode::Normal,
                    reason: "".into(),
                };
                sink.send(Message::Close(Some(normal))).await?;
                return Ok(());
            }
        }
        // Whatever came last: what was fed before it must not wait for more.
        if queue.is_empty() {
            sink.flush().await?;
        }
    }
}

fn message(codec: Codec, channel: u32, bytes: &[u8]) -> Message {
    let channel = u8::try_from(channel).unwrap_or(u8::MAX);
    match codec {
        Codec::Binary => {
            let mut message = BytesMut::with_capacity(bytes.len() + 1);
            message.put_u8(channel);
            message.put_slice(bytes);
            Message::Binary(message.freeze())
        }
        Codec::Base64 => {
            let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4 + 1);
            text.push(char::from(b'0'.wrapping_add(channel)));
            BASE64_STANDARD.encode_string(bytes, &mut text);
            Message::text(text)
        }
    }
}
