//! RemovePodSandbox: containers, then the network, then the sandbox, then what we keep of it.
//!
//! The record goes last and only once the engine has removed the sandbox: a removal that failed can be repeated with
//! everything known. Removing what is gone is fine, and sweeps what was kept of it.

use futures_util::future::join_all;

use super::first_error;
use crate::error::Error;
use crate::model::{ids, labels};
use crate::runtime::Runtime;
use crate::runtime::resolve::{Wanted, gone_is_fine};

impl Runtime {
    /// Removes a sandbox and everything in it, running or not.
    ///
    /// # Errors
    /// The first failure; nothing that is still needed for a repeat is forgotten.
    pub async fn remove_pod_sandbox(&self, id: &str) -> Result<(), Error> {
        let Some(sandbox) = self.resolve_if_there(id, Wanted::Sandbox).await? else {
            // The container may have been removed behind our back; a record under this very ID is then all that is left.
            if ids::is_container_id(id) && self.store.get(id).is_some() {
                self.detach_network(id, false).await?;
                self.forget_sandbox(id, None).await?;
            }
            return Ok(());
        };
        self.stop_containers_of(&sandbox.id).await?;
        let containers = self.containers_of(&sandbox.id).await?;
        let removals = containers.iter().map(|container| async move {
            self.logs.forget(&container.id).await;
            let result = gone_is_fine(self.engine.remove(&container.id).await);
            (
                format!("removing container {} of its pod sandbox", container.id),
                result,
            )
        });
        first_error(join_all(removals).await)?;
        self.detach_network(&sandbox.id, sandbox.network_mode == "host")
            .await?;
        gone_is_fine(self.engine.remove(&sandbox.id).await).map_err(Error::engine(format!(
            "removing pod sandbox {}",
            sandbox.id
        )))?;
        let key = sandbox.labels.get(labels::CREATE_KEY).map(String::as_str);
        self.forget_sandbox(&sandbox.id, key).await
    }
}
