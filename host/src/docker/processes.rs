//! Finding and killing what a command in a container started, on this node.
//!
//! Process numbers are reused, so a process is held by a pidfd first and believed only when its cgroup is the container's.
//! Killed are the command's own process, its descendants, and whatever carries its mark in its environment: a daemon leaves
//! its parent and its session, not its environment. They are looked for in `/proc` rather than in the container's
//! `cgroup.procs`: both cgroup versions, either driver and cgroups below the container's own look the same there, and the
//! parents and environments have to be read in any case. Each is stopped before more are looked for, since what is stopped has
//! no more children. Nothing is killed on an engine that is not on this node: no process of this node has its container's
//! cgroup.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// How long killed processes may take to be gone.
const PATIENCE: Duration = Duration::from_secs(5);
/// Rounds of looking; each finds the children that the last one's processes had before they were stopped.
const ROUNDS: usize = 64;
/// Rounds that must find nothing more. One can miss a process that is just being forked by one that ends, or that is replaced by
/// another program and has no environment for an instant.
const QUIET_ROUNDS: usize = 4;
const PAUSE: Duration = Duration::from_millis(2);

/// Of a container's full ID; anything shorter could stand in other names.
const ID_LENGTH: usize = 64;

/// A process of the container.
struct Member {
    pid: Pid,
    parent: Option<Pid>,
    marked: bool,
}

/// Kills `root` and all that it started: blocks until they are gone, and tells whether they are. `mark` is `NAME=value`.
pub(super) fn kill(root: Option<Pid>, container: &str, mark: &str) -> bool {
    let mut held = HashMap::new();
    held.extend(root.and_then(|pid| Some((pid, hold(pid, container)?))));
    let mut quiet = 0;
    for _ in 0..ROUNDS {
        for process in held.values() {
            let _ = pidfd_send_signal(process, Signal::STOP);
        }
        let members = members(container, mark);
        let found = started_by(&held.keys().copied().collect(), &members);
        let new: Vec<(Pid, OwnedFd)> = found
            .into_iter()
            .filter_map(|pid| Some((pid, hold(pid, container)?)))
            .collect();
        if new.is_empty() {
            quiet += 1;
            if quiet == QUIET_ROUNDS {
                break;
            }
            std::thread::sleep(PAUSE);
        } else {
            quiet = 0;
            held.extend(new);
        }
    }
    for process in held.values() {
        let _ = pidfd_send_signal(process, Signal::KILL);
    }
    let until = Instant::now() + PATIENCE;
    held.values()
        .all(|process| is_gone(process, until.saturating_duration_since(Instant::now())))
}

/// Holds the process, if it is one of the container's.
pub(super) fn hold(pid: Pid, container: &str) -> Option<OwnedFd> {
    let held = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    is_member(&process_folder(pid), container).then_some(held)
}

/// Whether the process ends within `patience`.
fn is_gone(held: &OwnedFd, patience: Duration) -> bool {
    let patience = Timespec {
        tv_sec: i64::try_from(patience.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: patience.subsec_nanos().into(),
    };
    poll(&mut [PollFd::new(held, PollFlags::IN)], Some(&patience)).is_ok_and(|ready| ready > 0)
}

fn process_folder(pid: Pid) -> std::path::PathBuf {
    Path::new("/proc").join(pid.as_raw_nonzero().to_string())
}

/// Whether one of its cgroups is the container's, or below it: they are named after its ID.
fn is_member(process: &Path, container: &str) -> bool {
    container.len() == ID_LENGTH
        && fs::read_to_string(process.join("cgroup"))
            .is_ok_and(|cgroups| cgroups.contains(container))
}

/// All processes of the container.
fn members(container: &str, mark: &str) -> Vec<Member> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| {
            let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
            let process = entry.path();
            is_member(&process, container).then(|| Member {
                pid,
                parent: parent(&process),
                marked: carries(&process, mark),
            })
        })
        .collect()
}

/// Those of `members` that are marked or below one of `known` or of the marked; without the known.
fn started_by(known: &HashSet<Pid>, members: &[Member]) -> HashSet<Pid> {
    let mut theirs = known.clone();
    theirs.extend(members.iter().filter(|m| m.marked).map(|m| m.pid));
    loop {
        let before = theirs.len();
        let children = members
            .iter()
            .filter(|m| m.parent.is_some_and(|parent| theirs.contains(&parent)))
            .map(|m| m.pid)
            .collect::<Vec<_>>();
        theirs.extend(children);
        if theirs.len() == before {
            return theirs.difference(known).copied().collect();
        }
    }
}

/// The parent in `stat`: the second word after the command, which stands in brackets and may hold anything.
fn parent(process: &Path) -> Option<Pid> {
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    Pid::from_raw(rest.split_whitespace().nth(1)?.parse().ok()?)
}

/// Whether the process was given this variable.
fn carries(process: &Path, mark: &str) -> bool {
    fs::read(process.join("environ"))
        .is_ok_and(|environ| environ.split(|b| *b == 0).any(|v| v == mark.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_started() {
        let pid = |n: i32| Pid::from_raw(n).unwrap();
        // number, parent, marked
        let container = [
            (1, 0, false),
            (10, 0, true),
            (11, 10, true),
            (12, 11, false),
            (13, 1, true),
            (14, 13, false),
            (20, 1, false),
            (21, 20, false),
        ];
        let members: Vec<Member> = container
            .iter()
            .map(|(number, parent, marked)| Member {
                pid: pid(*number),
                parent: Pid::from_raw(*parent),
                marked: *marked,
            })
            .collect();
        for (name, known, want) in [
            ("from its process on", &[10][..], &[11, 12, 13, 14][..]),
            ("its process has ended", &[], &[10, 11, 12, 13, 14]),
            (
                "one that is not seen any more",
                &[99],
                &[10, 11, 12, 13, 14],
            ),
            ("another's", &[20, 10, 13], &[11, 12, 14, 21]),
        ] {
            let known = known.iter().copied().map(pid).collect();
            let mut got: Vec<i32> = started_by(&known, &members)
                .into_iter()
                .map(|p| p.as_raw_nonzero().get())
                .collect();
            got.sort_unstable();
            assert_eq!(got, want, "{name}");
        }
    }

    #[test]
    fn a_process_is_read_from_proc() {
        let process = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &[u8]| fs::write(process.path().join(name), text).unwrap();
        let container = "0123456789abcdef".repeat(4);
        write("stat", b"7 (a b) c) d) S 5 7 7 0 -1\n");
        write("environ", b"A=1\0M=xy\0B=2\0");
        assert_eq!(parent(process.path()), Pid::from_raw(5));
        for (mark, want) in [("M=xy", true), ("M=x", false), ("M=xyz", false)] {
            assert_eq!(carries(process.path(), mark), want, "{mark}");
        }
        for (name, cgroups, want) in [
            ("v2, cgroupfs", format!("0::/docker/{container}\n"), true),
            (
                "v2, systemd",
                format!("0::/system.slice/docker-{container}.scope\n"),
                true,
            ),
            (
                "v2, below",
                format!("0::/kubepods/pod1/{container}/init.scope\n"),
                true,
            ),
            (
                "v1",
                format!("12:pids:/docker/{container}\n1:name=systemd:/\n"),
                true,
            ),
            (
                "the node's",
                "0::/system.slice/ssh.service\n".to_owned(),
                false,
            ),
        ] {
            write("cgroup", cgroups.as_bytes());
            assert_eq!(is_member(process.path(), &container), want, "{name}");
        }
    }
}
