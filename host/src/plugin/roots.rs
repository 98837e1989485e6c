//! Reads one regular file below a granted folder, and nothing else on the machine.
//!
//! The kernel resolves the path beneath the folder (`openat2`), so no `..`, symbolic link or race leads out of it; where that
//! call is missing, [`walk`] takes the same steps one by one. What is not a regular file is never opened for reading: a FIFO
//! would block and a device may act. Knows no plugin and no WebAssembly. Reading blocks, so it happens on a blocking thread,
//! of which a hung disk can hold only a few.

#[cfg(test)]
mod tests;
mod walk;

use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, LazyLock};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use tokio::sync::Semaphore;

/// The largest file that any plugin is given.
pub(super) const MAX_FILE: usize = 1024 * 1024;

/// Reads that may be under way at once.
const MAX_READERS: usize = 16;

static READERS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(MAX_READERS)));

/// Leaves no thread to read on, as a disk that hangs does.
#[cfg(test)]
pub(super) async fn hold_all_readers() -> tokio::sync::SemaphorePermit<'static> {
    let all = u32::try_from(MAX_READERS).unwrap();
    READERS.acquire_many(all).await.unwrap()
}

/// Why a file was not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ReadError {
    /// The path leads out of every folder of the root.
    #[error("{path} is not below a folder that this node grants")]
    Outside {
        /// As the plugin gave it.
        path: String,
    },
    /// There is none.
    #[error("{path}: no such file")]
    Missing {
        /// As the plugin gave it.
        path: String,
    },
    /// No path at all.
    #[error("{0:?} is no path of a file")]
    BadPath(String),
    /// A folder, device, FIFO or socket.
    #[error("{path} is not a regular file")]
    NotAFile {
        /// As the plugin gave it.
        path: String,
    },
    /// More than is allowed.
    #[error("{path} is larger than {max} bytes")]
    TooLarge {
        /// As the plugin gave it.
        path: String,
        /// What is allowed.
        max: usize,
    },
    /// The system refused.
    #[error("{path}: {reason}")]
    Io {
        /// As the plugin gave it.
        path: String,
        /// The system's words.
        reason: String,
    },
}

/// The content of the file at `path`, relative to one of `folders` or absolute and below one of them. The first folder
/// that has it counts.
pub(super) async fn read(
    folders: Vec<PathBuf>,
    path: String,
    max: usize,
) -> Result<Vec<u8>, ReadError> {
    let failed = |path: &str, reason: String| ReadError::Io {
        path: path.to_owned(),
        reason,
    };
    let permit = Arc::clone(&READERS)
        .acquire_owned()
        .await
        .map_err(|e| failed(&path, e.to_string()))?;
    let asked = path.clone();
    tokio::task::spawn_blocking(move || {
        // Held until the read is over, even when nobody waits for it any more.
        let _permit = permit;
        read_blocking(&folders, &asked, max.min(MAX_FILE))
    })
    .await
    .map_err(|e| failed(&path, e.to_string()))?
}

fn read_blocking(folders: &[PathBuf], path: &str, max: usize) -> Result<Vec<u8>, ReadError> {
    if path.is_empty() || path.contains('\0') {
        return Err(ReadError::BadPath(path.to_owned()));
    }
    let mut found = Err(ReadError::Outside {
        path: path.to_owned(),
    });
    for (folder, rest) in candidates(folders, Path::new(path)) {
        found = read_below(folder, rest, max).map_err(|cause| cause.at(path));
        if !matches!(found, Err(ReadError::Missing { .. })) {
            break;
        }
    }
    found
}

/// Each folder that may hold the path, with the path relative to it.
fn candidates<'a>(
    folders: &'a [PathBuf],
    path: &'a Path,
) -> impl Iterator<Item = (&'a Path, &'a Path)> {
    folders.iter().filter_map(move |folder| {
        let rest = if path.is_absolute() {
            path.strip_prefix(folder).ok()?
        } else {
            path
        };
        Some((folder.as_path(), rest))
    })
}

/// What went wrong, before the path is put to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Os(Errno),
    NotAFile,
    TooLarge(usize),
}

impl From<Errno> for Cause {
    fn from(errno: Errno) -> Self {
        Self::Os(errno)
    }
}

impl Cause {
    fn at(self, path: &str) -> ReadError {
        let path = path.to_owned();
        match self {
            Self::Os(Errno::XDEV) => ReadError::Outside { path },
            Self::Os(Errno::NOENT | Errno::NOTDIR) => ReadError::Missing { path },
            Self::Os(Errno::NAMETOOLONG) => ReadError::BadPath(path),
            Self::Os(errno) => ReadError::Io {
                path,
                reason: std::io::Error::from(errno).to_string(),
            },
            Self::NotAFile => ReadError::NotAFile { path },
            Self::TooLarge(max) => ReadError::TooLarge { path, max },
        }
    }
}

fn read_below(folder: &Path, rest: &Path, max: usize) -> Result<Vec<u8>, Cause> {
    if rest.components().all(|step| step == Component::CurDir) {
        return Err(Cause::NotAFile);
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = rustix::fs::open(folder, flags, Mode::empty())?;
    // Looked at before it is opened for reading, and again after: somebody may swap it in between.
    let seen = beneath(&dir, rest, OFlags::PATH)?;
    check_regular(&seen)?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = beneath(&dir, rest, flags)?;
    let size = check_regular(&file)?;
    if size > max as u64 {
        return Err(Cause::TooLarge(max));
    }
    let mut content = Vec::new();
    std::fs::File::from(file)
        .take(max as u64 + 1)
        .read_to_end(&mut content)
        .map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))?;
    if content.len() > max {
        return Err(Cause::TooLarge(max));
    }
    Ok(content)
}

/// The size, when it is a regular file.
fn check_regular(file: &OwnedFd) -> Result<u64, Cause> {
    let stat = rustix::fs::fstat(file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Cause::NotAFile);
    }
    Ok(u64::try_from(stat.st_size).unwrap_or(0))
}

/// Opens `rest` without ever leaving `dir`.
fn beneath(dir: &OwnedFd, rest: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    // A rename elsewhere in the tree makes the kernel give up rather than guess.
    for _ in 0..16 {
        match rustix::fs::openat2(dir, rest, flags, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(Errno::NOSYS | Errno::PERM) => return walk::beneath(dir, rest, flags),
            answer => return answer,
        }
    }
    Err(Errno::AGAIN)
}
