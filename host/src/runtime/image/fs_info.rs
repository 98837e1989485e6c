//! ImageFsInfo.

use std::path::PathBuf;

use super::Runtime;
use crate::error::Error;
use crate::runtime::now;

/// What images take of a file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FsUsage {
    /// Nanoseconds since the epoch.
    pub timestamp: i64,
    /// A path on the file system; the kubelet finds its size and free space by it.
    pub mountpoint: PathBuf,
    /// Bytes that images take.
    pub used_bytes: u64,
    /// Inodes in use on the whole file system; `None` when it counts none.
    pub inodes_used: Option<u64>,
}

impl Runtime {
    /// What images take of the engine's file system; its containers are on the same one.
    ///
    /// # Errors
    /// The engine's.
    pub async fn image_fs_info(&self) -> Result<FsUsage, Error> {
        let facts = self.facts().await?;
        let usage = self
            .engine
            .image_usage()
            .await
            .map_err(Error::engine("asking what images take"))?;
        let inodes_used = rustix::fs::statvfs(&facts.root_dir)
            .ok()
            .filter(|fs| fs.f_files > 0)
            .map(|fs| fs.f_files.saturating_sub(fs.f_ffree));
        Ok(FsUsage {
            timestamp: now(),
            mountpoint: facts.root_dir.clone(),
            used_bytes: usage.bytes,
            inodes_used,
        })
    }
}
