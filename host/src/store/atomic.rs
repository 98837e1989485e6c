//! Durable changes of files: after a call has returned, a crash or power cut at any instant shows the change, and at any
//! instant before it shows the old state or the new one, whole.
//!
//! Knows nothing of records. A failed write leaves the old file and no temp file; a crash in between leaves a temp file,
//! which [`is_leftover`] tells so that the next start sweeps it.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

const TEMP_PREFIX: &str = ".tmp-";

/// Makes a folder (and its parents) unless it is there; the mode is given whatever the umask, but only to what is made.
pub(super) fn make_folder(folder: &Path, mode: u32) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let parent = folder.parent().filter(|p| !p.as_os_str().is_empty());
    if let Some(parent) = parent {
        fs::create_dir_all(parent)?;
    }
    match DirBuilder::new().mode(mode).create(folder) {
        Ok(()) => fs::set_permissions(folder, Permissions::from_mode(mode))?,
        Err(error) if error.kind() == ErrorKind::AlreadyExists && folder.is_dir() => {}
        Err(error) => return Err(error),
    }
    parent.map_or(Ok(()), sync_folder)
}

/// Writes a file: temp file beside it, fsync, rename over it, fsync of the folder.
pub(super) fn write(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::new(ErrorKind::InvalidInput, "not a file path"));
    };
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let temp = folder.join(format!(
        "{TEMP_PREFIX}{}-{number}-{}",
        std::process::id(),
        name.to_string_lossy()
    ));
    let written = write_new(&temp, content, mode).and_then(|()| fs::rename(&temp, path));
    if let Err(error) = written {
        // Best effort: what stays is swept at the next start, and the first error is the one that tells.
        let _ = fs::remove_file(&temp);
        return Err(error);
    }
    sync_folder(folder)
}

fn write_new(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)?;
    file.write_all(content)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    file.sync_all()
}

/// Removes a file durably; an absent one is fine.
pub(super) fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Ok(()) => path.parent().map_or(Ok(()), sync_folder),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Removes a folder with what is in it; an absent one is fine.
pub(super) fn remove_folder(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Ok(()) => folder.parent().map_or(Ok(()), sync_folder),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether a file name is that of a temp file whose writer is gone.
pub(super) fn is_leftover(name: &str) -> bool {
    name.starts_with(TEMP_PREFIX)
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode_of(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn replaces_whole_and_leaves_nothing_beside() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        write(&path, b"a longer first content", 0o600).unwrap();
        let held = File::open(&path).unwrap();
        write(&path, b"second", 0o644).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(mode_of(&path), 0o644);
        assert_eq!(names(dir.path()), ["a"]);
        assert_eq!(
            io::read_to_string(held).unwrap(),
            "a longer first content",
            "whoever has the old file open keeps it"
        );
    }

    #[test]
    fn a_failed_write_keeps_the_old_and_sweeps_its_temp_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("folder");
        fs::create_dir(&path).unwrap();
        assert!(
            write(&path, b"x", 0o600).is_err(),
            "a folder is in the way of the rename"
        );
        assert_eq!(names(dir.path()), ["folder"]);
    }

    #[test]
    fn folders_get_their_mode_only_when_made() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x/y");
        make_folder(&path, 0o711).unwrap();
        assert_eq!(mode_of(&path), 0o711);
        make_folder(&path, 0o700).unwrap();
        assert_eq!(mode_of(&path), 0o711, "an administrator's choice stays");
        fs::write(dir.path().join("file"), "").unwrap();
        assert!(make_folder(&dir.path().join("file"), 0o700).is_err());
    }

    #[test]
    fn removing_the_absent_is_fine() {
        let dir = tempfile::tempdir().unwrap();
        remove_file(&dir.path().join("nothing")).unwrap();
        remove_folder(&dir.path().join("nothing")).unwrap();
    }
}
