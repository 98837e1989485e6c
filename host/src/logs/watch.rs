//! One inotify instance for all engine logs: tells which follower something happened to.
//!
//! Watches the folder of each log, since rotation makes and renames files there. Knows no more than names; a lost event costs
//! nothing, because an overflow marks everybody.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use inotify::{EventMask, Inotify, WatchDescriptor, WatchMask, Watches};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use super::follower::Follower;

/// What can happen to a follower's folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Happened {
    /// Something was written, made or renamed.
    Changed,
    /// The folder is gone, and the container with it.
    Gone,
}

/// The watched folders.
#[derive(Debug)]
pub(super) struct Watcher {
    watched: Mutex<Watched>,
    /// Written to when the thread is to end.
    wake: OwnedFd,
}

#[derive(Debug)]
struct Watched {
    kernel: Watches,
    followers: HashMap<WatchDescriptor, Vec<Arc<Follower>>>,
}

impl Watcher {
    /// The watcher and what its [thread](Self::run) reads from.
    pub(super) fn new() -> io::Result<(Self, Inotify)> {
        let inotify = Inotify::init()?;
        let watcher = Self {
            watched: Mutex::new(Watched {
                kernel: inotify.watches(),
                followers: HashMap::new(),
            }),
            wake: eventfd(0, EventfdFlags::CLOEXEC)?,
        };
        Ok((watcher, inotify))
    }

    /// Watches the follower's folder.
    pub(super) fn add(&self, follower: &Arc<Follower>) -> io::Result<()> {
        let mask = WatchMask::MODIFY
            | WatchMask::CREATE
            | WatchMask::MOVED_TO
            | WatchMask::DELETE
            | WatchMask::DELETE_SELF
            | WatchMask::ONLYDIR;
        // Under the lock, so that no event comes for a watch that nobody knows.
        let mut watched = self.lock();
        let watch = watched.kernel.add(follower.folder(), mask)?;
        watched
            .followers
            .entry(watch)
            .or_default()
            .push(Arc::clone(follower));
        Ok(())
    }

    /// Stops watching for this follower.
    pub(super) fn remove(&self, follower: &Arc<Follower>) {
        let mut watched = self.lock();
        let mut unused = None;
        for (watch, followers) in &mut watched.followers {
            followers.retain(|other| !Arc::ptr_eq(other, follower));
            if followers.is_empty() {
                unused = Some(watch.clone());
            }
        }
        if let Some(watch) = unused {
            watched.followers.remove(&watch);
            // Fails when the folder is gone, and the watch with it.
            let _ = watched.kernel.remove(watch);
        }
    }

    /// Reads events until [stopped](Self::stop); `tell` is called for each follower that one concerns.
    pub(super) fn run(&self, mut inotify: Inotify, tell: impl Fn(&Arc<Follower>, Happened)) {
        let mut buffer = vec![0; 64 * 1024];
        let failed = loop {
            match self.wait(&inotify) {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => break error,
            }
            match inotify.read_events(&mut buffer) {
                Ok(events) => {
                    for event in events {
                        self.dispatch(&event, &tell);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break error,
            }
        };
        tracing::error!(error = %failed, "container logs are no longer watched: lines come only when a container ends; restart the daemon");
    }

    /// Ends the thread.
    pub(super) fn stop(&self) {
        // The counter of an eventfd takes this always.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    /// Waits for events; `false` when it is to end.
    fn wait(&self, inotify: &Inotify) -> io::Result<bool> {
        let mut fds = [
            PollFd::new(&self.wake, PollFlags::IN),
            PollFd::from_borrowed_fd(inotify.as_fd(), PollFlags::IN),
        ];
        loop {
            match poll(&mut fds, None) {
                Ok(_) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let [wake, _] = fds;
        Ok(wake.revents().is_empty())
    }

    fn dispatch(&self, event: &inotify::Event<&OsStr>, tell: &impl Fn(&Arc<Follower>, Happened)) {
        let mut watched = self.lock();
        if event.mask.contains(EventMask::Q_OVERFLOW) {
            for follower in watched.followers.values().flatten() {
                tell(follower, Happened::Changed);
            }
            return;
        }
        let gone = event
            .mask
            .intersects(EventMask::DELETE_SELF | EventMask::IGNORED);
        let followers = watched.followers.get(&event.wd);
        for follower in followers.into_iter().flatten() {
            if gone {
                tell(follower, Happened::Gone);
            } else if event.name.is_some_and(|name| follower.reads(name)) {
                tell(follower, Happened::Changed);
            }
        }
        if gone {
            watched.followers.remove(&event.wd);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
