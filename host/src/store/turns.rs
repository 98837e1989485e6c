//! One writer per path at a time and first come first served; different paths side by side, so that many pods share the
//! disk's flushes.
//!
//! Knows nothing of what is written. Waits without a deadline: whoever holds a turn does one small write and ends.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::OwnedMutexGuard;

type Gate = tokio::sync::Mutex<()>;

/// Who writes what right now.
#[derive(Debug, Default)]
pub(super) struct Turns {
    gates: Mutex<HashMap<PathBuf, Weak<Gate>>>,
}

impl Turns {
    /// Waits for the path's turn, which lasts until the guard is dropped.
    pub(super) async fn take(&self, path: &Path) -> OwnedMutexGuard<()> {
        self.gate(path).lock_owned().await
    }

    fn gate(&self, path: &Path) -> Arc<Gate> {
        let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(gate) = gates.get(path).and_then(Weak::upgrade) {
            return gate;
        }
        gates.retain(|_, gate| gate.strong_count() > 0);
        let gate = Arc::new(Gate::default());
        gates.insert(path.to_owned(), Arc::downgrade(&gate));
        gate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::poll;
    use std::pin::pin;

    #[tokio::test]
    async fn one_at_a_time_per_path_in_order() {
        let turns = Turns::default();
        let (a, b) = (Path::new("a"), Path::new("b"));
        let first = turns.take(a).await;
        let mut second = pin!(turns.take(a));
        let mut third = pin!(turns.take(a));
        assert!(poll!(second.as_mut()).is_pending());
        assert!(poll!(third.as_mut()).is_pending());
        drop(turns.take(b).await);
        drop(first);
        assert!(
            poll!(third.as_mut()).is_pending(),
            "the second came before it"
        );
        drop(second.await);
        drop(third.await);
        drop(turns.take(b).await);
        assert_eq!(
            turns.gates.lock().unwrap().len(),
            1,
            "paths that nobody writes are forgotten"
        );
    }
}
