//! How low an OOM score adjustment the engine's containers can have.
//!
//! Lowering it below what a process was born with takes CAP_SYS_RESOURCE in the first user namespace. Containers are born
//! of the engine, so its process counts, not ours: it is found as the peer of its socket, which is whoever called `listen`.
//! That is the engine itself, or systemd for a socket-activated engine (`fd://`); in that case the engine is the other
//! process that holds the listening socket, found by the socket's inode. An engine that cannot be seen (TCP, another PID
//! namespace) is taken to be able: then a start that is refused tells it. Reads `/proc` only; never fails.

use std::fs;
use std::path::{Path, PathBuf};

/// The lowest adjustment there is.
pub(super) const LOWEST: i64 = -1000;

const CAP_SYS_RESOURCE: u32 = 24;

/// The lowest adjustment that containers of the engine can have whose socket's peer is `peer`; `proc` is `/proc`.
pub(super) fn lowest_oom_score_adj(
    proc: &Path,
    peer: Option<i32>,
    socket: &Path,
    rootless: bool,
) -> i64 {
    let Some(peer) = peer else {
        return LOWEST;
    };
    let engine = proc.join(engine_pid(proc, peer, socket).to_string());
    let Ok(status) = fs::read_to_string(engine.join("status")) else {
        return LOWEST;
    };
    if !rootless && in_first_user_namespace(&engine) && has_capability(&status) {
        return LOWEST;
    }
    // What it was born with, or has now: its children may not go below.
    fs::read_to_string(engine.join("oom_score_adj"))
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(0)
}

fn engine_pid(proc: &Path, peer: i32, socket: &Path) -> i32 {
    let comm = fs::read_to_string(proc.join(format!("{peer}/comm"))).unwrap_or_default();
    if peer != 1 && comm.trim() != "systemd" {
        return peer;
    }
    // No other holder: the engine itself is process 1, as in a container.
    listening_inode(proc, socket)
        .and_then(|inode| other_holder(proc, inode, peer))
        .unwrap_or(peer)
}

/// The inode of the listening socket at `path`, from `/proc/net/unix` (`Num RefCount Protocol Flags Type St Inode Path`).
fn listening_inode(proc: &Path, path: &Path) -> Option<u64> {
    const ACCEPTS: u64 = 0x10000;
    let resolved = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let wanted = resolved(path);
    let table = fs::read_to_string(proc.join("net/unix")).ok()?;
    table.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, _, _, flags, _, _, inode, bound] = words.as_slice() else {
            return None;
        };
        let accepts = u64::from_str_radix(flags, 16).ok()? & ACCEPTS != 0;
        (accepts && resolved(&PathBuf::from(bound)) == wanted)
            .then(|| inode.parse().ok())
            .flatten()
    })
}

/// A process other than `but` that has the socket `inode` open.
fn other_holder(proc: &Path, inode: u64, but: i32) -> Option<i32> {
    let link = format!("socket:[{inode}]");
    let holds = |pid: &i32| {
        fs::read_dir(proc.join(format!("{pid}/fd")))
            .into_iter()
            .flatten()
            .flatten()
            .any(|fd| fs::read_link(fd.path()).is_ok_and(|to| to.as_os_str() == link.as_str()))
    };
    fs::read_dir(proc)
        .ok()?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| *pid != but)
        .find(holds)
}

/// Whether the process is not in a user namespace of its own: those map less than everything.
fn in_first_user_namespace(engine: &Path) -> bool {
    fs::read_to_string(engine.join("uid_map"))
        .is_ok_and(|map| map.split_whitespace().eq(["0", "0", "4294967295"]))
}

fn has_capability(status: &str) -> bool {
    status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask >> CAP_SYS_RESOURCE & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    const ALL: &str = "000001ffffffffff";
    const WITHOUT: &str = "000001fffeffffff";

    fn process(proc: &Path, pid: i32, comm: &str, caps: &str, adj: &str, uid_map: &str) {
        let dir = proc.join(pid.to_string());
        fs::create_dir_all(dir.join("fd")).unwrap();
        fs::write(dir.join("comm"), format!("{comm}\n")).unwrap();
        fs::write(
            dir.join("status"),
            format!("Name:\t{comm}\nCapEff:\t{caps}\n"),
        )
        .unwrap();
        fs::write(dir.join("oom_score_adj"), format!("{adj}\n")).unwrap();
        fs::write(dir.join("uid_map"), format!("{uid_map}\n")).unwrap();
    }

    #[test]
    fn the_engines_own_process_counts() {
        const FIRST: &str = "         0          0 4294967295";
        for (name, caps, adj, map, rootless, want) in [
            ("has the capability", ALL, "-500", FIRST, false, -1000),
            ("lacks it", WITHOUT, "0", FIRST, false, 0),
            ("lacks it, born lower", WITHOUT, "-500", FIRST, false, -500),
            ("own user namespace", ALL, "0", "0 1000 1", false, 0),
            ("rootless", ALL, "100", FIRST, true, 100),
            ("unreadable score", WITHOUT, "x", FIRST, false, 0),
        ] {
            let proc = tempfile::tempdir().unwrap();
            process(proc.path(), 70, "dockerd", caps, adj, map);
            let got = lowest_oom_score_adj(proc.path(), Some(70), Path::new("/d.sock"), rootless);
            assert_eq!(got, want, "{name}");
        }
        let empty = tempfile::tempdir().unwrap();
        for peer in [None, Some(70)] {
            let got = lowest_oom_score_adj(empty.path(), peer, Path::new("/d.sock"), false);
            assert_eq!(got, LOWEST, "not to be seen: {peer:?}");
        }
    }

    #[test]
    fn a_socket_activated_engine_is_found_behind_systemd() {
        const FIRST: &str = "0 0 4294967295";
        let proc = tempfile::tempdir().unwrap();
        process(proc.path(), 1, "systemd", ALL, "0", FIRST);
        process(proc.path(), 5, "other", ALL, "0", FIRST);
        process(proc.path(), 70, "dockerd", WITHOUT, "-3", FIRST);
        fs::create_dir_all(proc.path().join("net")).unwrap();
        fs::write(
            proc.path().join("net/unix"),
            "Num       RefCount Protocol Flags    Type St Inode Path\n\
             0000000000000000: 00000003 00000000 00000000 0001 03 11 /d.sock\n\
             0000000000000000: 00000002 00000000 00010000 0001 01 12 /other.sock\n\
             0000000000000000: 00000002 00000000 00010000 0001 01 13 /d.sock\n",
        )
        .unwrap();
        symlink("socket:[13]", proc.path().join("1/fd/40")).unwrap();
        symlink("socket:[11]", proc.path().join("5/fd/3")).unwrap();
        symlink("socket:[13]", proc.path().join("70/fd/3")).unwrap();
        let lowest = |proc: &Path| lowest_oom_score_adj(proc, Some(1), Path::new("/d.sock"), false);
        assert_eq!(lowest(proc.path()), -3);
        fs::remove_file(proc.path().join("70/fd/3")).unwrap();
        assert_eq!(lowest(proc.path()), LOWEST, "process 1 is the engine");
    }
}
