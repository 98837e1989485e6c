//! Connections that have not shown a token yet: only so many, and when there is one more the oldest makes room.
//!
//! A client that means well shows its token within milliseconds, so the oldest is most likely one that never will.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// All of them, oldest first.
pub(super) struct Newcomers {
    waiting: Mutex<Waiting>,
    most: usize,
}

#[derive(Default)]
struct Waiting {
    next: u64,
    oldest_first: VecDeque<(u64, CancellationToken)>,
}

/// One of them; dropped when it is none any more.
pub(super) struct Newcomer {
    all: Arc<Newcomers>,
    number: u64,
    /// It has to make room.
    pub evicted: CancellationToken,
}

impl Newcomers {
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            waiting: Mutex::default(),
            most,
        })
    }

    pub fn admit(self: &Arc<Self>) -> Newcomer {
        let evicted = CancellationToken::new();
        let mut waiting = self.lock();
        let number = waiting.next;
        waiting.next += 1;
        waiting.oldest_first.push_back((number, evicted.clone()));
        if waiting.oldest_first.len() > self.most
            && let Some((_, oldest)) = waiting.oldest_first.pop_front()
        {
            oldest.cancel();
        }
        drop(waiting);
        Newcomer {
            all: Arc::clone(self),
            number,
            evicted,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Newcomer {
    fn drop(&mut self) {
        let mut waiting = self.all.lock();
        waiting
            .oldest_first
            .retain(|(number, _)| *number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_makes_room() {
        let all = Newcomers::new(2);
        let first = all.admit();
        let second = all.admit();
        assert!(!first.evicted.is_cancelled());
        let third = all.admit();
        assert!(first.evicted.is_cancelled());
        drop(second);
        let fourth = all.admit();
        assert!(!third.evicted.is_cancelled() && !fourth.evicted.is_cancelled());
    }
}
