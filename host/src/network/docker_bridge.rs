//! Docker's bridge as the pod network, for nodes without CNI: the engine connects, addresses and publishes.
//!
//! Calls nothing and keeps nothing: what there is to know stands in the sandbox's own facts. Readiness follows the engine's,
//! which Status tells by itself.

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;

use crate::model::sandbox::SandboxConfig;
use crate::runtime::ports::{
    ContainerFacts, NetworkError, NetworkPlan, NetworkReadiness, PodNetwork,
};

/// The engine's default bridge.
#[derive(Debug, Default)]
pub struct DockerBridge {
    /// The last range that was announced, so that a repeated one is not logged again.
    announced: Mutex<String>,
}

impl DockerBridge {
    /// The network; nothing has to be there yet.
    pub fn new() -> Self {
        Self::default()
    }
}

#[async_trait]
impl PodNetwork for DockerBridge {
    fn name(&self) -> &'static str {
        "docker"
    }

    fn plan(&self) -> NetworkPlan {
        NetworkPlan {
            mode: "bridge".to_owned(),
            engine_publishes_ports: true,
        }
    }

    async fn attach(
        &self,
        _config: &SandboxConfig,
        sandbox: &ContainerFacts,
    ) -> Result<Vec<IpAddr>, NetworkError> {
        if sandbox.addresses.is_empty() {
            return Err(NetworkError::Failed(format!(
                "the engine gave pod sandbox {} no address on its bridge; look at the engine's `bridge` and `bip` settings",
                sandbox.id
            )));
        }
        Ok(sandbox.addresses.clone())
    }

    /// The engine disconnects a container when it stops.
    async fn detach(&self, _sandbox_id: &str) -> Result<(), NetworkError> {
        Ok(())
    }

    /// Accepted, since the kubelet announces it in any case, but the bridge takes its range from the engine's configuration. An
    /// empty one asks for nothing (CRI). Any error means that the text is no list of ranges: the caller's mistake.
    fn set_pod_cidr(&self, cidr: &str) -> Result<(), NetworkError> {
        if cidr.is_empty() {
            return Ok(());
        }
        for range in cidr.split(',') {
            if !is_range(range.trim()) {
                return Err(NetworkError::Failed(format!(
                    "{range:?} is not an address range such as 10.88.0.0/16 (several are separated by commas)"
                )));
            }
        }
        let mut announced = self
            .announced
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if *announced != cidr {
            cidr.clone_into(&mut announced);
            tracing::info!(
                cidr,
                "pod address range announced; Docker's bridge keeps its own, set in the engine's configuration (`bip`)"
            );
        }
        Ok(())
    }

    async fn readiness(&self) -> NetworkReadiness {
        NetworkReadiness {
            ready: true,
            reason: String::new(),
            message: String::new(),
        }
    }
}

fn is_range(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let longest = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    // `parse` alone would take "+8".
    let digits = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
    digits && length.parse::<u8>().is_ok_and(|length| length <= longest)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::model::container::{EngineState, LifeFacts};
    use crate::model::resources::LinuxResources;

    #[test]
    fn pod_ranges() {
        let network = DockerBridge::new();
        for (name, cidr, fine) in [
            ("none", "", true),
            ("one", "10.88.0.0/16", true),
            ("two families", "10.88.0.0/16,fd00:88::/64", true),
            ("with a space", "10.88.0.0/16, fd00:88::/64", true),
            ("one address", "10.88.0.1/32", true),
            ("everything", "0.0.0.0/0", true),
            ("no length", "10.88.0.0", false),
            ("too long", "10.88.0.0/33", false),
            ("too long for IPv6", "fd00::/129", false),
            ("a sign", "10.88.0.0/+8", false),
            ("no number", "10.88.0.0/", false),
            ("a huge number", "10.88.0.0/99999999999", false),
            ("a name", "pods/16", false),
            ("an empty second", "10.88.0.0/16,", false),
            ("blank", " ", false),
        ] {
            let answer = network.set_pod_cidr(cidr);
            assert_eq!(answer.is_ok(), fine, "{name}: {answer:?}");
        }
    }

    fn sandbox(addresses: Vec<IpAddr>) -> ContainerFacts {
        ContainerFacts {
            id: "0a".into(),
            name: "k8s_POD_web_default_u_0".into(),
            labels: BTreeMap::new(),
            life: LifeFacts {
                engine_state: EngineState::Running,
                created_at: 1,
                started_at: 2,
                finished_at: 0,
                exit_code: 0,
                oom_killed: false,
                error: String::new(),
            },
            pid: 1,
            image_id: String::new(),
            image: String::new(),
            mounts: Vec::new(),
            log_file: None,
            log_driver: String::new(),
            network_mode: "bridge".into(),
            pid_mode: String::new(),
            ipc_mode: String::new(),
            addresses,
            resources: LinuxResources::default(),
            user: String::new(),
            groups: Vec::new(),
            stop_signal: String::new(),
            tty: false,
            runtime: String::new(),
            privileged: false,
        }
    }

    #[tokio::test]
    async fn addresses_are_the_sandboxes_own() {
        let network = DockerBridge::new();
        let config = SandboxConfig::default();
        let both: Vec<IpAddr> = vec!["172.17.0.2".parse().unwrap(), "fd00::2".parse().unwrap()];
        let given = network.attach(&config, &sandbox(both.clone())).await;
        assert_eq!(given, Ok(both));
        let error = network.attach(&config, &sandbox(Vec::new())).await;
        assert!(error.unwrap_err().to_string().contains("no address"));
    }

    #[tokio::test]
    async fn ready_and_planned_on_the_bridge() {
        let network = DockerBridge::new();
        assert!(network.readiness().await.ready);
        assert_eq!(network.plan().mode, "bridge");
        assert!(network.plan().engine_publishes_ports);
        assert_eq!(network.detach("0a").await, Ok(()));
    }
}
