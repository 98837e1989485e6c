//! The pod sandbox: what a caller may ask of it and what we tell of it.
//!
//! Requested forms mirror CRI's `PodSandboxConfig` with the enums typed and impossible values gone; reported forms mirror
//! `PodSandboxStatus`. Knows neither gRPC nor the engine.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::ids::SandboxId;
use super::labels::Metadata;
use super::security::SandboxSecurity;

/// Identity of a sandbox: the same four values mean the same sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SandboxMetadata {
    /// The pod's name.
    pub name: String,
    /// The pod's UID.
    pub uid: String,
    /// The pod's Kubernetes namespace.
    pub namespace: String,
    /// Counts the sandboxes that the kubelet made for this pod, from 0.
    pub attempt: u32,
}

/// What RunPodSandbox is asked to make.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SandboxConfig {
    /// Identity.
    pub metadata: SandboxMetadata,
    /// Host name inside; empty = the engine's choice (or the node's, on the host network).
    pub hostname: String,
    /// Folder for the logs of the sandbox's containers; empty = containers have none.
    pub log_directory: String,
    /// resolv.conf to write; `None` = the engine's default.
    pub dns: Option<DnsConfig>,
    /// Ports to publish on the node.
    pub port_mappings: Vec<PortMapping>,
    /// Labels and annotations.
    pub meta: Metadata,
    /// Parent cgroup as the kubelet names it; empty = the engine's default.
    pub cgroup_parent: String,
    /// Kernel parameters for the sandbox's namespaces.
    pub sysctls: BTreeMap<String, String>,
    /// Security settings that the host itself translates.
    pub security: SandboxSecurity,
    /// CRI runtime handler; empty = the default.
    pub runtime_handler: String,
}

/// The content of a resolv.conf.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DnsConfig {
    /// `nameserver` lines.
    pub servers: Vec<String>,
    /// The `search` line.
    pub searches: Vec<String>,
    /// The `options` line.
    pub options: Vec<String>,
}

impl DnsConfig {
    /// Whether it asks for nothing, which leaves the engine's default.
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty() && self.searches.is_empty() && self.options.is_empty()
    }
}

/// Transport protocol of a published port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

impl Protocol {
    /// The lower-case word that engines and CNI plugins use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Sctp => "sctp",
        }
    }
}

/// A port of the sandbox and, if any, the node's port that leads to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortMapping {
    /// Transport.
    pub protocol: Protocol,
    /// Port inside, 1..=65535.
    pub container_port: u16,
    /// Port on the node; 0 = not published (the CRI's meaning of an unset host port).
    pub host_port: u16,
    /// Address of the node to publish on; empty = all.
    pub host_ip: String,
}

/// With whom a namespace is shared (CRI `NamespaceMode`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NamespaceMode {
    /// With the pod's other containers.
    #[default]
    Pod,
    /// With nobody.
    Container,
    /// With the node.
    Node,
    /// With one named container of the pod.
    Target,
}

/// Whether a sandbox can run containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxState {
    /// Completed and running.
    Ready,
    /// Half-built, stopped, or its network lost.
    NotReady,
}

/// Namespaces of a sandbox as they are in force.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SandboxNamespaces {
    /// Network namespace.
    pub network: NamespaceMode,
    /// PID namespace.
    pub pid: NamespaceMode,
    /// IPC namespace.
    pub ipc: NamespaceMode,
}

/// A sandbox as lists show it.
#[derive(Debug, Clone, PartialEq)]
pub struct SandboxSummary {
    /// Its ID.
    pub id: SandboxId,
    /// Its identity.
    pub metadata: SandboxMetadata,
    /// Whether it can run containers.
    pub state: SandboxState,
    /// Nanoseconds since the epoch.
    pub created_at: i64,
    /// Labels and annotations as the caller gave them.
    pub meta: Metadata,
    /// CRI runtime handler.
    pub runtime_handler: String,
}

/// A sandbox in full.
#[derive(Debug, Clone, PartialEq)]
pub struct SandboxStatus {
    /// What lists show too.
    pub summary: SandboxSummary,
    /// Addresses, the primary first; empty on the host network (CRI) and when there is none.
    pub addresses: Vec<IpAddr>,
    /// Namespaces in force.
    pub namespaces: SandboxNamespaces,
    /// Process ID of the sandbox's own process on the node; 0 when it does not run.
    pub pid: u32,
    /// The folder that holds the sandbox's files of ours, for the verbose answer.
    pub files: Option<PathBuf>,
}
