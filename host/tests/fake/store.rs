//! The real store, with its writes through the script.

use std::path::PathBuf;

use async_trait::async_trait;
use springline::runtime::ports::{SandboxRecord, SandboxStore, StoreError};
use springline::store::FileStore;

use super::script::{Script, Verdict};

/// A [`FileStore`] whose writes can fail.
pub struct ScriptedStore {
    script: Script,
    inner: FileStore,
}

impl ScriptedStore {
    pub fn new(script: Script, inner: FileStore) -> Self {
        Self { script, inner }
    }
}

fn failure() -> StoreError {
    StoreError::Io {
        path: "/scripted".into(),
        source: std::io::Error::other("scripted"),
    }
}

macro_rules! scripted {
    ($self:ident, $what:literal, $on:expr, $work:expr) => {
        match $self.script.enter($what, $on).await {
            Verdict::Go => $work.await,
            Verdict::Refuse(_) => Err(failure()),
            Verdict::LoseAnswer => {
                let _ = $work.await;
                Err(failure())
            }
        }
    };
}

#[async_trait]
impl SandboxStore for ScriptedStore {
    async fn put(&self, record: SandboxRecord) -> Result<(), StoreError> {
        let mark = if record.complete {
            "marked"
        } else {
            "unmarked"
        };
        let on = format!("{} {mark}", record.id);
        scripted!(self, "store.put", &on, self.inner.put(record))
    }

    fn get(&self, id: &str) -> Option<SandboxRecord> {
        self.inner.get(id)
    }

    async fn remove(&self, id: &str) -> Result<(), StoreError> {
        scripted!(self, "store.remove", id, self.inner.remove(id))
    }

    fn ids(&self) -> Vec<String> {
        self.inner.ids()
    }

    fn foreign_mark(&self, id: &str) -> bool {
        self.inner.foreign_mark(id)
    }

    fn set_aside(&self) -> Vec<(PathBuf, String)> {
        self.inner.set_aside()
    }

    async fn put_file(
        &self,
        create_key: &str,
        name: &str,
        content: &[u8],
    ) -> Result<PathBuf, StoreError> {
        scripted!(
            self,
            "store.put_file",
            name,
            self.inner.put_file(create_key, name, content)
        )
    }

    async fn remove_files(&self, create_key: &str) -> Result<(), StoreError> {
        scripted!(
            self,
            "store.remove_files",
            create_key,
            self.inner.remove_files(create_key)
        )
    }

    fn files_dir(&self, create_key: &str) -> PathBuf {
        self.inner.files_dir(create_key)
    }

    fn file_keys(&self) -> Vec<String> {
        self.inner.file_keys()
    }
}
