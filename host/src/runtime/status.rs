//! Status, RuntimeConfig and UpdateRuntimeConfig: what the node can do right now.

use std::sync::Arc;
use std::time::Duration;

use super::Runtime;
use super::ports::{EngineFacts, NetworkReadiness, PluginStatus};
use crate::error::Error;

/// What stands for the version of an engine that does not answer; the kubelet wants something that reads as a version.
pub const UNKNOWN_VERSION: &str = "0.0.0-unknown";
/// How long Version waits for an engine.
const VERSION_PATIENCE: Duration = Duration::from_secs(1);

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
        let network = match &engine {
            // A network that the engine makes is as gone as the engine.
            Err(error) if self.network.plan().mode != "none" => NetworkReadiness {
                ready: false,
                reason: "ContainerEngineUnavailable".to_owned(),
                message: error.to_string(),
            },
            _ => self.network.readiness().await,
        };
        NodeStatus {
            engine: engine.map_err(|error| error.to_string()),
            network,
            network_name: self.network.name(),
            plugins: self.plugins.status(),
            set_aside: self.store.set_aside(),
        }
    }

    /// The engine's version, or [`UNKNOWN_VERSION`] while it cannot be asked: the kubelet and crictl ask for versions before
    /// anything else, and must get as far as Status to learn what is wrong.
    pub async fn engine_version(&self) -> String {
        match tokio::time::timeout(VERSION_PATIENCE, self.engine.facts()).await {
            Ok(Ok(facts)) => facts.version.clone(),
            Ok(Err(_)) | Err(_) => UNKNOWN_VERSION.to_owned(),
        }
    }

    /// What is known of the engine, for RuntimeConfig.
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
