//! Ending a command that was run in a container: the engine has no call for it.
//!
//! A command whose [`Guard`] is dropped, or told to end it, is killed with all that it started: [`super::processes`] finds
//! them by the process that the engine names and by the mark in their environment. Never fails: what could not be ended is
//! logged.

use std::sync::Arc;
use std::time::Duration;

use rustix::process::Pid;

use super::client::{Client, within};
use super::exec::{self, Made};
use super::processes;
use crate::runtime::ports::EngineError;

/// How long a start that is under way is waited for. Slow machines need seconds for one.
const START: Duration = Duration::from_secs(30);

/// A command that runs or is about to. Dropping this ends it in the background.
pub(super) struct Guard {
    client: Arc<Client>,
    /// The engine's ID and the mark; `None` once it has ended.
    exec: Option<(String, String)>,
}

impl Guard {
    pub(super) fn new(client: &Arc<Client>, made: &Made) -> Self {
        Self {
            client: Arc::clone(client),
            exec: Some((made.id.clone(), made.mark.clone())),
        }
    }

    /// It has ended by itself; what it left running is left alone.
    pub(super) fn has_ended(&mut self) {
        self.exec = None;
    }

    /// Ends it, and waits until it is gone.
    pub(super) async fn end(mut self) {
        if let Some((exec, mark)) = self.exec.take() {
            // A task of its own: it goes on when the caller stops waiting.
            let _ = tokio::spawn(end(Arc::clone(&self.client), exec, mark)).await;
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some((exec, mark)) = self.exec.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(end(Arc::clone(&self.client), exec, mark));
        }
    }
}

async fn end(client: Arc<Client>, exec: String, mark: String) {
    let gone = match where_it_is(&client, &exec).await {
        // Not even its container is known any more, or it never began.
        Err(EngineError::NotFound(_)) | Ok(None) => true,
        Err(error) => {
            tracing::warn!(exec, %error, "a command that was given up may still run");
            return;
        }
        Ok(Some((process, container))) => {
            tokio::task::spawn_blocking(move || processes::kill(process, &container, &mark))
                .await
                .unwrap_or(false)
        }
    };
    if !gone {
        tracing::warn!(exec, "a command that was given up may still run");
    }
}

/// The exec's process, if it still runs, and its container; `None` when it never began.
async fn where_it_is(
    client: &Client,
    exec: &str,
) -> Result<Option<(Option<Pid>, String)>, EngineError> {
    let begun = async {
        let mut pause = Duration::from_millis(2);
        loop {
            let state = exec::inspect(client, exec).await?;
            // Neither a process nor an exit code: its start is under way.
            if state.pid != 0 || state.exit_code.is_some() {
                return Ok(state);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    };
    match within(Some(START), begun).await {
        Ok(state) => {
            let process = Pid::from_raw(state.pid).filter(|_| state.running);
            // Even when it has ended, its children may live.
            Ok((state.pid != 0).then_some((process, state.container_id)))
        }
        Err(EngineError::Timeout { after }) if after == START => Ok(None),
        Err(error) => Err(error),
    }
}
