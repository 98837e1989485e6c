//! StopPodSandbox: every container of the sandbox first, then its network, then its own process.
//!
//! CRI: containers that still run are forcibly terminated; stopping what is stopped or gone is fine. Each container is
//! stopped beside the others, so one that hangs holds up only the answer. The network is taken down while the namespace
//! still lives.

use std::time::Duration;

use futures_util::future::join_all;

use super::first_error;
use crate::error::Error;
use crate::model::container::EngineState;
use crate::runtime::Runtime;
use crate::runtime::ports::ContainerEntry;
use crate::runtime::resolve::{Wanted, gone_is_fine};

/// What the pause process gets: it ends on TERM at once; another pause image may be slower.
const SANDBOX_GRACE: Duration = Duration::from_secs(10);

impl Runtime {
    /// Stops a sandbox and everything in it.
    ///
    /// # Errors
    /// The first failure; everything that could be stopped is stopped.
    pub async fn stop_pod_sandbox(&self, id: &str) -> Result<(), Error> {
        let Some(sandbox) = self.resolve_if_there(id, Wanted::Sandbox).await? else {
            return Ok(());
        };
        self.stop_containers_of(&sandbox.id).await?;
        self.detach_network(&sandbox.id, sandbox.network_mode == "host")
            .await?;
        gone_is_fine(self.engine.stop(&sandbox.id, SANDBOX_GRACE).await).map_err(Error::engine(
            format!("stopping pod sandbox {}", sandbox.id),
        ))?;
        // One that was being started meanwhile, with a PID namespace of its own, outlives its sandbox's process; from here
        // on none can be started any more.
        self.stop_containers_of(&sandbox.id).await
    }

    pub(super) async fn stop_containers_of(&self, sandbox_id: &str) -> Result<(), Error> {
        let containers = self.containers_of(sandbox_id).await?;
        let stops = containers.iter().map(|container| async move {
            let result = match container.state {
                // Never started, so there is nothing to stop and no log to end; one that is being started right now
                // keeps its follower.
                EngineState::Created => return (stopping(container), Ok(())),
                EngineState::Exited | EngineState::Dead | EngineState::Removing => Ok(()),
                _ => gone_is_fine(self.engine.stop(&container.id, Duration::ZERO).await),
            };
            if result.is_ok() {
                self.logs.complete(&container.id).await;
            }
            (stopping(container), result)
        });
        first_error(join_all(stops).await)
    }
}

fn stopping(container: &ContainerEntry) -> String {
    format!("stopping container {} of its pod sandbox", container.id)
}
