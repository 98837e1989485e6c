//! One container's log on its way: entries read from the engine's log, written as lines to ours.
//!
//! A turn copies a bounded part. A turn that finds the end, after the container was said to have ended, finishes: an output
//! line of which only pieces came gets its end. Nothing counts as read before it is written, so a failed write is repeated.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use super::entry::{self, Entry, Stream, Tag};
use super::queue::{Next, Queued, Slot};
use super::resume::{Resumed, resume};
use super::sink::{CriLog, OpenLines};
use crate::runtime::ports::LogSource;

/// Chunks that one turn copies before others get theirs.
const CHUNKS_PER_TURN: usize = 8;

/// How long a failed read or write rests before it is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// A container's log that is being followed.
#[derive(Debug)]
pub(super) struct Follower {
    source: LogSource,
    folder: PathBuf,
    file_name: OsString,
    slot: Slot,
    /// The container has ended: the engine adds nothing any more.
    ended: AtomicBool,
    /// Completing it took too long once; nobody waits for it again.
    given_up: AtomicBool,
    /// The container is gone, and with it what could not be written.
    abandoned: AtomicBool,
    /// Whoever waits for the end; `None` once it came.
    waiting: Mutex<Option<Vec<oneshot::Sender<()>>>>,
    work: Mutex<Work>,
}

#[derive(Debug)]
struct Work {
    cri: CriLog,
    /// `None` until the place to go on from was looked for.
    resumed: Option<Resumed>,
    open: OpenLines,
    damaged: u64,
    failing: bool,
}

/// Memory of a thread, used for one follower after the other.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    read: Vec<u8>,
    lines: Vec<u8>,
}

impl Queued for Follower {
    fn slot(&self) -> &Slot {
        &self.slot
    }
}

impl Follower {
    /// A follower from `source` to the opened `cri` log; `None` if the engine's log has no file path.
    pub(super) fn new(source: LogSource, cri: CriLog) -> Option<Self> {
        Some(Self {
            folder: source.engine_log.parent()?.to_owned(),
            file_name: source.engine_log.file_name()?.to_owned(),
            source,
            slot: Slot::default(),
            ended: AtomicBool::new(false),
            given_up: AtomicBool::new(false),
            abandoned: AtomicBool::new(false),
            waiting: Mutex::new(Some(Vec::new())),
            work: Mutex::new(Work {
                cri,
                resumed: None,
                open: OpenLines::default(),
                damaged: 0,
                failing: false,
            }),
        })
    }

    /// The container.
    pub(super) fn container_id(&self) -> &str {
        &self.source.container_id
    }

    /// The folder of the engine's log.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether a file of that name in the folder belongs to the engine's log.
    pub(super) fn reads(&self, name: &OsStr) -> bool {
        let own = self.file_name.as_encoded_bytes();
        name.as_encoded_bytes().starts_with(own)
    }

    /// The container has ended.
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
    }

    /// Something to wait on until all is written; `None` when it is already.
    pub(super) fn wait(&self) -> Option<oneshot::Receiver<()>> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = waiting.as_mut()?;
        waiting.retain(|waiter| !waiter.is_closed());
        let (tell, told) = oneshot::channel();
        waiting.push(tell);
        Some(told)
    }

    /// Tells everybody that all is written.
    pub(super) fn tell(&self) {
        let waiting = self
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        for waiter in waiting.into_iter().flatten() {
            // One that no longer waits does not mind.
            let _ = waiter.send(());
        }
    }

    /// Nobody shall wait for it any more; whether somebody said so before.
    pub(super) fn give_up(&self) -> bool {
        self.given_up.swap(true, Ordering::Relaxed)
    }

    /// Whether waiting for it was given up.
    pub(super) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }

    /// Nothing of it is to be written any more.
    pub(super) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }

    /// Copies a part of what there is.
    pub(super) fn turn(&self, buffers: &mut Buffers) -> Next {
        if self.abandoned.load(Ordering::Relaxed) {
            return Next::Over;
        }
        // Looked at before reading: what the engine wrote before the container ended is then all seen.
        let ended = self.ended.load(Ordering::SeqCst);
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        match work.copy(&self.source, buffers) {
            Ok(false) => Next::More,
            Ok(true) if !ended => {
                work.note_success(&self.source);
                Next::Rest
            }
            Ok(true) => match work.finish() {
                Ok(()) => {
                    work.note_success(&self.source);
                    work.report(&self.source);
                    Next::Over
                }
                Err(error) => work.note_failure(&self.source, &error),
            },
            Err(error) => work.note_failure(&self.source, &error),
        }
    }
}

impl Work {
    /// Copies up to so many chunks; whether the end was reached.
    fn copy(&mut self, source: &LogSource, buffers: &mut Buffers) -> io::Result<bool> {
        let mut resumed = match self.resumed.take() {
            Some(resumed) => resumed,
            None => {
                let tail = self.cri.tail()?;
                if let Some(tail) = &tail {
                    self.open = tail.open.clone();
                }
                resume(&source.engine_log, tail.as_ref())?
            }
        };
        let copied = self.copy_chunks(&mut resumed, source, buffers);
        self.resumed = Some(resumed);
        copied
    }

    fn copy_chunks(
        &mut self,
        resumed: &mut Resumed,
        source: &LogSource,
        buffers: &mut Buffers,
    ) -> io::Result<bool> {
        for _ in 0..CHUNKS_PER_TURN {
            let range = resumed.engine.read(&mut buffers.read)?;
            let chunk = buffers.read.get(range).unwrap_or_default();
            if chunk.is_empty() {
                return Ok(true);
            }
            buffers.lines.clear();
            let mut open = self.open.clone();
            let mut skip = resumed.skip.clone();
            let mut damaged = 0;
            for line in chunk.split_inclusive(|byte| *byte == b'\n') {
                match Entry::parse(line) {
                    None => damaged += 1,
                    Some(entry) if is_skipped(&entry, &mut skip) => {}
                    Some(entry) => {
                        open.note(entry.time, entry.stream, entry.tag());
                        entry.render(&mut buffers.lines);
                    }
                }
            }
            self.cri.append(&buffers.lines)?;
            resumed.engine.consume(chunk);
            resumed.skip = skip;
            self.open = open;
            self.note_damaged(damaged, source);
        }
        Ok(false)
    }

    /// Ends the output lines that are open: the kubelet waits for more after a piece.
    fn finish(&mut self) -> io::Result<()> {
        for stream in Stream::ALL {
            if let Some(time) = self.open.of(stream).clone() {
                let mut end = Vec::new();
                entry::render(&time, stream, Tag::Full, b"", &mut end);
                self.cri.append(&end)?;
                *self.open.of(stream) = None;
            }
        }
        Ok(())
    }

    fn note_damaged(&mut self, damaged: u64, source: &LogSource) {
        if damaged > 0 && self.damaged == 0 {
            tracing::warn!(container = %source.container_id, path = %source.engine_log.display(), "the engine's log holds entries that cannot be read; they are left out");
        }
        self.damaged += damaged;
    }

    fn note_failure(&mut self, source: &LogSource, error: &io::Error) -> Next {
        if !self.failing {
            tracing::warn!(container = %source.container_id, log = %source.cri_log.display(), %error, "a container's log cannot be written for now; trying again");
        }
        self.failing = true;
        Next::Later(RETRY)
    }

    fn note_success(&mut self, source: &LogSource) {
        if self.failing {
            tracing::info!(container = %source.container_id, log = %source.cri_log.display(), "the container's log is written again");
        }
        self.failing = false;
    }

    fn report(&self, source: &LogSource) {
        if self.damaged > 0 {
            tracing::warn!(container = %source.container_id, entries = self.damaged, "entries of the engine's log could not be read and are missing");
        }
    }
}

/// Whether an entry is left out; the first later one ends that.
fn is_skipped(entry: &Entry<'_>, skip: &mut Option<String>) -> bool {
    if skip
        .as_deref()
        .is_some_and(|until| !entry::is_later(entry.time, until))
    {
        return true;
    }
    *skip = None;
    false
}
