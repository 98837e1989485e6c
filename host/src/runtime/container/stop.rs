//! StopContainer.

use std::time::Duration;

use super::Runtime;
use crate::error::Error;
use crate::model::container::EngineState;
use crate::runtime::resolve::{Wanted, gone_is_fine};

impl Runtime {
    /// Asks a container to stop and kills it after `grace`. What has ended, never started or is gone is fine (CRI).
    ///
    /// # Errors
    /// The engine's.
    pub async fn stop_container(&self, id: &str, grace: Duration) -> Result<(), Error> {
        let Some(container) = self.resolve_if_there(id, Wanted::Container).await? else {
            return Ok(());
        };
        // Never started: nothing to stop, and no log to end.
        if container.life.engine_state == EngineState::Created {
            return Ok(());
        }
        // Also one that has ended: the engine answers at once, and a container between two states is caught.
        gone_is_fine(self.engine.stop(&container.id, grace).await).map_err(Error::engine(
            format!("stopping container {}", container.id),
        ))?;
        self.logs.complete(&container.id).await;
        Ok(())
    }
}
