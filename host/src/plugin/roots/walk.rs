//! Opens a path step by step without leaving a folder: for kernels (before 5.6) and sandboxes without `openat2`.
//!
//! Every step is opened without following links; links are read and their steps taken here. An absolute link and a `..` at
//! the top lead out and are refused, as the kernel does it.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

/// Links that one path may go through.
const MAX_LINKS: usize = 40;

/// As `openat2` with RESOLVE_BENEATH.
pub(super) fn beneath(dir: &OwnedFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut todo = steps(path)?;
    let mut above: Vec<OwnedFd> = Vec::new();
    let mut links = 0;
    while let Some(step) = todo.pop() {
        if step == ".." {
            above.pop().ok_or(Errno::XDEV)?;
            continue;
        }
        let at = above.last().map_or(dir.as_fd(), AsFd::as_fd);
        let look = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let found = rustix::fs::openat(at, &step, look, Mode::empty())?;
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&found)?.st_mode);
        match kind {
            FileType::Symlink => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(Errno::LOOP);
                }
                todo.extend(steps(&target(found.as_fd())?)?);
            }
            FileType::Directory => above.push(found),
            _ if !todo.is_empty() => return Err(Errno::NOTDIR),
            _ if flags.contains(OFlags::PATH) => return Ok(found),
            // The caller compares what it gets with what it expects.
            _ => return rustix::fs::openat(at, &step, flags | OFlags::NOFOLLOW, Mode::empty()),
        }
    }
    match above.pop() {
        Some(folder) => Ok(folder),
        None => rustix::fs::openat(dir, ".", flags, Mode::empty()),
    }
}

/// The steps of a path, last first.
fn steps(path: &Path) -> Result<Vec<OsString>, Errno> {
    let mut steps = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => steps.push(name.to_owned()),
            Component::ParentDir => steps.push("..".into()),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return Err(Errno::XDEV),
        }
    }
    steps.reverse();
    Ok(steps)
}

fn target(link: BorrowedFd<'_>) -> Result<PathBuf, Errno> {
    let target = rustix::fs::readlinkat(link, "", Vec::new())?;
    Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
}
