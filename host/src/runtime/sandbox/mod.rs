//! The verbs on pod sandboxes, one file each.
//!
//! A sandbox is READY only if its record carries the completion mark and its process runs. The record is written before the
//! sandbox starts and marked when the last step ended well, so a crash in between leaves something NOTREADY that can be
//! stopped and removed, never half a pod that looks whole.

pub mod list;
pub mod port_forward;
pub mod remove;
mod resolv;
pub mod run;
pub mod status;
pub mod stop;
mod undo;

use super::Runtime;
use super::ports::EngineError;
use crate::error::Error;
use crate::model::container::EngineState;
use crate::model::labels;
use crate::model::sandbox::{NamespaceMode, SandboxState};

impl Runtime {
    pub(super) fn sandbox_state(&self, id: &str, engine_state: EngineState) -> SandboxState {
        let runs = matches!(engine_state, EngineState::Running | EngineState::Paused);
        let complete = match self.store.get(id) {
            Some(record) => record.complete,
            // A pod of cri-dockerd's: its file is its mark.
            None => self.store.foreign_mark(id),
        };
        if runs && complete {
            SandboxState::Ready
        } else {
            SandboxState::NotReady
        }
    }

    /// IDs of the containers in a sandbox, those of every state.
    pub(super) async fn containers_of(
        &self,
        sandbox_id: &str,
    ) -> Result<Vec<super::ports::ContainerEntry>, Error> {
        let query = super::ports::ContainerQuery {
            labels: vec![
                (labels::TYPE.to_owned(), labels::TYPE_CONTAINER.to_owned()),
                (labels::SANDBOX_ID.to_owned(), sandbox_id.to_owned()),
            ],
            id: None,
        };
        self.engine
            .list(&query)
            .await
            .map_err(Error::engine(format!(
                "listing the containers of pod sandbox {sandbox_id}"
            )))
    }

    /// Takes a sandbox's network down, if it has one of its own. Taking it down twice is fine.
    pub(super) async fn detach_network(
        &self,
        sandbox_id: &str,
        host_network: bool,
    ) -> Result<(), Error> {
        if host_network {
            return Ok(());
        }
        Ok(self.network.detach(sandbox_id).await?)
    }

    /// Forgets a sandbox that the engine no longer has: its record last, so that a crash here is repaired at start.
    pub(super) async fn forget_sandbox(
        &self,
        id: &str,
        create_key: Option<&str>,
    ) -> Result<(), Error> {
        let record = self.store.get(id);
        let key = create_key
            .map(str::to_owned)
            .or_else(|| record.as_ref().map(|record| record.create_key.clone()));
        if let Some(key) = key.filter(|key| !key.is_empty()) {
            self.store.remove_files(&key).await?;
        }
        self.store.remove(id).await?;
        Ok(())
    }
}

/// A namespace's mode out of the engine's word for it.
fn namespace_mode(engine_word: &str) -> NamespaceMode {
    if engine_word == "host" {
        NamespaceMode::Node
    } else {
        NamespaceMode::Pod
    }
}

/// Keeps the first error of several that happened side by side, and logs the others.
fn first_error(
    results: impl IntoIterator<Item = (String, Result<(), EngineError>)>,
) -> Result<(), Error> {
    let mut first = None;
    for (doing, result) in results {
        if let Err(error) = result {
            let error = Error::engine(doing)(error);
            match first {
                None => first = Some(error),
                Some(_) => {
                    tracing::warn!(%error, "a further failure beside the one that is returned")
                }
            }
        }
    }
    first.map_or(Ok(()), Err)
}
