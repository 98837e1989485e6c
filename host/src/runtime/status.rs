//! Status, RuntimeConfig and UpdateRuntimeConfig: what the node can do right now.

use std::sync::Arc;

use super::Runtime;
use super::ports::{EngineFacts, NetworkReadiness, PluginStatus};
use crate::error::Error;

/// How the node is.
#[derive(Debug, Clone)]
pub struct NodeStatus {
    /// The engine, or why it cannot be used.
    pub engine: Result<Arc<EngineFacts>, String>,
    /// The pod network.
    pub network: NetworkReadiness,
    /// What the pod network is called.
    pub network_name: &'static str,
    /// Every plugin of this node.
    pub plugins: Vec<PluginStatus>,
    /// Records that had to be set aside: file and reason.
    pub set_aside: Vec<(std::path::PathBuf, String)>,
}

impl Runtime {
    /// How the node is. Never fails: what is wrong is what it tells.
    pub async fn status(&self) -> NodeStatus {
        let engine = match self.engine.ping().await {
            Ok(()) => self.engine.facts().await,
            Err(error) => Err(error),
        };
        NodeStatus {
            engine: engine.map_err(|error| error.to_string()),
            network: self.network.readiness().await,
            network_name: self.network.name(),
            plugins: self.plugins.status(),
            set_aside: self.store.set_aside(),
        }
    }

    /// What is known of the engine, for Version and RuntimeConfig.
    ///
    /// # Errors
    /// The engine cannot be reached or is too old.
    pub async fn engine_facts(&self) -> Result<Arc<EngineFacts>, Error> {
        self.facts().await
    }

    /// Takes the pod address range that the kubelet announces.
    ///
    /// # Errors
    /// [`Error::Invalid`] for one that is no address range.
    pub fn update_runtime_config(&self, pod_cidr: &str) -> Result<(), Error> {
        self.network.set_pod_cidr(pod_cidr).map_err(|error| {
            Error::invalid("runtime_config.network_config.pod_cidr", error.to_string())
        })
    }
}
