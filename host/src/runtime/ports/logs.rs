//! Container logs as the verbs see them: from the engine's own log to the file that the kubelet reads.

use std::path::{Path, PathBuf};

use async_trait::async_trait;

/// Why a log cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The path leaves the log directory or is no file path.
    #[error("{field}: {reason}")]
    BadPath {
        /// The field as CRI names it.
        field: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The file or its folders cannot be made.
    #[error("container log {path}: {source}")]
    Io {
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// One container's log to follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSource {
    /// Container ID.
    pub container_id: String,
    /// The engine's json-file log. It may not exist before the first line.
    pub engine_log: PathBuf,
    /// The CRI-format file to write; absolute.
    pub cri_log: PathBuf,
}

/// The log writer of this node.
#[async_trait]
pub trait ContainerLogs: Send + Sync {
    /// Makes the folders and the file, so that an unwritable path fails before the process runs.
    async fn prepare(&self, cri_log: &Path) -> Result<(), LogError>;
    /// Begins (or, after a restart of ours, resumes) to follow; following twice is fine. Returns without waiting for lines.
    async fn follow(&self, source: LogSource) -> Result<(), LogError>;
    /// Waits until all that the engine wrote for this container is in our file. Call it once the container has ended: from
    /// then on nothing is added. A container that is not followed is complete at once.
    async fn complete(&self, container_id: &str);
    /// Completes and lets go of it; the file stays, it is the kubelet's to delete.
    async fn forget(&self, container_id: &str);
}
