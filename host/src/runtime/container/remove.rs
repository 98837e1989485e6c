//! RemoveContainer: forced, with its anonymous volumes.

use std::time::Duration;

use super::Runtime;
use crate::error::Error;
use crate::model::container::EngineState;
use crate::runtime::resolve::{Wanted, gone_is_fine};

impl Runtime {
    /// Removes a container, running or not. What is gone is fine (CRI).
    ///
    /// The engine's log goes with the container, so it is stopped and its log completed first; the CRI log stays, it is the
    /// kubelet's.
    ///
    /// # Errors
    /// The engine's.
    pub async fn remove_container(&self, id: &str) -> Result<(), Error> {
        let Some(container) = self.resolve_if_there(id, Wanted::Container).await? else {
            return Ok(());
        };
        if matches!(
            container.life.engine_state,
            EngineState::Running | EngineState::Paused | EngineState::Restarting
        ) {
            gone_is_fine(self.engine.stop(&container.id, Duration::ZERO).await).map_err(
                Error::engine(format!("stopping container {} to remove it", container.id)),
            )?;
        }
        self.logs.forget(&container.id).await;
        gone_is_fine(self.engine.remove(&container.id).await).map_err(Error::engine(format!(
            "removing container {}",
            container.id
        )))?;
        self.forget_failed_start(&container).await;
        Ok(())
    }
}
