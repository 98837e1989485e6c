//! How much may be sent to a peer that may or may not take part in flow control.
//!
//! The protocol gives each stream, and the session, a window of 64 KiB at first, which WINDOW_UPDATE makes larger as the peer
//! takes bytes in. Clients of Kubernetes neither send WINDOW_UPDATE nor count: to obey a window that never grows would hang
//! every one of them at 64 KiB. Others must not be sent more than they allowed. So:
//!
//! - windows are counted from the start;
//! - a peer that sends a WINDOW_UPDATE, or an initial window in SETTINGS, takes part: from then on its windows are obeyed
//!   (those of streams and that of the session apart, since SPDY/3 had none for the session);
//! - when a window is used up and nothing was heard, the peer is sent a PING. Frames are answered in order, so a peer that
//!   takes part and reads will have sent its WINDOW_UPDATE before the reply, or will within [`PATIENCE`]. After that its silence
//!   means that it does not take part, and TCP alone slows us.
//!
//! In the other direction we always send WINDOW_UPDATE as bytes are taken: who takes part needs it, others skip it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Notify;

use crate::streaming::stream::Pace;

/// Windows at the start.
pub const INITIAL_WINDOW: i64 = 64 * 1024;
/// How long a peer has to answer a PING that asks for its WINDOW_UPDATE.
pub const PATIENCE: Duration = Duration::from_millis(300);
const LARGEST_WINDOW: i64 = 0x7fff_ffff;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Nothing was heard yet.
    Unknown,
    /// The peer was asked.
    Asked,
    /// It takes part.
    Obeyed,
    /// It does not.
    Ignored,
}

/// The windows that a peer gives us.
pub struct Flow {
    state: Mutex<State>,
    changed: Notify,
    ask: Box<dyn Fn() + Send + Sync>,
}

struct State {
    stream_mode: Mode,
    session_mode: Mode,
    session: i64,
    streams: HashMap<u32, i64>,
    initial: i64,
}

/// A peer allowed more than a window can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overflow;

impl Flow {
    /// Windows of a new connection; `ask` sends a PING whose reply is told by [`Flow::answered`].
    pub fn new(ask: Box<dyn Fn() + Send + Sync>) -> Self {
        Self {
            state: Mutex::new(State {
                stream_mode: Mode::Unknown,
                session_mode: Mode::Unknown,
                session: INITIAL_WINDOW,
                streams: HashMap::new(),
                initial: INITIAL_WINDOW,
            }),
            changed: Notify::new(),
            ask,
        }
    }

    /// A stream begins.
    pub fn open(&self, stream: u32) {
        let mut state = self.lock();
        let initial = state.initial;
        state.streams.insert(stream, initial);
    }

    /// A stream has ended.
    pub fn forget(&self, stream: u32) {
        self.lock().streams.remove(&stream);
    }

    /// The peer takes more on a stream, or (0) in all.
    ///
    /// # Errors
    /// When the window overflows.
    pub fn update(&self, stream: u32, delta: u32) -> Result<(), Overflow> {
        let mut state = self.lock();
        let window = if stream == 0 {
            state.session_mode = Mode::Obeyed;
            &mut state.session
        } else {
            state.stream_mode = Mode::Obeyed;
            match state.streams.get_mut(&stream) {
                Some(window) => window,
                None => return Ok(()), // it ended while this was under way
            }
        };
        *window += i64::from(delta);
        if *window > LARGEST_WINDOW {
            return Err(Overflow);
        }
        drop(state);
        self.changed.notify_waiters();
        Ok(())
    }

    /// The peer tells the window with which streams begin; it counts for those that are open as well.
    pub fn set_initial(&self, window: u32) {
        let mut state = self.lock();
        state.stream_mode = Mode::Obeyed;
        let difference = i64::from(window) - state.initial;
        state.initial = i64::from(window);
        for open in state.streams.values_mut() {
            *open += difference;
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// The peer has answered the PING, or will not.
    pub fn answered(&self) {
        let mut state = self.lock();
        for mode in [Field::Stream, Field::Session] {
            let mode = mode.of(&mut state);
            if *mode == Mode::Asked {
                *mode = Mode::Ignored;
            }
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Takes from the windows what they and `want` allow; 0 = wait. Tells whether an answer is due meanwhile.
    fn take(&self, stream: u32, want: usize) -> (usize, bool) {
        let mut state = self.lock();
        let initial = state.initial;
        let of_stream = *state.streams.entry(stream).or_insert(initial);
        let allowed = room(state.stream_mode, of_stream)
            .min(room(state.session_mode, state.session))
            .min(want);
        if allowed > 0 {
            let taken = i64::try_from(allowed).unwrap_or(i64::MAX);
            state.session -= taken;
            if let Some(window) = state.streams.get_mut(&stream) {
                *window -= taken;
            }
            return (allowed, false);
        }
        let mut ask = false;
        for (field, window) in [(Field::Stream, of_stream), (Field::Session, state.session)] {
            let mode = field.of(&mut state);
            if *mode == Mode::Unknown && window <= 0 {
                *mode = Mode::Asked;
                ask = true;
            }
        }
        let asked = state.stream_mode == Mode::Asked || state.session_mode == Mode::Asked;
        drop(state);
        if ask {
            (self.ask)();
        }
        (0, asked)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Clone, Copy)]
enum Field {
    Stream,
    Session,
}

impl Field {
    fn of(self, state: &mut State) -> &mut Mode {
        match self {
            Self::Stream => &mut state.stream_mode,
            Self::Session => &mut state.session_mode,
        }
    }
}

fn room(mode: Mode, window: i64) -> usize {
    match mode {
        Mode::Ignored => usize::MAX,
        Mode::Unknown | Mode::Asked | Mode::Obeyed => usize::try_from(window).unwrap_or(0),
    }
}

#[async_trait]
impl Pace for Flow {
    async fn reserve(&self, stream: u32, want: usize) -> usize {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let (taken, asked) = self.take(stream, want);
            if taken > 0 || want == 0 {
                return taken;
            }
            if !asked {
                changed.await;
            } else if tokio::time::timeout(PATIENCE, changed).await.is_err() {
                self.answered();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn flow() -> (Flow, Arc<AtomicUsize>) {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let ask = Box::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
        });
        let flow = Flow::new(ask);
        flow.open(1);
        (flow, asked)
    }

    #[test]
    fn a_silent_peer_is_asked_once_and_then_not_counted() {
        let (flow, asked) = flow();
        assert_eq!(flow.take(1, 100_000), (65_536, false));
        assert_eq!(flow.take(1, 1), (0, true));
        assert_eq!(flow.take(1, 1), (0, true));
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        flow.answered();
        assert_eq!(flow.take(1, 1_000_000), (1_000_000, false));
    }

    #[test]
    fn a_peer_that_updates_is_obeyed_per_stream_and_session() {
        let (flow, asked) = flow();
        assert_eq!(flow.take(1, 65_536).0, 65_536);
        flow.update(1, 10).unwrap();
        flow.update(0, 10).unwrap();
        assert_eq!(flow.take(1, 100), (10, false));
        assert_eq!(flow.take(1, 100), (0, false));
        flow.answered();
        assert_eq!(flow.take(1, 100), (0, false), "still obeyed");
        flow.open(3);
        assert_eq!(flow.take(3, 100), (0, false), "the session's is used up");
        flow.update(0, 5).unwrap();
        assert_eq!(flow.take(3, 100), (5, false));
        assert_eq!(asked.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_peer_without_session_windows_gets_its_stream_windows_obeyed() {
        let (flow, _) = flow();
        assert_eq!(flow.take(1, 65_536).0, 65_536);
        flow.update(1, 50_000).unwrap();
        assert_eq!(flow.take(1, 1), (0, true), "the session's is used up");
        flow.answered();
        assert_eq!(flow.take(1, 100_000), (50_000, false));
    }

    #[test]
    fn an_initial_window_counts_for_open_streams_and_may_be_negative() {
        let (flow, _) = flow();
        assert_eq!(flow.take(1, 1000).0, 1000);
        flow.set_initial(500);
        assert_eq!(flow.take(1, 1).0, 0);
        flow.update(1, 600).unwrap();
        assert_eq!(flow.take(1, 1000).0, 100);
        flow.open(3);
        assert_eq!(flow.take(3, 1000).0, 500);
    }

    #[test]
    fn an_overflowing_window_is_told() {
        let (flow, _) = flow();
        assert_eq!(flow.update(1, 0x7fff_ffff), Err(Overflow));
        assert_eq!(flow.update(9, 0x7fff_ffff), Ok(()), "no such stream");
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_never_answers_does_not_hang_the_sender() {
        let (flow, _) = flow();
        assert_eq!(flow.reserve(1, 65_536).await, 65_536);
        assert_eq!(flow.reserve(1, 10).await, 10);
    }
}
