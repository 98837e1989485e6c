//! Container logs: follows the engine's json-file logs and writes CRI-format ones; the real
//! [`crate::runtime::ports::ContainerLogs`].
//!
//! ```text
//! engine ──> x-json.log, .1, … ──(source)──> entries ──(entry)──> CRI lines ──(sink)──> the kubelet's file
//!                  │ inotify (watch)                    follower: one container, a turn at a time
//!                  └──> queue ──> a few threads for all containers, asleep while nothing happens
//! ```
//!
//! Nothing of ours is kept on disk: what the CRI file holds tells where to go on (resume). Once a container has ended, its log
//! is read to the end at once ([`LogWriter::complete`](ContainerLogs::complete)) and let go. Must not know the engine's client.
//!
//! Failure: what the kubelet's file refuses at the start is an error to the caller; later failures are logged and tried again,
//! nothing is skipped. Lines can be missing only where the engine threw them away before they were read; that is logged.

mod entry;
mod follower;
mod queue;
mod resume;
mod sink;
mod source;
#[cfg(test)]
mod testing;
mod watch;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use async_trait::async_trait;

use crate::runtime::ports::{ContainerLogs, LogError, LogSource};
use follower::{Buffers, Follower};
use queue::{Next, Queue};
use sink::CriLog;
use watch::{Happened, Watcher};

/// How long completing a log may take: a full disk must not hang the verbs.
const PATIENCE: Duration = Duration::from_secs(10);

/// The log writer of this node.
#[derive(Debug)]
pub struct LogWriter {
    shared: Arc<Shared>,
    patience: Duration,
}

#[derive(Debug, Default)]
struct Shared {
    followers: Mutex<HashMap<String, Arc<Follower>>>,
    queue: Queue<Follower>,
    /// There from the first log on.
    watcher: OnceLock<Watcher>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl LogWriter {
    /// A writer that follows nothing yet. Its threads begin with the first log and end with the writer.
    pub fn new() -> Arc<Self> {
        Arc::new(Self::with_patience(PATIENCE))
    }

    fn with_patience(patience: Duration) -> Self {
        Self {
            shared: Arc::default(),
            patience,
        }
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.shared.queue.stop();
        if let Some(watcher) = self.shared.watcher.get() {
            watcher.stop();
        }
        let threads = std::mem::take(&mut *self.shared.threads());
        for thread in threads {
            // A turn is short. A thread that panicked has said so already.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Begins to follow; blocking.
    fn begin(self: &Arc<Self>, source: LogSource) -> Result<(), LogError> {
        if self.find(&source.container_id).is_some() {
            return Ok(());
        }
        let engine_log = source.engine_log.clone();
        let failed = |source| LogError::Io {
            path: engine_log.clone(),
            source,
        };
        let cri = CriLog::open(&source.cri_log)?;
        let follower = Follower::new(source, cri)
            .map(Arc::new)
            .ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
        let watcher = self.start().map_err(failed)?;
        let mut followers = self.followers();
        if followers.contains_key(follower.container_id()) {
            return Ok(());
        }
        watcher.add(&follower).map_err(failed)?;
        followers.insert(follower.container_id().to_owned(), Arc::clone(&follower));
        drop(followers);
        // Watched before it is read: nothing falls in between.
        self.queue.mark(&follower);
        Ok(())
    }

    /// The watcher, with all threads running. What could not be started is tried again with the next log.
    fn start(self: &Arc<Self>) -> io::Result<&Watcher> {
        let mut threads = self.threads();
        if let Some(watcher) = self.watcher.get() {
            return Ok(watcher);
        }
        let copiers = thread::available_parallelism().map_or(1, |n| n.get().min(4));
        while threads.len() < copiers {
            let shared = Arc::clone(self);
            let builder = thread::Builder::new().name(format!("log-copy-{}", threads.len()));
            threads.push(builder.spawn(move || shared.copy())?);
        }
        let (watcher, inotify) = Watcher::new()?;
        let shared = Arc::clone(self);
        let builder = thread::Builder::new().name("log-watch".to_owned());
        threads.push(builder.spawn(move || shared.watch(inotify))?);
        Ok(self.watcher.get_or_init(|| watcher))
    }

    fn copy(&self) {
        let mut buffers = Buffers::default();
        while let Some(follower) = self.queue.next() {
            let next = follower.turn(&mut buffers);
            self.queue.put_back(Arc::clone(&follower), next);
            if next == Next::Over {
                self.let_go(&follower);
                follower.tell();
            }
        }
    }

    fn watch(&self, inotify: inotify::Inotify) {
        // Set right after this thread was made.
        self.watcher.wait().run(inotify, |follower, happened| {
            if happened == Happened::Gone {
                follower.end();
            }
            self.queue.mark(follower);
        });
    }

    fn let_go(&self, follower: &Arc<Follower>) {
        let mut followers = self.followers();
        let known = followers.get(follower.container_id());
        if known.is_some_and(|known| Arc::ptr_eq(known, follower)) {
            followers.remove(follower.container_id());
        }
        drop(followers);
        if let Some(watcher) = self.watcher.get() {
            watcher.remove(follower);
        }
    }

    fn find(&self, container_id: &str) -> Option<Arc<Follower>> {
        self.followers().get(container_id).cloned()
    }

    fn followers(&self) -> MutexGuard<'_, HashMap<String, Arc<Follower>>> {
        self.followers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn threads(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs `work` on a thread that may block.
async fn blocking(
    path: PathBuf,
    work: impl FnOnce() -> Result<(), LogError> + Send + 'static,
) -> Result<(), LogError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|join| {
            Err(LogError::Io {
                path,
                source: io::Error::other(join),
            })
        })
}

#[async_trait]
impl ContainerLogs for LogWriter {
    async fn prepare(&self, cri_log: &Path) -> Result<(), LogError> {
        let path = cri_log.to_owned();
        blocking(path.clone(), move || CriLog::open(&path).map(drop)).await
    }

    async fn follow(&self, source: LogSource) -> Result<(), LogError> {
        let shared = Arc::clone(&self.shared);
        blocking(source.cri_log.clone(), move || shared.begin(source)).await
    }

    async fn complete(&self, container_id: &str) {
        let Some(follower) = self.shared.find(container_id) else {
            return;
        };
        follower.end();
        let Some(told) = follower.wait() else {
            return;
        };
        self.shared.queue.mark(&follower);
        if follower.is_given_up() {
            return;
        }
        if tokio::time::timeout(self.patience, told).await.is_err() && !follower.give_up() {
            tracing::error!(
                container = container_id,
                "its log is not complete after {:?}: going on without it; it is still being tried",
                self.patience
            );
        }
    }

    async fn forget(&self, container_id: &str) {
        self.complete(container_id).await;
        if let Some(follower) = self.shared.find(container_id) {
            follower.abandon();
            self.shared.let_go(&follower);
        }
    }
}

#[cfg(test)]
mod tests;
