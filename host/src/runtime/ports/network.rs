//! The pod network as the verbs see it. Docker's bridge is the first implementation; CNI will be the second.

use std::net::IpAddr;

use async_trait::async_trait;

use super::engine::ContainerFacts;
use crate::model::sandbox::SandboxConfig;

/// Why a pod network call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// The network is not configured or not up.
    #[error("the pod network is not ready: {0}")]
    NotReady(String),
    /// Setting up or taking down failed.
    #[error("pod network: {0}")]
    Failed(String),
}

/// How the engine is to create a sandbox so that this network can serve it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkPlan {
    /// The engine's network mode for the sandbox (`bridge`, `none`).
    pub mode: String,
    /// Whether the engine publishes the host ports itself.
    pub engine_publishes_ports: bool,
}

/// Whether pods can have a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkReadiness {
    /// CRI's NetworkReady.
    pub ready: bool,
    /// CamelCase reason, empty when ready.
    pub reason: String,
    /// What to do, empty when ready.
    pub message: String,
}

/// The pod network. Never called for pods on the host network.
#[async_trait]
pub trait PodNetwork: Send + Sync {
    /// What it is called in status, `docker`.
    fn name(&self) -> &'static str;
    /// How to create the sandbox.
    fn plan(&self) -> NetworkPlan;
    /// Connects a sandbox whose process runs. Gives its addresses, the primary first.
    async fn attach(
        &self,
        config: &SandboxConfig,
        sandbox: &ContainerFacts,
    ) -> Result<Vec<IpAddr>, NetworkError>;
    /// Disconnects a sandbox; disconnecting one that is not connected is fine.
    async fn detach(&self, sandbox_id: &str) -> Result<(), NetworkError>;
    /// Takes note of the pod address range that the kubelet announces (UpdateRuntimeConfig).
    fn set_pod_cidr(&self, cidr: &str) -> Result<(), NetworkError>;
    /// Whether pods can have a network now.
    async fn readiness(&self) -> NetworkReadiness;
}
