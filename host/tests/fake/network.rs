//! A fake pod network: it keeps who is attached.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use springline::model::container::EngineState;
use springline::model::sandbox::SandboxConfig;
use springline::runtime::ports::{
    ContainerFacts, NetworkError, NetworkPlan, NetworkReadiness, PodNetwork,
};

use super::script::{Script, Verdict};

/// The fake pod network.
pub struct FakeNetwork {
    script: Script,
    plan: NetworkPlan,
    attached: Mutex<BTreeSet<String>>,
}

impl FakeNetwork {
    /// Docker's bridge, as the real one plans it.
    pub fn new(script: Script) -> Self {
        Self {
            script,
            plan: NetworkPlan {
                mode: "bridge".into(),
                engine_publishes_ports: true,
            },
            attached: Mutex::default(),
        }
    }

    /// Sandboxes that are attached.
    pub fn attached(&self) -> BTreeSet<String> {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.attached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn failure() -> NetworkError {
    NetworkError::Failed("scripted".into())
}

#[async_trait]
impl PodNetwork for FakeNetwork {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn plan(&self) -> NetworkPlan {
        self.plan.clone()
    }

    async fn attach(
        &self,
        _config: &SandboxConfig,
        sandbox: &ContainerFacts,
    ) -> Result<Vec<IpAddr>, NetworkError> {
        let verdict = self.script.enter("network.attach", &sandbox.id).await;
        if let Verdict::Refuse(_) = verdict {
            return Err(failure());
        }
        if sandbox.life.engine_state != EngineState::Running {
            return Err(NetworkError::Failed("it does not run".into()));
        }
        self.lock().insert(sandbox.id.clone());
        match verdict {
            Verdict::LoseAnswer => Err(failure()),
            _ => Ok(sandbox.addresses.clone()),
        }
    }

    async fn detach(&self, sandbox_id: &str) -> Result<(), NetworkError> {
        let verdict = self.script.enter("network.detach", sandbox_id).await;
        if let Verdict::Refuse(_) = verdict {
            return Err(failure());
        }
        self.lock().remove(sandbox_id);
        match verdict {
            Verdict::LoseAnswer => Err(failure()),
            _ => Ok(()),
        }
    }

    fn set_pod_cidr(&self, cidr: &str) -> Result<(), NetworkError> {
        if cidr.is_empty() || cidr.contains('/') {
            Ok(())
        } else {
            Err(NetworkError::Failed(format!("{cidr:?} is no range")))
        }
    }

    async fn readiness(&self) -> NetworkReadiness {
        NetworkReadiness {
            ready: true,
            reason: String::new(),
            message: String::new(),
        }
    }
}
