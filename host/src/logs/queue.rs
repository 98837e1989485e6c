//! Which follower is worked on next: each at most once in the queue and by one thread, first come first served.
//!
//! Threads sleep while there is nothing to do. A follower that is marked while it is worked on gets another turn, so that no
//! event is lost between its last read and its rest.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Where something stands in the queue; kept in the thing itself, changed only by the [`Queue`].
#[derive(Debug, Default)]
pub(super) struct Slot(Mutex<Phase>);

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Phase {
    #[default]
    Resting,
    Queued,
    Working,
    /// Marked while being worked on.
    WorkingAgain,
    /// Waits for its time after a failure; marks do not hurry it.
    Delayed,
    Over,
}

/// What can be queued.
pub(super) trait Queued {
    /// Its slot.
    fn slot(&self) -> &Slot;
}

/// What comes after a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing until it is marked.
    Rest,
    /// Another turn, after the others'.
    More,
    /// Another turn after a while.
    Later(Duration),
    /// No turn ever again.
    Over,
}

/// The queue.
#[derive(Debug)]
pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<T> {
    ready: VecDeque<Arc<T>>,
    delayed: Vec<(Instant, Arc<T>)>,
    stopped: bool,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self {
            state: Mutex::new(State {
                ready: VecDeque::new(),
                delayed: Vec::new(),
                stopped: false,
            }),
            changed: Condvar::new(),
        }
    }
}

impl<T: Queued> Queue<T> {
    /// Something happened to `item`: it gets a turn.
    pub(super) fn mark(&self, item: &Arc<T>) {
        let mut state = self.lock();
        let mut phase = item.slot().lock();
        match *phase {
            Phase::Resting => {
                *phase = Phase::Queued;
                state.ready.push_back(Arc::clone(item));
                self.changed.notify_one();
            }
            Phase::Working => *phase = Phase::WorkingAgain,
            Phase::Queued | Phase::WorkingAgain | Phase::Delayed | Phase::Over => {}
        }
    }

    /// Waits for the next one; `None` once the queue is stopped.
    pub(super) fn next(&self) -> Option<Arc<T>> {
        let mut state = self.lock();
        loop {
            if state.stopped {
                return None;
            }
            let wait = state.move_due(Instant::now());
            if let Some(item) = state.ready.pop_front() {
                *item.slot().lock() = Phase::Working;
                return Some(item);
            }
            state = match wait {
                None => self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(wait) => {
                    self.changed
                        .wait_timeout(state, wait)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
            };
        }
    }

    /// Puts back what [`next`](Self::next) gave.
    pub(super) fn put_back(&self, item: Arc<T>, next: Next) {
        let mut state = self.lock();
        let mut phase = item.slot().lock();
        match (next, *phase) {
            (Next::Over, _) => *phase = Phase::Over,
            (Next::Later(wait), _) => {
                *phase = Phase::Delayed;
                drop(phase);
                state.delayed.push((Instant::now() + wait, item));
                self.changed.notify_one();
            }
            (Next::Rest, Phase::Working) => *phase = Phase::Resting,
            (Next::Rest | Next::More, _) => {
                *phase = Phase::Queued;
                drop(phase);
                state.ready.push_back(item);
                self.changed.notify_one();
            }
        }
    }

    /// Lets every thread go once it has finished its turn.
    pub(super) fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Phase> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Queued> State<T> {
    /// Makes ready what is due; gives how long until the next one is.
    fn move_due(&mut self, now: Instant) -> Option<Duration> {
        for (_, item) in self.delayed.extract_if(.., |(due, _)| *due <= now) {
            *item.slot().lock() = Phase::Queued;
            self.ready.push_back(item);
        }
        let next = self.delayed.iter().map(|(due, _)| *due).min()?;
        Some(next.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Thing(Slot, u32);

    impl Queued for Thing {
        fn slot(&self) -> &Slot {
            &self.0
        }
    }

    fn thing(number: u32) -> Arc<Thing> {
        Arc::new(Thing(Slot::default(), number))
    }

    /// What the queue gives now without waiting.
    fn drain(queue: &Queue<Thing>) -> Vec<u32> {
        let mut numbers = Vec::new();
        while !queue.lock().ready.is_empty() {
            let item = queue.next().unwrap();
            numbers.push(item.1);
            queue.put_back(item, Next::Rest);
        }
        numbers
    }

    #[test]
    fn once_each_in_order() {
        let queue = Queue::default();
        let (a, b) = (thing(1), thing(2));
        for item in [&a, &b, &a, &a] {
            queue.mark(item);
        }
        assert_eq!(drain(&queue), [1, 2]);
        assert!(drain(&queue).is_empty());
        queue.mark(&b);
        assert_eq!(drain(&queue), [2]);
    }

    #[test]
    fn a_mark_during_a_turn_gives_another() {
        let queue = Queue::default();
        let a = thing(1);
        queue.mark(&a);
        let turn = queue.next().unwrap();
        queue.mark(&a);
        assert!(queue.lock().ready.is_empty(), "never two turns at once");
        queue.put_back(turn, Next::Rest);
        assert_eq!(drain(&queue), [1]);
    }

    #[test]
    fn more_is_after_the_others() {
        let queue = Queue::default();
        let (a, b) = (thing(1), thing(2));
        queue.mark(&a);
        queue.mark(&b);
        let turn = queue.next().unwrap();
        queue.put_back(turn, Next::More);
        assert_eq!(drain(&queue), [2, 1]);
    }

    #[test]
    fn delayed_ones_wait_and_ended_ones_stay_away() {
        let queue = Queue::default();
        let (a, b) = (thing(1), thing(2));
        queue.mark(&a);
        queue.mark(&b);
        let turn = queue.next().unwrap();
        queue.put_back(turn, Next::Later(Duration::from_secs(3600)));
        let turn = queue.next().unwrap();
        queue.put_back(turn, Next::Over);
        queue.mark(&a);
        queue.mark(&b);
        assert!(drain(&queue).is_empty());
        let wait = queue.lock().move_due(Instant::now()).unwrap();
        assert!(wait > Duration::from_secs(3000));
        let later = Instant::now() + Duration::from_secs(3601);
        assert_eq!(queue.lock().move_due(later), None);
        assert_eq!(drain(&queue), [1]);
    }

    #[test]
    fn a_stopped_queue_gives_nothing() {
        let queue = Queue::default();
        queue.mark(&thing(1));
        queue.stop();
        assert!(queue.next().is_none());
    }
}
