//! Records on disk, one small file each; the real [`crate::runtime::ports::SandboxStore`].
//!
//! Owns everything below the root folder:
//!
//! ```text
//! sandboxes/<id>.json   one versioned, checksummed record per sandbox (mode 0700 folder)
//! files/<key>/<name>    files bind-mounted into a sandbox, its resolv.conf (world-readable: containers read them)
//! corrupt/              what could not be read, moved here with the time added to its name
//! ```
//!
//! All records are read once at open and answered from memory; every change reaches the disk first, as temp file, fsync,
//! rename, fsync of the folder. Must not know what the records mean, nor the engine.
//!
//! Failure: a damaged record costs itself and is set aside, it never keeps the store from opening; a change that the disk
//! refuses is an error and leaves the memory as it was. A change that began goes on to its end even if its caller is gone.

mod atomic;
mod envelope;
mod foreign;
mod load;
mod turns;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;

use crate::model::ids::is_container_id;
use crate::runtime::ports::{SandboxRecord, SandboxStore, StoreError};
use turns::Turns;

/// Where cri-dockerd keeps its sandbox files unless told otherwise.
pub const CRI_DOCKERD_SANDBOXES: &str = "/var/lib/cri-dockerd/sandbox";

/// The store of this node.
#[derive(Debug)]
pub struct FileStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    sandboxes: PathBuf,
    files: PathBuf,
    /// The other adapter's folder; read, never written.
    foreign: PathBuf,
    records: RwLock<BTreeMap<String, SandboxRecord>>,
    /// Fixed at open: later there is nothing on disk that we did not write.
    set_aside: Vec<(PathBuf, String)>,
    /// One writer per file at a time, so that disk and memory agree on who was last.
    turns: Turns,
}

impl FileStore {
    /// Opens the store below `root`, making its folders, and reads all records. Call it before the daemon serves: it does
    /// blocking I/O. `foreign_root` is where cri-dockerd left its sandbox files ([`CRI_DOCKERD_SANDBOXES`] if `None`).
    ///
    /// # Errors
    /// Only when a folder cannot be made or listed. A bad record is set aside instead.
    pub fn open(root: &Path, foreign_root: Option<PathBuf>) -> Result<Self, StoreError> {
        let sandboxes = root.join("sandboxes");
        let files = root.join("files");
        let corrupt = root.join("corrupt");
        // 0711: whoever has to reach a bind-mounted file below may pass (a rootless engine), nobody may look around.
        for (folder, mode) in [
            (root, 0o711),
            (&sandboxes, 0o700),
            (&files, 0o711),
            (&corrupt, 0o700),
        ] {
            atomic::make_folder(folder, mode).map_err(|source| io_error(folder, source))?;
        }
        let loaded = load::sandboxes(&sandboxes, &corrupt)?;
        load::sweep_files(&files)?;
        Ok(Self {
            inner: Arc::new(Inner {
                sandboxes,
                files,
                foreign: foreign_root.unwrap_or_else(|| PathBuf::from(CRI_DOCKERD_SANDBOXES)),
                records: RwLock::new(loaded.records),
                set_aside: loaded.set_aside,
                turns: Turns::default(),
            }),
        })
    }

    /// Runs `work` on a thread that may block when the path's turn comes. Once begun it goes on to its end, and keeps the
    /// turn until then, even if the caller is dropped: a later change cannot be overtaken by an earlier one.
    async fn blocking<T: Send + 'static>(
        &self,
        path: PathBuf,
        work: impl FnOnce(&Inner, &Path) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let turn = self.inner.turns.take(&path).await;
        let inner = Arc::clone(&self.inner);
        let named = path.clone();
        let task = tokio::task::spawn_blocking(move || {
            let done = work(&inner, &path);
            drop(turn);
            done
        });
        task.await
            .unwrap_or_else(|join| Err(io_error(&named, io::Error::other(join))))
    }
}

impl Inner {
    fn put(&self, path: &Path, record: SandboxRecord) -> Result<(), StoreError> {
        let text = envelope::encode(&record).map_err(|source| StoreError::Encode {
            path: path.to_owned(),
            reason: source.to_string(),
        })?;
        atomic::write(path, text.as_bytes(), 0o600).map_err(|source| io_error(path, source))?;
        self.write_lock().insert(record.id.clone(), record);
        Ok(())
    }

    fn remove(&self, path: &Path, id: &str) -> Result<(), StoreError> {
        atomic::remove_file(path).map_err(|source| io_error(path, source))?;
        self.write_lock().remove(id);
        Ok(())
    }

    fn write_lock(&self) -> std::sync::RwLockWriteGuard<'_, BTreeMap<String, SandboxRecord>> {
        self.records.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn read_lock(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<String, SandboxRecord>> {
        self.records.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn record_path(&self, id: &str) -> Result<PathBuf, StoreError> {
        if is_container_id(id) {
            Ok(self.sandboxes.join(format!("{id}.json")))
        } else {
            Err(refused(&self.sandboxes, id))
        }
    }
}

#[async_trait]
impl SandboxStore for FileStore {
    async fn put(&self, record: SandboxRecord) -> Result<(), StoreError> {
        let path = self.inner.record_path(&record.id)?;
        self.blocking(path, move |inner, path| inner.put(path, record))
            .await
    }

    fn get(&self, id: &str) -> Option<SandboxRecord> {
        self.inner.read_lock().get(id).cloned()
    }

    async fn remove(&self, id: &str) -> Result<(), StoreError> {
        let path = self.inner.record_path(id)?;
        let id = id.to_owned();
        self.blocking(path, move |inner, path| inner.remove(path, &id))
            .await
    }

    fn ids(&self) -> Vec<String> {
        self.inner.read_lock().keys().cloned().collect()
    }

    fn foreign_mark(&self, id: &str) -> bool {
        is_container_id(id) && foreign::is_mark(&self.inner.foreign.join(id))
    }

    fn set_aside(&self) -> Vec<(PathBuf, String)> {
        self.inner.set_aside.clone()
    }

    async fn put_file(
        &self,
        create_key: &str,
        name: &str,
        content: &[u8],
    ) -> Result<PathBuf, StoreError> {
        for part in [create_key, name] {
            if !is_plain_name(part) {
                return Err(refused(&self.inner.files, part));
            }
        }
        let name = name.to_owned();
        let content = content.to_vec();
        // The turn is the folder's: its removal and a file written into it must not mix.
        self.blocking(self.files_dir(create_key), move |_, folder| {
            let path = folder.join(name);
            atomic::make_folder(folder, 0o755)
                .and_then(|()| atomic::write(&path, &content, 0o644))
                .map_err(|source| io_error(&path, source))?;
            Ok(path)
        })
        .await
    }

    async fn remove_files(&self, create_key: &str) -> Result<(), StoreError> {
        if !is_plain_name(create_key) {
            return Err(refused(&self.inner.files, create_key));
        }
        self.blocking(self.files_dir(create_key), |_, folder| {
            atomic::remove_folder(folder).map_err(|source| io_error(folder, source))
        })
        .await
    }

    fn files_dir(&self, create_key: &str) -> PathBuf {
        // A key that is refused above has no files; this name is never made (plain names do not begin with a dot).
        let name = if is_plain_name(create_key) {
            create_key
        } else {
            ".refused"
        };
        self.inner.files.join(name)
    }

    fn file_keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = std::fs::read_dir(&self.inner.files)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| is_plain_name(name))
            .collect();
        keys.sort();
        keys
    }
}

/// Whether `text` is safe as one component of a path: short, of unremarkable characters, not hidden.
fn is_plain_name(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    !text.is_empty() && text.len() <= 128 && !text.starts_with('.') && text.bytes().all(allowed)
}

fn io_error(path: &Path, source: io::Error) -> StoreError {
    StoreError::Io {
        path: path.to_owned(),
        source,
    }
}

fn refused(folder: &Path, name: &str) -> StoreError {
    StoreError::Encode {
        path: folder.to_owned(),
        reason: format!("{name:?} cannot name a file here"),
    }
}

#[cfg(test)]
mod tests;
