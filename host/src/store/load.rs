//! What is done once, at open: read all records, set damaged ones aside, sweep what an interrupted write left.
//!
//! Never gives up for one file: what cannot be read is moved to `corrupt/`, and if even that fails it stays where it is and
//! counts as absent. Fails only when a folder cannot be listed.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use super::{atomic, envelope, io_error};
use crate::model::ids::is_container_id;
use crate::runtime::ports::{SandboxRecord, StoreError};

/// A record is a few hundred bytes; more than this is not one of ours.
const LARGEST_RECORD: u64 = 1 << 20;

/// What was found.
#[derive(Default)]
pub(super) struct Loaded {
    pub(super) records: BTreeMap<String, SandboxRecord>,
    pub(super) set_aside: Vec<(PathBuf, String)>,
}

/// Reads the folder of sandbox records.
pub(super) fn sandboxes(folder: &Path, corrupt: &Path) -> Result<Loaded, StoreError> {
    let mut loaded = Loaded::default();
    for path in entries(folder)? {
        let name = path.file_name().unwrap_or_default();
        if is_leftover(name) {
            sweep(&path);
            continue;
        }
        // Other files (an editor's backup, a note) are nobody's record and nobody's business.
        let Some(id) = name.to_str().and_then(|name| name.strip_suffix(".json")) else {
            continue;
        };
        match read_record(id, &path) {
            Ok(record) => {
                loaded.records.insert(id.to_owned(), record);
            }
            Err(reason) => loaded.set_aside.push(set_aside(&path, corrupt, reason)),
        }
    }
    Ok(loaded)
}

/// Removes what interrupted writes left among the sandboxes' files.
pub(super) fn sweep_files(files: &Path) -> Result<(), StoreError> {
    for folder in entries(files)? {
        // Not a folder, or gone: nothing of ours to sweep in it.
        for path in entries(&folder).unwrap_or_default() {
            if path.file_name().is_some_and(is_leftover) {
                sweep(&path);
            }
        }
    }
    Ok(())
}

fn read_record(id: &str, path: &Path) -> Result<SandboxRecord, String> {
    if !is_container_id(id) {
        return Err("its name is no sandbox ID".into());
    }
    let text = read_small(path, LARGEST_RECORD).map_err(|error| error.to_string())?;
    envelope::decode(id, &text).map_err(|damage| damage.to_string())
}

/// Reads a regular file of at most `limit` bytes. Does not hang on a pipe that somebody put in its place.
pub(super) fn read_small(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = fs::File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut content = Vec::new();
    file.take(limit + 1).read_to_end(&mut content)?;
    if content.len() as u64 > limit {
        return Err(io::Error::other(format!("larger than {limit} bytes")));
    }
    Ok(content)
}

fn set_aside(path: &Path, corrupt: &Path, reason: String) -> (PathBuf, String) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let time = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S.%9fZ");
    let target = corrupt.join(format!("{name}.{time}"));
    let kept = match fs::rename(path, &target) {
        Ok(()) => target,
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "a damaged record cannot be set aside; it stays where it is");
            path.to_owned()
        }
    };
    tracing::warn!(path = %path.display(), kept = %kept.display(), %reason, "set a damaged record aside; its sandbox counts as not completed");
    (kept, reason)
}

fn sweep(path: &Path) {
    match fs::remove_file(path) {
        Ok(()) => tracing::debug!(path = %path.display(), "swept an interrupted write"),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "cannot sweep an interrupted write");
        }
    }
}

fn is_leftover(name: &OsStr) -> bool {
    name.to_str().is_some_and(atomic::is_leftover)
}

/// Paths in a folder, sorted, so that what is reported has a stable order.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(|source| io_error(folder, source))? {
        paths.push(entry.map_err(|source| io_error(folder, source))?.path());
    }
    paths.sort();
    Ok(paths)
}
