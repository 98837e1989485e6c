//! Locks by key: operations on one thing wait for each other, those on different things never do.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// Locks that exist while somebody holds or wants them.
#[derive(Default)]
pub(super) struct KeyedLocks {
    held: Mutex<HashMap<String, Weak<AsyncMutex<()>>>>,
}

impl KeyedLocks {
    /// Waits for the key; it is free again when the guard goes.
    pub(super) async fn lock(&self, key: &str) -> OwnedMutexGuard<()> {
        let lock = {
            let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            held.retain(|_, lock| lock.strong_count() > 0);
            match held.get(key).and_then(Weak::upgrade) {
                Some(lock) => lock,
                None => {
                    let lock = Arc::new(AsyncMutex::new(()));
                    held.insert(key.to_owned(), Arc::downgrade(&lock));
                    lock
                }
            }
        };
        lock.lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future as _;

    use super::*;

    #[tokio::test]
    async fn keys_are_apart_and_one_key_is_one_at_a_time() {
        let locks = KeyedLocks::default();
        let a = locks.lock("a").await;
        let _b = locks.lock("b").await;
        let mut second = Box::pin(locks.lock("a"));
        let waits = futures_util::future::poll_fn(|cx| {
            std::task::Poll::Ready(second.as_mut().poll(cx).is_pending())
        })
        .await;
        assert!(waits, "a held key makes others wait");
        drop(a);
        let _again = second.await;
    }
}
