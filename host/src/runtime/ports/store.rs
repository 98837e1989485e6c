//! The records that must outlive the daemon, as the verbs see them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::model::sandbox::{PortMapping, SandboxMetadata};

/// Why a record could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file system refused.
    #[error("record {path}: {source}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The record could not be put into words.
    #[error("record {path}: {reason}")]
    Encode {
        /// Which file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

/// What is kept of a sandbox. Labels on the engine are the first truth for identity; this holds what labels cannot, since
/// they cannot change after creation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxRecord {
    /// The sandbox.
    pub id: String,
    /// Its identity.
    pub metadata: SandboxMetadata,
    /// The completion mark: every step of RunPodSandbox ended well. READY needs it.
    pub complete: bool,
    /// Key of the operation that made it; names the folder of its files (`files/<key>/`).
    pub create_key: String,
    /// CRI runtime handler.
    pub runtime_handler: String,
    /// It is on the host network.
    pub host_network: bool,
    /// Its published ports.
    pub port_mappings: Vec<PortMapping>,
    /// When starts of its containers failed, by container ID, in nanoseconds since the epoch.
    #[serde(default)]
    pub failed_starts: BTreeMap<String, i64>,
}

/// The store of sandbox records and of the files that belong to sandboxes.
#[async_trait]
pub trait SandboxStore: Send + Sync {
    /// Writes a record durably: once this returns, it survives a crash at any instant.
    async fn put(&self, record: SandboxRecord) -> Result<(), StoreError>;
    /// The record of a sandbox. A damaged one is set aside, reported and counts as absent.
    fn get(&self, id: &str) -> Option<SandboxRecord>;
    /// Removes a record; removing an absent one is fine.
    async fn remove(&self, id: &str) -> Result<(), StoreError>;
    /// IDs of all records.
    fn ids(&self) -> Vec<String>;
    /// Whether another adapter left its mark of completion for this sandbox.
    fn foreign_mark(&self, id: &str) -> bool;
    /// Records that were set aside since the start, with the reason.
    fn set_aside(&self) -> Vec<(PathBuf, String)>;
    /// Writes a file that belongs to a sandbox (its resolv.conf), atomically, and gives its path.
    async fn put_file(
        &self,
        create_key: &str,
        name: &str,
        content: &[u8],
    ) -> Result<PathBuf, StoreError>;
    /// Removes a sandbox's files; removing absent ones is fine.
    async fn remove_files(&self, create_key: &str) -> Result<(), StoreError>;
    /// Where a sandbox's files are.
    fn files_dir(&self, create_key: &str) -> PathBuf;
    /// Keys of all sandboxes that have files here.
    fn file_keys(&self) -> Vec<String>;
}
