//! Ending a command that was run in a container: the engine has no call for it.
//!
//! Its process is known to the engine by its number on this node. Numbers are reused, so it is held by a pidfd first, and
//! believed only when its cgroup is the container's; its descendants are found, stopped so that they cannot have more, and
//! all are killed. What left its parent behind is not found here. Nothing is killed on an engine that is not on this node:
//! no process of this node has its container's cgroup. Never fails: what could not be ended is logged.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::client::{Client, within};
use super::exec;
use super::raw::READ;

/// A command that runs. Dropping this ends it in the background.
pub(super) struct Running {
    client: Arc<Client>,
    exec: Option<String>,
}

impl Running {
    pub(super) fn new(client: &Arc<Client>, exec: &str) -> Self {
        Self {
            client: Arc::clone(client),
            exec: Some(exec.to_owned()),
        }
    }

    /// It has ended by itself.
    pub(super) fn has_ended(mut self) {
        self.exec = None;
    }

    /// Ends it, and waits until it is gone.
    pub(super) async fn end(mut self) {
        if let Some(exec) = self.exec.take() {
            // A task of its own: it goes on when the caller stops waiting.
            let _ = tokio::spawn(end(Arc::clone(&self.client), exec)).await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(exec) = self.exec.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(end(Arc::clone(&self.client), exec));
        }
    }
}

async fn end(client: Arc<Client>, exec: String) {
    let process = within(Some(READ), async {
        let mut pause = Duration::from_millis(2);
        loop {
            let state = exec::inspect(&client, &exec).await?;
            // No process and no exit code: its start is under way, or will never be.
            let begins = state.pid == 0 && state.exit_code.is_none();
            if !begins || pause > Duration::from_secs(1) {
                return Ok(state);
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
    })
    .await;
    let state = match process {
        Ok(state) => state,
        Err(error) => {
            tracing::warn!(exec, %error, "a command that was given up may still run");
            return;
        }
    };
    let Some(pid) = Pid::from_raw(state.pid).filter(|_| state.running) else {
        return;
    };
    let ended = tokio::task::spawn_blocking(move || kill_tree(pid, &state.container_id)).await;
    if !ended.unwrap_or(false) {
        tracing::warn!(
            exec,
            pid = pid.as_raw_nonzero().get(),
            "a command that was given up may still run"
        );
    }
}

/// Kills the process and its descendants if it is the container's; whether it is gone then.
fn kill_tree(root: Pid, container: &str) -> bool {
    let Ok(held) = pidfd_open(root, PidfdFlags::empty()) else {
        return true;
    };
    if !in_container(root, container) {
        // Either it has ended, and the number may be another's, or it is not on this node.
        return is_gone(&held, Duration::ZERO);
    }
    let mut tree = HashMap::from([(root, held)]);
    // A stopped process has no more children: each round finds those of the last one.
    for _ in 0..32 {
        for held in tree.values() {
            let _ = pidfd_send_signal(held, Signal::STOP);
        }
        let found = descendants(tree.keys().copied().collect());
        let new: Vec<(Pid, OwnedFd)> = found
            .into_iter()
            .filter(|pid| !tree.contains_key(pid))
            .filter_map(|pid| Some((pid, pidfd_open(pid, PidfdFlags::empty()).ok()?)))
            .filter(|(pid, _)| in_container(*pid, container))
            .collect();
        if new.is_empty() {
            break;
        }
        tree.extend(new);
    }
    for held in tree.values() {
        let _ = pidfd_send_signal(held, Signal::KILL);
    }
    tree.values()
        .all(|held| is_gone(held, Duration::from_secs(2)))
}

/// Whether the process ends within `patience`.
fn is_gone(held: &OwnedFd, patience: Duration) -> bool {
    let patience = Timespec {
        tv_sec: i64::try_from(patience.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: patience.subsec_nanos().into(),
    };
    poll(&mut [PollFd::new(held, PollFlags::IN)], Some(&patience)).is_ok_and(|ready| ready > 0)
}

fn in_container(pid: Pid, container: &str) -> bool {
    !container.is_empty()
        && fs::read_to_string(format!("/proc/{}/cgroup", pid.as_raw_nonzero()))
            .is_ok_and(|cgroups| cgroups.contains(container))
}

/// All processes below `above`.
fn descendants(above: HashSet<Pid>) -> HashSet<Pid> {
    let parents: Vec<(Pid, Pid)> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            Some((Pid::from_raw(pid)?, parent(&entry.path())?))
        })
        .collect();
    let mut below = above.clone();
    loop {
        let before = below.len();
        let children = parents.iter().filter(|(_, parent)| below.contains(parent));
        let children: Vec<Pid> = children.map(|(pid, _)| *pid).collect();
        below.extend(children);
        if below.len() == before {
            return below.difference(&above).copied().collect();
        }
    }
}

/// The parent in `stat`: the second word after the command, which stands in brackets and may hold anything.
fn parent(process: &Path) -> Option<Pid> {
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    Pid::from_raw(rest.split_whitespace().nth(1)?.parse().ok()?)
}
