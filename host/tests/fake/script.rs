//! The log of calls over all ports, and what is to go wrong with them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use springline::runtime::ports::EngineError;
use tokio::sync::watch;

/// A wait that takes longer than this is a hang; the test fails then instead of blocking.
const GUARD: Duration = Duration::from_secs(20);

/// One call of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Called {
    /// `port.method`.
    pub what: &'static str,
    /// The ID, name or path it was about.
    pub on: String,
}

/// Which call goes wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum When {
    /// The nth call of all, from 0.
    Call(usize),
    /// The nth call of this kind, from 0.
    Nth(&'static str, usize),
    /// Every call of this kind.
    Every(&'static str),
    /// Every call of this kind about this thing.
    On(&'static str, String),
}

/// How it goes wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum How {
    /// It fails and does nothing.
    Refuse,
    /// It does its work, and the answer is lost.
    LoseAnswer,
    /// It does nothing until [`Script::release`]; then it goes on as if nothing had been.
    Hang,
    /// An engine's call fails with this and does nothing.
    Say(EngineError),
}

/// What a port is to do with a call.
pub enum Verdict {
    /// Its work.
    Go,
    /// Fail at once.
    Refuse(Option<EngineError>),
    /// Its work, then fail.
    LoseAnswer,
}

#[derive(Debug, Default)]
struct State {
    calls: Vec<Called>,
    faults: Vec<(When, How)>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: watch::Sender<usize>,
    released: watch::Sender<bool>,
}

/// Shared by all ports of one world.
#[derive(Debug, Clone)]
pub struct Script(Arc<Shared>);

impl Default for Script {
    fn default() -> Self {
        Self(Arc::new(Shared {
            state: Mutex::default(),
            changed: watch::Sender::new(0),
            released: watch::Sender::new(false),
        }))
    }
}

impl Script {
    /// Makes a call go wrong.
    pub fn fault(&self, when: When, how: How) {
        self.state().faults.push((when, how));
    }

    /// From now on nothing goes wrong, and what hangs goes on.
    pub fn release(&self) {
        self.state().faults.clear();
        self.0.released.send_replace(true);
    }

    /// Forgets calls and faults.
    pub fn reset(&self) {
        *self.state() = State::default();
        self.0.released.send_replace(false);
    }

    /// All calls so far.
    pub fn calls(&self) -> Vec<Called> {
        self.state().calls.clone()
    }

    /// The kinds of all calls so far, in order.
    pub fn kinds(&self) -> Vec<&'static str> {
        self.state().calls.iter().map(|call| call.what).collect()
    }

    /// How many calls of a kind there were.
    pub fn count(&self, what: &str) -> usize {
        self.state().calls.iter().filter(|c| c.what == what).count()
    }

    /// Where the first such call stands in the log.
    pub fn position(&self, what: &str, on: &str) -> Option<usize> {
        self.state()
            .calls
            .iter()
            .position(|call| call.what == what && call.on.starts_with(on))
    }

    /// Waits until there was such a call.
    pub async fn wait_for(&self, what: &str, on: &str) {
        let mut changed = self.0.changed.subscribe();
        let seen = changed.wait_for(|_| self.position(what, on).is_some());
        match tokio::time::timeout(GUARD, seen).await {
            Ok(seen) => drop(seen.expect("the script lives")),
            Err(_) => panic!("no call {what} on {on:?}; there were {:#?}", self.calls()),
        }
    }

    /// Logs a call and says what to do with it.
    pub async fn enter(&self, what: &'static str, on: &str) -> Verdict {
        let how = self.log(what, on);
        // As with a real port, another task may come in between.
        tokio::task::yield_now().await;
        match how {
            None => Verdict::Go,
            Some(How::Refuse) => Verdict::Refuse(None),
            Some(How::Say(error)) => Verdict::Refuse(Some(error)),
            Some(How::LoseAnswer) => Verdict::LoseAnswer,
            Some(How::Hang) => {
                let mut released = self.0.released.subscribe();
                let _ = released.wait_for(|released| *released).await;
                Verdict::Go
            }
        }
    }

    fn log(&self, what: &'static str, on: &str) -> Option<How> {
        let mut state = self.state();
        let index = state.calls.len();
        let nth = state.calls.iter().filter(|call| call.what == what).count();
        state.calls.push(Called {
            what,
            on: on.to_owned(),
        });
        let how = state
            .faults
            .iter()
            .find(|(when, _)| match when {
                When::Call(wanted) => *wanted == index,
                When::Nth(kind, wanted) => *kind == what && *wanted == nth,
                When::Every(kind) => *kind == what,
                When::On(kind, thing) => *kind == what && thing == on,
            })
            .map(|(_, how)| how.clone());
        drop(state);
        self.0.changed.send_modify(|count| *count += 1);
        how
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
