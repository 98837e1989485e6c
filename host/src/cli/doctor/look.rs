//! Doctor's eyes: what it takes to learn the facts that the checks judge. Changes nothing that lasts.

use std::io::{self, Write};
use std::path::Path;
use std::{fs, process};

use super::node::Store;

/// Tries out a folder by writing a small file and removing it: file modes alone do not tell of read-only, full or special
/// file systems.
pub(super) fn store(root: &Path) -> Store {
    match fs::metadata(root) {
        Ok(meta) if !meta.is_dir() => Store::Unusable("is no folder".to_owned()),
        Ok(_) => match write_once(root) {
            Ok(()) => Store::Writable { free: free(root) },
            Err(error) => Store::Unusable(error.to_string()),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let nearest = root.ancestors().find(|folder| folder.exists());
            match nearest.map(write_once) {
                Some(Ok(())) => Store::CanBeMade,
                Some(Err(error)) => Store::Unusable(format!("cannot be made: {error}")),
                None => Store::Unusable("cannot be made".to_owned()),
            }
        }
        Err(error) => Store::Unusable(error.to_string()),
    }
}

fn write_once(folder: &Path) -> io::Result<()> {
    let path = folder.join(format!(".springline-doctor-{}", process::id()));
    let mut file = fs::File::create_new(&path)?;
    let written = file.write_all(&[0; 4096]).and_then(|()| file.sync_all());
    fs::remove_file(&path)?;
    written
}

fn free(folder: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(folder).ok()?;
    stat.f_bavail.checked_mul(stat.f_frsize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let fresh = folder.path().join("a/b");
        assert!(matches!(store(folder.path()), Store::Writable { free: Some(free) } if free > 0));
        assert_eq!(store(&fresh), Store::CanBeMade);
        assert!(!fresh.exists(), "looking makes nothing");
        assert_eq!(store(&file), Store::Unusable("is no folder".to_owned()));
        assert!(matches!(store(&file.join("x")), Store::Unusable(_)));
        assert!(matches!(
            store(Path::new("/proc/springline")),
            Store::Unusable(_)
        ));
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "only the file of this test is left");
    }
}
