//! What the parts of one connection share: its streams, its control frames that wait to be written, its windows.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::flow::{Flow, INITIAL_WINDOW};
use super::frame::{Frame, RstStatus};
use crate::streaming::limits::Activity;
use crate::streaming::stream::{End, Inbox, Lifeline};

/// Control frames that may wait to be written; a peer that causes more and reads none is up to no good.
pub(super) const MAX_CONTROLS: usize = 4096;
/// The PING by which a silent peer is asked about its windows; even, as all of a server's.
pub(super) const ASK: u32 = 2;

/// Shared by a connection's reader, its writer and its streams.
pub(super) struct Shared {
    streams: Mutex<HashMap<u32, Weak<StreamState>>>,
    controls: mpsc::UnboundedSender<Frame>,
    waiting_controls: AtomicUsize,
    pub flow: Flow,
    pub activity: Activity,
    /// The connection has ended, whoever ended it.
    pub gone: CancellationToken,
    session_credit: AtomicU32,
}

impl Shared {
    pub fn new(controls: mpsc::UnboundedSender<Frame>) -> Arc<Self> {
        Arc::new_cyclic(|me: &Weak<Self>| {
            let me = me.clone();
            let ask = Box::new(move || {
                if let Some(me) = me.upgrade() {
                    me.control(Frame::Ping(ASK));
                }
            });
            Self {
                streams: Mutex::default(),
                controls,
                waiting_controls: AtomicUsize::new(0),
                flow: Flow::new(ask),
                activity: Activity::new(),
                gone: CancellationToken::new(),
                session_credit: AtomicU32::new(0),
            }
        })
    }

    /// Has a control frame written, before any data that waits.
    pub fn control(&self, frame: Frame) {
        self.waiting_controls.fetch_add(1, Ordering::Relaxed);
        let _ = self.controls.send(frame); // no writer: the connection has ended
    }

    /// A control frame was written.
    pub fn control_written(&self) {
        self.waiting_controls.fetch_sub(1, Ordering::Relaxed);
    }

    pub fn too_many_controls(&self) -> bool {
        self.waiting_controls.load(Ordering::Relaxed) > MAX_CONTROLS
    }

    pub fn reset(&self, stream: u32, status: RstStatus) {
        let status = status as u32;
        self.control(Frame::RstStream { stream, status });
    }

    pub fn stream(&self, id: u32) -> Option<Arc<StreamState>> {
        self.lock().get(&id).and_then(Weak::upgrade)
    }

    pub fn add(&self, id: u32, stream: &Arc<StreamState>) {
        self.lock().insert(id, Arc::downgrade(stream));
    }

    pub fn open_streams(&self) -> usize {
        self.lock().len()
    }

    /// The connection ends: so do all streams.
    pub fn end_all(&self) {
        let streams: Vec<_> = self.lock().values().filter_map(Weak::upgrade).collect();
        for stream in streams {
            stream.inbox.end(End::Broken);
        }
        self.gone.cancel();
    }

    /// Bytes of any stream were taken in: the peer may send as many more.
    pub fn credit_session(&self, bytes: usize) {
        self.credit(&self.session_credit, 0, bytes);
    }

    /// Collects until half a window is due, then tells the peer.
    pub fn credit(&self, due: &AtomicU32, stream: u32, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let all = due.fetch_add(bytes, Ordering::AcqRel).saturating_add(bytes);
        if i64::from(all) >= INITIAL_WINDOW / 2 {
            let delta = due.swap(0, Ordering::AcqRel);
            if delta > 0 {
                self.control(Frame::WindowUpdate { stream, delta });
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u32, Weak<StreamState>>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One stream, alive while anybody holds one of its halves. The last one to let go resets it unless both halves have ended.
pub(super) struct StreamState {
    pub id: u32,
    pub inbox: Arc<Inbox>,
    /// Nothing may be sent any more.
    pub stopped: CancellationToken,
    finished: AtomicBool,
    shared: Arc<Shared>,
}

impl StreamState {
    pub fn new(id: u32, inbox: Arc<Inbox>, shared: &Arc<Shared>) -> Arc<Self> {
        Arc::new(Self {
            id,
            inbox,
            stopped: shared.gone.child_token(),
            finished: AtomicBool::new(false),
            shared: Arc::clone(shared),
        })
    }
}

impl Lifeline for StreamState {
    fn finished(&self) {
        self.finished.store(true, Ordering::Release);
    }

    fn client_ended(&self) -> bool {
        self.inbox.ended()
    }
}

impl Drop for StreamState {
    fn drop(&mut self) {
        self.shared.lock().remove(&self.id);
        self.shared.flow.forget(self.id);
        let in_order = self.finished.load(Ordering::Acquire) && self.inbox.ended();
        if !in_order && !self.stopped.is_cancelled() {
            self.shared.reset(self.id, RstStatus::Cancel);
        }
    }
}
