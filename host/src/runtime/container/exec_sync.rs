//! ExecSync.

use std::time::Duration;

use super::Runtime;
use crate::error::Error;
use crate::model::container::EngineState;
use crate::runtime::ports::ExecOutput;
use crate::runtime::resolve::Wanted;

/// CRI: each stream is cut here, and the call succeeds (CVE-2022-1708).
const OUTPUT_LIMIT: usize = 16 * 1024 * 1024;

impl Runtime {
    /// Runs a command in a container and waits for it.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Precondition`] when the container does not run; the engine's, of which a timeout means
    /// that the command was ended.
    pub async fn exec_sync(
        &self,
        id: &str,
        cmd: &[String],
        timeout: Option<Duration>,
    ) -> Result<ExecOutput, Error> {
        let container = self.resolve(id, Wanted::Container).await?;
        if container.life.engine_state != EngineState::Running {
            return Err(Error::Precondition(format!(
                "container {} does not run",
                container.id
            )));
        }
        self.engine
            .exec_sync(&container.id, cmd, OUTPUT_LIMIT, timeout)
            .await
            .map_err(Error::engine(format!(
                "running a command in container {}",
                container.id
            )))
    }
}
