//! The platform plugins as the verbs see them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

use crate::draft::{Draft, Pointer};
use crate::model::engine::EngineFacts;

/// A point at which plugins are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hook {
    /// While a sandbox's create body is built.
    Sandbox,
    /// While a container's create body is built.
    Container,
}

impl Hook {
    /// The name of the exported interface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sandbox => "sandbox",
            Self::Container => "container",
        }
    }
}

/// Whom a call is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subject {
    /// Pod's UID.
    pub pod_uid: String,
    /// Pod's namespace.
    pub pod_namespace: String,
    /// Pod's name.
    pub pod_name: String,
    /// Sandbox, once there is one.
    pub sandbox_id: Option<String>,
    /// Container's name in the pod.
    pub container_name: Option<String>,
    /// Container, once there is one.
    pub container_id: Option<String>,
    /// Attempt of the container, or of the sandbox.
    pub attempt: u32,
}

/// What plugins are called with.
#[derive(Debug, Clone)]
pub struct PluginCall {
    /// Which hook.
    pub hook: Hook,
    /// Whom it is about.
    pub subject: Subject,
    /// The CRI request as JSON in proto field names, `/image/config` added for containers.
    pub request: Arc<Value>,
    /// Annotations of the pod or container, for `request.annotation`.
    pub annotations: Arc<std::collections::BTreeMap<String, String>>,
    /// The engine, for `node.fact`.
    pub engine: Arc<EngineFacts>,
    /// The body so far.
    pub draft: Draft,
    /// True when nothing will be created from it.
    pub dry_run: bool,
}

/// What the chain of plugins gave.
#[derive(Debug, Clone)]
pub struct Configured {
    /// The body with what they added.
    pub draft: Draft,
    /// Request pointers that a plugin said it dealt with.
    pub handled: BTreeSet<Pointer>,
    /// Digest over the plugins that ran, hexadecimal; empty when none did.
    pub chain_digest: String,
}

/// Why the chain gave nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PluginError {
    /// A platform field is set and no loaded plugin handles it: fail closed.
    #[error("{field}: {reason}")]
    Unhandled {
        /// The field as CRI names it.
        field: String,
        /// Why it counts as set, and what to do.
        reason: String,
    },
    /// What the node's operator gave the plugin is wrong or missing.
    #[error("plugin {plugin}: {message}")]
    Settings {
        /// Its ID.
        plugin: String,
        /// Its words, naming the field.
        message: String,
    },
    /// The plugin or the node cannot do it.
    #[error("plugin {plugin}: {message}")]
    Unsupported {
        /// Its ID.
        plugin: String,
        /// Its words, naming the field.
        message: String,
    },
    /// A policy's verdict.
    #[error("plugin {plugin} denies it: {message}")]
    Denied {
        /// Its ID.
        plugin: String,
        /// Its words.
        message: String,
    },
    /// Repeating may help.
    #[error("plugin {plugin}: {message}; try again later")]
    RetryLater {
        /// Its ID.
        plugin: String,
        /// Its words.
        message: String,
    },
    /// The request cannot be done as it stands: a value in it, or something it names, is wrong.
    #[error("plugin {plugin}: {message}")]
    Fatal {
        /// Its ID.
        plugin: String,
        /// Its words.
        message: String,
    },
    /// It trapped, ran out of time or memory, or broke the contract.
    #[error("plugin {plugin} failed in its {hook} hook: {reason}")]
    Broken {
        /// Its ID.
        plugin: String,
        /// Which hook.
        hook: &'static str,
        /// What happened.
        reason: String,
    },
}

/// A loaded (or failed) plugin, for status and doctor.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct PluginStatus {
    /// Its ID.
    pub id: String,
    /// Its own version.
    pub version: String,
    /// SHA-256 of its component, hexadecimal.
    pub digest: String,
    /// Hooks it exports, in order of the contract.
    pub hooks: Vec<String>,
    /// Where it came from: `shipped` or a path.
    pub source: String,
    /// Why it does not serve; `None` = it does.
    pub error: Option<String>,
    /// Calls so far.
    pub calls: u64,
    /// Calls that failed so far.
    pub failures: u64,
    /// Time of all calls so far.
    #[serde(skip)]
    pub busy: Duration,
}

/// The chain of plugins.
#[async_trait]
pub trait Plugins: Send + Sync {
    /// Runs every plugin that has this hook, in order, each on a layer kept only if it ends well.
    ///
    /// # Errors
    /// The first plugin's failure; the caller's draft is untouched (it was given by value as a clone).
    async fn configure(&self, call: PluginCall) -> Result<Configured, PluginError>;
    /// Every plugin of this node.
    fn status(&self) -> Vec<PluginStatus>;
}
