//! The container engine as the verbs see it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

#[cfg(doc)]
use super::streams::SessionControl;
use super::streams::{ExecSpec, Session, StreamSpec};
use crate::model::container::LifeFacts;
use crate::model::engine::{EngineFacts, Version};
use crate::model::image::RegistryAuth;
use crate::model::mount::Propagation;
use crate::model::resources::LinuxResources;

/// Why an engine call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// No connection, or it broke.
    #[error("the container engine cannot be reached at {endpoint}: {reason}")]
    Unreachable {
        /// Where it was looked for.
        endpoint: String,
        /// What the connection said.
        reason: String,
    },
    /// It did not answer in time.
    #[error("the container engine did not answer within {after:?}")]
    Timeout {
        /// How long was waited.
        after: Duration,
    },
    /// It knows no such thing (404).
    #[error("{0}")]
    NotFound(String),
    /// The thing's state or a name forbids it (409).
    #[error("{0}")]
    Conflict(String),
    /// It calls the request wrong (400).
    #[error("{0}")]
    BadRequest(String),
    /// It, or the registry behind it, refuses for lack of rights (401, 403).
    #[error("{0}")]
    Denied(String),
    /// Its API is older than what is needed.
    #[error("{what} needs engine API {needs}, this engine has {has}")]
    TooOld {
        /// The feature.
        what: String,
        /// The first API version that has it.
        needs: Version,
        /// The negotiated one.
        has: Version,
    },
    /// It failed (5xx), in its words.
    #[error("{0}")]
    Failed(String),
    /// Its answer makes no sense.
    #[error("the container engine's answer makes no sense: {0}")]
    Garbled(String),
}

/// Which containers to list; all states always.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContainerQuery {
    /// Labels that must be there with these values.
    pub labels: Vec<(String, String)>,
    /// Engine container ID or a prefix of one.
    pub id: Option<String>,
}

/// A container as the engine lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerEntry {
    /// Full ID.
    pub id: String,
    /// Name without the leading slash.
    pub name: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Nanoseconds since the epoch (the engine lists whole seconds).
    pub created_at: i64,
    /// Its state word.
    pub state: crate::model::container::EngineState,
    /// Image ID.
    pub image_id: String,
    /// Image as the create request named it.
    pub image: String,
}

/// What kind of thing a mount shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MountKind {
    /// A path of the node.
    Bind,
    /// An image.
    Image,
    /// A volume, tmpfs or other thing of the engine.
    Other,
}

/// A mount in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineMount {
    /// What it shows.
    pub kind: MountKind,
    /// Path on the node, or image reference.
    pub source: String,
    /// Path inside the image, for image mounts.
    pub sub_path: String,
    /// Path inside.
    pub target: String,
    /// Read-only.
    pub readonly: bool,
    /// Read-only down to mounts below.
    pub recursive_read_only: bool,
    /// Propagation.
    pub propagation: Propagation,
    /// Relabelled for SELinux (`z` or `Z`).
    pub relabel: bool,
}

/// A container as the engine describes it in full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerFacts {
    /// Full ID.
    pub id: String,
    /// Name without the leading slash.
    pub name: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Its life.
    pub life: LifeFacts,
    /// First process on the node; 0 when it does not run.
    pub pid: u32,
    /// Image ID.
    pub image_id: String,
    /// Image as the create request named it.
    pub image: String,
    /// Mounts in force.
    pub mounts: Vec<EngineMount>,
    /// The engine's own log file; `None` when its driver keeps none.
    pub log_file: Option<PathBuf>,
    /// Log driver.
    pub log_driver: String,
    /// `host`, `bridge`, `container:<id>`, …
    pub network_mode: String,
    /// `host`, `container:<id>` or empty.
    pub pid_mode: String,
    /// `host`, `shareable`, `container:<id>`, `private` or empty.
    pub ipc_mode: String,
    /// Addresses in its networks, IPv4 before IPv6.
    pub addresses: Vec<IpAddr>,
    /// Limits in force.
    pub resources: LinuxResources,
    /// `user[:group]` it runs as; empty = root.
    pub user: String,
    /// Supplemental groups that were added, as they were given.
    pub groups: Vec<String>,
    /// Signal that asks it to stop; empty = the engine's default.
    pub stop_signal: String,
    /// It has a terminal.
    pub tty: bool,
    /// OCI runtime.
    pub runtime: String,
    /// Read-only root filesystem, privileged: for the verbose answer.
    pub privileged: bool,
}

/// What a create call gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    /// Full ID.
    pub id: String,
    /// What the engine wants said about it.
    pub warnings: Vec<String>,
}

/// What a command run in a container gave.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecOutput {
    /// Its standard output, cut at the limit.
    pub stdout: Vec<u8>,
    /// Its standard error, cut at the limit.
    pub stderr: Vec<u8>,
    /// Its exit code.
    pub exit_code: i32,
}

/// An image as the engine describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct ImageFacts {
    /// The one identity, `sha256:…`.
    pub id: String,
    /// Tags without `<none>`.
    pub repo_tags: Vec<String>,
    /// Digests without `<none>`.
    pub repo_digests: Vec<String>,
    /// Bytes on disk.
    pub size: u64,
    /// The image's `USER`; lists do not say it (`None`).
    pub user: Option<String>,
    /// The image's labels.
    pub labels: BTreeMap<String, String>,
    /// The image's configuration as the engine words it (`User`, `Entrypoint`, `Env`, …); null in lists.
    pub config: Value,
}

/// Space that images take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageUsage {
    /// Bytes of all layers.
    pub bytes: u64,
}

/// A step of a pull, for the log and a metric.
pub type PullProgress = Arc<dyn Fn(&str) + Send + Sync>;

/// The container engine.
///
/// Every call ends: implementations put a deadline of their own on those that have no natural end. Dropping a call's future
/// gives up waiting; whether the engine takes back what it began is the engine's affair.
#[async_trait]
pub trait ContainerEngine: Send + Sync {
    /// What is known of the engine; asks it only after a new connection.
    async fn facts(&self) -> Result<Arc<EngineFacts>, EngineError>;
    /// Asks it anew whether it lives; a short deadline.
    async fn ping(&self) -> Result<(), EngineError>;

    /// Creates a container from the draft's own body.
    async fn create(&self, name: &str, body: &Value) -> Result<Created, EngineError>;
    /// Starts a container; starting a running one is fine.
    async fn start(&self, id: &str) -> Result<(), EngineError>;
    /// Asks it to stop and kills it after `grace`; stopping a stopped one is fine.
    async fn stop(&self, id: &str, grace: Duration) -> Result<(), EngineError>;
    /// Removes a container with its anonymous volumes, killing it if it runs.
    async fn remove(&self, id: &str) -> Result<(), EngineError>;
    /// Describes a container by ID, ID prefix or name.
    async fn inspect(&self, id_or_name: &str) -> Result<ContainerFacts, EngineError>;
    /// Lists containers in all states.
    async fn list(&self, query: &ContainerQuery) -> Result<Vec<ContainerEntry>, EngineError>;
    /// Changes limits of a container, in the engine's own field names.
    async fn update(&self, id: &str, body: &Value) -> Result<(), EngineError>;
    /// Runs a command and waits for it; each stream is cut at `limit` bytes. On `timeout` the command is ended and
    /// [`EngineError::Timeout`] given.
    async fn exec_sync(
        &self,
        id: &str,
        cmd: &[String],
        limit: usize,
        timeout: Option<Duration>,
    ) -> Result<ExecOutput, EngineError>;
    /// Runs a command with live streams. A session that is dropped before [`SessionControl::exit_code`] has told its end is
    /// abandoned: nobody is left to talk to it.
    async fn exec_session(&self, id: &str, spec: &ExecSpec) -> Result<Session, EngineError>;
    /// Attaches to the container's own process. Its own terminal counts, not the spec's. Without a terminal and where the
    /// container closes its input after one attach, the end of input reaches the process; elsewhere it ends the session.
    async fn attach(&self, id: &str, streams: StreamSpec) -> Result<Session, EngineError>;

    /// Describes an image by tag, digest, ID or ID prefix. A tag that looks like an ID prefix means the tag.
    async fn image(&self, reference: &str) -> Result<ImageFacts, EngineError>;
    /// Lists images, without intermediate ones.
    async fn images(&self) -> Result<Vec<ImageFacts>, EngineError>;
    /// Fetches an image; ends when the engine has it. Dropping the future stops the fetch.
    async fn pull(
        &self,
        reference: &str,
        auth: Option<&RegistryAuth>,
        progress: PullProgress,
    ) -> Result<(), EngineError>;
    /// Removes one tag, one digest or an untagged ID.
    async fn remove_image(&self, reference: &str) -> Result<(), EngineError>;
    /// Loads images from an archive in the engine's own form.
    async fn load_image(&self, archive: Vec<u8>) -> Result<(), EngineError>;
    /// Space that images take.
    async fn image_usage(&self) -> Result<ImageUsage, EngineError>;
}
