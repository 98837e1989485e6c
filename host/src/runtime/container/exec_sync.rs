//! ExecSync.

use std::time::Duration;

use super::Runtime;
use crate::error::Error;
use crate::runtime::ports::{EngineError, ExecOutput};

/// CRI: each stream is cut here, and the call succeeds (CVE-2022-1708).
const OUTPUT_LIMIT: usize = 16 * 1024 * 1024;

impl Runtime {
    /// Runs a command in a container and waits for it.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Precondition`] when the container does not run; [`Error::Deadline`] when the
    /// command took longer than `timeout`: it is gone then; and the engine's.
    pub async fn exec_sync(
        &self,
        id: &str,
        cmd: &[String],
        timeout: Option<Duration>,
    ) -> Result<ExecOutput, Error> {
        let container = self.running_container(id).await?;
        self.engine
            .exec_sync(&container.id, cmd, OUTPUT_LIMIT, timeout)
            .await
            .map_err(|error| match error {
                EngineError::Timeout { after } if Some(after) == timeout => {
                    Error::Deadline(format!(
                        "the command in container {} did not end within {after:?}, and was killed",
                        container.id
                    ))
                }
                error => {
                    Error::engine(format!("running a command in container {}", container.id))(error)
                }
            })
    }
}
