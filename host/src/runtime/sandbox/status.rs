//! PodSandboxStatus.

use super::namespace_mode;
use crate::error::Error;
use crate::model::ids::SandboxId;
use crate::model::labels;
use crate::model::sandbox::{
    NamespaceMode, SandboxNamespaces, SandboxState, SandboxStatus, SandboxSummary,
};
use crate::runtime::Runtime;
use crate::runtime::resolve::Wanted;

impl Runtime {
    /// A sandbox in full.
    ///
    /// # Errors
    /// [`Error::NotFound`] for one that is not there.
    pub async fn pod_sandbox_status(&self, id: &str) -> Result<SandboxStatus, Error> {
        let facts = self.resolve(id, Wanted::Sandbox).await?;
        let state = self.sandbox_state(&facts.id, facts.life.engine_state);
        let network = namespace_mode(&facts.network_mode);
        Ok(SandboxStatus {
            // CRI: the node's addresses are not the pod's; and what is not ready has none to rely on.
            addresses: if network == NamespaceMode::Pod && state == SandboxState::Ready {
                facts.addresses.clone()
            } else {
                Vec::new()
            },
            namespaces: SandboxNamespaces {
                network,
                pid: if facts.pid_mode == "host" {
                    NamespaceMode::Node
                } else {
                    NamespaceMode::Container
                },
                ipc: namespace_mode(&facts.ipc_mode),
            },
            pid: facts.pid,
            files: facts
                .labels
                .get(labels::CREATE_KEY)
                .map(|key| self.store.files_dir(key)),
            summary: SandboxSummary {
                state,
                metadata: self.identity_of_sandbox(&facts.id, &facts.name, &facts.labels),
                created_at: facts.life.created_at,
                meta: labels::from_engine(&facts.labels),
                runtime_handler: facts
                    .labels
                    .get(labels::RUNTIME_HANDLER)
                    .cloned()
                    .unwrap_or_default(),
                id: SandboxId::new(facts.id),
            },
        })
    }
}
