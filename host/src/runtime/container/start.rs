//! StartContainer: the log is ready before the process runs.

use super::Runtime;
use crate::error::Error;
use crate::model::container::EngineState;
use crate::model::labels;
use crate::runtime::ports::{ContainerFacts, EngineError, EngineFacts, LogSource};
use crate::runtime::resolve::Wanted;

impl Runtime {
    /// Starts a container; one that runs already is fine (a repeat after a lost answer).
    ///
    /// # Errors
    /// [`Error::NotFound`]; a log that cannot be written, before the process runs; the engine's refusal, in clear words.
    pub async fn start_container(&self, id: &str) -> Result<(), Error> {
        let container = self.resolve(id, Wanted::Container).await?;
        if matches!(
            container.life.engine_state,
            EngineState::Running | EngineState::Paused
        ) {
            return Ok(());
        }
        // CRI's life of a container has one run; what could not be run at all may be tried again.
        if container.life.started_at > 0 {
            return Err(Error::Precondition(format!(
                "container {} has ended: create a new one",
                container.id
            )));
        }
        let facts = self.facts().await?;
        if let Some(source) = log_source(&container, &facts) {
            self.logs.prepare(&source.cri_log).await?;
            self.logs.follow(source).await?;
        }
        match self.engine.start(&container.id).await {
            Ok(()) => {
                self.forget_failed_start(&container).await;
                self.set_oom_group(&container, &facts).await;
                Ok(())
            }
            Err(error) => {
                self.note_failed_start(&container).await;
                self.logs.forget(&container.id).await;
                let error = clearer(self.not_of_itself(&container.id, error).await);
                Err(Error::engine(format!(
                    "starting container {}",
                    container.id
                ))(error))
            }
        }
    }

    /// The engine's 404 at a start can be about what the container needs: its sandbox. The container itself is not missing
    /// then, and the caller must not take it for gone.
    async fn not_of_itself(&self, id: &str, error: EngineError) -> EngineError {
        match error {
            EngineError::NotFound(text) if self.engine.inspect(id).await.is_ok() => {
                EngineError::Conflict(text)
            }
            error => error,
        }
    }
}

/// Where a container's log comes from and goes to; `None` when none was asked for or its driver keeps no file.
///
/// The engine names its file in inspect only once the container was started, so its well-known place is used before.
pub(in crate::runtime) fn log_source(
    container: &ContainerFacts,
    facts: &EngineFacts,
) -> Option<LogSource> {
    let cri_log = container
        .labels
        .get(labels::LOG_PATH)
        .filter(|path| !path.is_empty())?;
    if container.log_driver != "json-file" {
        return None;
    }
    let engine_log = container.log_file.clone().unwrap_or_else(|| {
        facts
            .root_dir
            .join("containers")
            .join(&container.id)
            .join(format!("{}-json.log", container.id))
    });
    Some(LogSource {
        container_id: container.id.clone(),
        engine_log,
        cri_log: cri_log.into(),
    })
}

/// Words of runtimes below the engine that only their authors understand, and what they mean.
const MEANINGS: [(&str, &str); 7] = [
    (
        "No such container",
        "the pod sandbox does not exist (any more)",
    ),
    (
        "getting the final child's pid from pipe caused",
        "the container's memory limit is too low to start its process",
    ),
    (
        "can't join IPC of container",
        "the pod sandbox does not run (any more)",
    ),
    (
        "cannot join network of a non running container",
        "the pod sandbox does not run (any more)",
    ),
    (
        "cannot join network namespace of a non running container",
        "the pod sandbox does not run (any more)",
    ),
    (
        "is not a valid action for seccomp",
        "linux.security_context.seccomp: the container runtime does not know an action that the profile names",
    ),
    (
        "unable to start container process: error adding seccomp",
        "the seccomp profile cannot be loaded by the container runtime",
    ),
];

/// Puts a plain sentence before the engine's words where those explain nothing. Nothing is derived from the text but text.
fn clearer(error: EngineError) -> EngineError {
    let say = |text: String| match MEANINGS.iter().find(|(words, _)| text.contains(words)) {
        Some((_, meaning)) => format!("{meaning}: {text}"),
        None => text,
    };
    match error {
        EngineError::BadRequest(text) => EngineError::BadRequest(say(text)),
        EngineError::Conflict(text) => EngineError::Conflict(say(text)),
        EngineError::Failed(text) => EngineError::Failed(say(text)),
        other => other,
    }
}
