//! A client's streams, whatever carries them: [`Incoming`] bytes from it and [`Outgoing`] bytes to it.
//!
//! A connection's one reader puts bytes into each stream's [`Inbox`] and pauses while too much waits there, so memory is
//! bounded and a slow process slows its client. Its one writer takes [`Outbound`] items from a short queue, so a slow client
//! slows its process. Fails with [`Gone`] when the stream or the connection has been ended by the client.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

/// The longest piece that goes into one frame or message.
pub(super) const PIECE: usize = 64 * 1024;
/// Pieces that wait for a connection's writer.
pub(super) const QUEUE: usize = 4;
/// What a waiting piece costs beside its bytes: a client must not fill memory with tiny ones.
const PIECE_COST: usize = 64;

/// The client has ended the stream, or all of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client has gone")]
pub struct Gone;

/// How a client's half of a stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// In order: nothing more comes.
    Finished,
    /// By a reset, or with the connection.
    Broken,
}

/// What waits for all streams of a connection.
pub(super) struct Budget {
    used: AtomicUsize,
    limit: usize,
    stream_limit: usize,
    freed: Notify,
}

impl Budget {
    pub fn new(limit: usize, stream_limit: usize) -> Arc<Self> {
        Arc::new(Self {
            used: AtomicUsize::new(0),
            limit,
            stream_limit,
            freed: Notify::new(),
        })
    }

    /// Ends once both the stream and the connection hold no more than they may. For the connection's one reader.
    pub async fn room(&self, inbox: &Inbox) {
        while inbox.waiting() > self.stream_limit || self.used.load(Ordering::Acquire) > self.limit
        {
            self.freed.notified().await;
        }
    }

    fn release(&self, cost: usize) {
        self.used.fetch_sub(cost, Ordering::AcqRel);
        self.freed.notify_one();
    }
}

/// Called with the number of bytes that a reader took, or that were thrown away.
pub(super) type Credit = Box<dyn Fn(usize) + Send + Sync>;

/// Bytes of one stream that have come and were not taken yet.
pub(super) struct Inbox {
    state: Mutex<Waiting>,
    readable: Notify,
    budget: Arc<Budget>,
    credit: Credit,
}

#[derive(Default)]
struct Waiting {
    pieces: VecDeque<Bytes>,
    cost: usize,
    end: Option<End>,
    unwanted: bool,
}

impl Inbox {
    pub fn new(budget: Arc<Budget>, credit: Credit) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            readable: Notify::new(),
            budget,
            credit,
        })
    }

    /// Puts bytes in; follow it with [`Budget::room`].
    pub fn push(&self, bytes: Bytes) {
        let length = bytes.len();
        let mut state = self.lock();
        if state.unwanted || state.end.is_some() {
            drop(state);
            (self.credit)(length);
        } else if length > 0 {
            state.cost += length + PIECE_COST;
            self.budget
                .used
                .fetch_add(length + PIECE_COST, Ordering::AcqRel);
            state.pieces.push_back(bytes);
            drop(state);
            self.readable.notify_one();
        }
    }

    /// No more comes. The first end counts.
    pub fn end(&self, end: End) {
        self.lock().end.get_or_insert(end);
        self.readable.notify_one();
    }

    pub fn ended(&self) -> bool {
        self.lock().end.is_some()
    }

    fn waiting(&self) -> usize {
        self.lock().cost
    }

    async fn take(&self) -> Result<Option<Bytes>, Gone> {
        loop {
            {
                let mut state = self.lock();
                if let Some(piece) = state.pieces.pop_front() {
                    let cost = piece.len() + PIECE_COST;
                    state.cost -= cost;
                    drop(state);
                    self.budget.release(cost);
                    (self.credit)(piece.len());
                    return Ok(Some(piece));
                }
                match state.end {
                    Some(End::Finished) => return Ok(None),
                    Some(End::Broken) => return Err(Gone),
                    None => {}
                }
            }
            self.readable.notified().await;
        }
    }

    /// Nobody will take any more.
    fn discard(&self) {
        let mut state = self.lock();
        state.unwanted = true;
        let pieces = std::mem::take(&mut state.pieces);
        let cost = std::mem::take(&mut state.cost);
        drop(state);
        self.budget.release(cost);
        (self.credit)(pieces.iter().map(Bytes::len).sum());
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a transport keeps of a stream while anybody holds one of its halves.
pub(super) trait Lifeline: Send + Sync {
    /// Our half was finished.
    fn finished(&self);
    /// Whether the client's half has ended.
    fn client_ended(&self) -> bool;
}

/// Bytes from the client. Dropping it throws away what still comes.
pub(super) struct Incoming {
    inbox: Arc<Inbox>,
    _line: Arc<dyn Lifeline>,
}

impl Incoming {
    pub fn new(inbox: Arc<Inbox>, line: Arc<dyn Lifeline>) -> Self {
        Self { inbox, _line: line }
    }

    /// The next bytes; `None` at their end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Gone> {
        self.inbox.take().await
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.inbox.discard();
    }
}

/// An item for a connection's writer.
#[derive(Debug)]
pub(super) enum Outbound {
    /// Bytes of a stream.
    Data {
        stream: u32,
        bytes: Bytes,
        fin: bool,
    },
    /// End a stream at once, after what was sent before.
    Reset { stream: u32 },
    /// Nothing follows.
    End,
}

/// Leave to send.
#[async_trait]
pub(super) trait Pace: Send + Sync {
    /// Waits until at least one of `want` bytes may be sent on the stream, and tells how many.
    async fn reserve(&self, stream: u32, want: usize) -> usize;
}

/// Bytes to the client.
pub(super) struct Outgoing {
    stream: u32,
    queue: mpsc::Sender<Outbound>,
    pace: Option<Arc<dyn Pace>>,
    stopped: CancellationToken,
    line: Arc<dyn Lifeline>,
    finished: bool,
}

impl Outgoing {
    pub fn new(
        stream: u32,
        queue: mpsc::Sender<Outbound>,
        pace: Option<Arc<dyn Pace>>,
        stopped: CancellationToken,
        line: Arc<dyn Lifeline>,
    ) -> Self {
        Self {
            stream,
            queue,
            pace,
            stopped,
            line,
            finished: false,
        }
    }

    /// The stream's number.
    pub fn stream(&self) -> u32 {
        self.stream
    }

    /// Sends bytes, waiting for the client as long as it takes.
    pub async fn send(&mut self, mut bytes: Bytes) -> Result<(), Gone> {
        if self.finished {
            return Err(Gone);
        }
        while !bytes.is_empty() {
            let mut length = bytes.len().min(PIECE);
            if let Some(pace) = &self.pace {
                length = tokio::select! {
                    length = pace.reserve(self.stream, length) => length,
                    () = self.stopped.cancelled() => return Err(Gone),
                };
            }
            let piece = bytes.split_to(length.min(bytes.len()));
            self.put(piece, false).await?;
        }
        Ok(())
    }

    /// Sends an empty piece, where a transport can show one.
    pub async fn greet(&mut self) -> Result<(), Gone> {
        self.put(Bytes::new(), false).await
    }

    /// Ends our half; the client's goes on.
    pub async fn finish(&mut self) -> Result<(), Gone> {
        if self.finished {
            return Ok(());
        }
        self.finished = true;
        self.put(Bytes::new(), true).await?;
        self.line.finished();
        Ok(())
    }

    /// Ends our half, and the client's too if it has not ended.
    pub async fn close(&mut self) -> Result<(), Gone> {
        self.finish().await?;
        if !self.line.client_ended() {
            let stream = self.stream;
            let reset = self.queue.send(Outbound::Reset { stream });
            reset.await.map_err(|_| Gone)?;
        }
        Ok(())
    }

    async fn put(&self, bytes: Bytes, fin: bool) -> Result<(), Gone> {
        let stream = self.stream;
        tokio::select! {
            sent = self.queue.send(Outbound::Data { stream, bytes, fin }) => sent.map_err(|_| Gone),
            () = self.stopped.cancelled() => Err(Gone),
        }
    }
}
