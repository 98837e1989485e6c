//! What the verbs need from the outside, as traits: the engine, the plugins, the pod network, the logs, the record store.
//!
//! The verbs in `runtime/` know these traits and no implementation; `lib.rs` wires the real ones, tests wire fakes. Errors
//! are per port and keep their source as text, since it may come from a client library that nobody else may know.

mod engine;
mod logs;
mod network;
mod plugins;
mod store;
mod streams;

pub use crate::model::engine::{EngineFacts, Version};
pub use engine::{
    ContainerEngine, ContainerEntry, ContainerFacts, ContainerQuery, Created, EngineError,
    EngineMount, ExecOutput, ImageFacts, ImageUsage, MountKind, PullProgress,
};
pub use logs::{ContainerLogs, LogError, LogSource};
pub use network::{NetworkError, NetworkPlan, NetworkReadiness, PodNetwork};
pub use plugins::{Configured, Hook, PluginCall, PluginError, PluginStatus, Plugins, Subject};
pub use store::{SandboxRecord, SandboxStore, StoreError};
pub use streams::{
    ExecSpec, Output, PodDialer, Session, SessionControl, StreamBackend, StreamSpec, StreamUrls,
};
