//! What the daemon does at its start, beside serving: it picks up what an earlier run of it was doing.
//!
//! Running containers are not touched. Their logs are followed again from where the file ends; what we keep of sandboxes
//! that the engine no longer has is swept. It runs as soon as the engine answers, and never refuses the start.

use std::collections::HashSet;

use super::Runtime;
use super::container::start::log_source;
use super::ports::{ContainerQuery, SandboxStore};
use crate::error::Error;
use crate::model::labels;

/// What the store held when the daemon started.
#[derive(Debug, Default)]
pub(super) struct Leftovers {
    records: Vec<String>,
    file_keys: Vec<String>,
}

impl Leftovers {
    /// Looks now, before any verb runs.
    pub(super) fn of(store: &dyn SandboxStore) -> Self {
        Self {
            records: store.ids(),
            file_keys: store.file_keys(),
        }
    }
}

impl Runtime {
    /// Picks up where an earlier run left.
    ///
    /// # Errors
    /// The engine's; call it again when the engine answers.
    pub async fn recover(&self) -> Result<(), Error> {
        self.resume_logs().await?;
        self.sweep_records().await
    }

    async fn resume_logs(&self) -> Result<(), Error> {
        let facts = self.facts().await?;
        let query = ContainerQuery {
            labels: vec![(labels::TYPE.to_owned(), labels::TYPE_CONTAINER.to_owned())],
            id: None,
        };
        let entries = self
            .engine
            .list(&query)
            .await
            .map_err(Error::engine("listing containers"))?;
        for entry in entries {
            // Those that have ended too: what they logged while we were away is still to be written.
            let Ok(container) = self.engine.inspect(&entry.id).await else {
                continue;
            };
            if container.life.started_at == 0 {
                continue;
            }
            if let Some(source) = log_source(&container, &facts)
                && let Err(error) = self.logs.follow(source).await
            {
                tracing::warn!(container = %container.id, %error, "its log cannot be followed");
            }
        }
        Ok(())
    }

    async fn sweep_records(&self) -> Result<(), Error> {
        let Leftovers { records, file_keys } = &self.leftovers;
        let query = ContainerQuery {
            labels: vec![(labels::TYPE.to_owned(), labels::TYPE_SANDBOX.to_owned())],
            id: None,
        };
        let sandboxes = self
            .engine
            .list(&query)
            .await
            .map_err(Error::engine("listing pod sandboxes"))?;
        let alive: HashSet<&str> = sandboxes
            .iter()
            .map(|sandbox| sandbox.id.as_str())
            .collect();
        // One that cannot be swept now keeps its record, and no other's.
        let mut result = Ok(());
        for id in records.iter().filter(|id| !alive.contains(id.as_str())) {
            tracing::info!(
                sandbox = id,
                "the engine no longer has this pod sandbox: forgetting it"
            );
            match (self.sweep(id).await, &result) {
                (Ok(()), _) => {}
                (Err(error), Ok(())) => result = Err(error),
                (Err(error), Err(_)) => {
                    tracing::warn!(sandbox = id, %error, "this one cannot be forgotten yet either");
                }
            }
        }
        let used: HashSet<&str> = sandboxes
            .iter()
            .filter_map(|sandbox| sandbox.labels.get(labels::CREATE_KEY))
            .map(String::as_str)
            .collect();
        for key in file_keys.iter().filter(|key| !used.contains(key.as_str())) {
            self.store.remove_files(key).await?;
        }
        result
    }

    async fn sweep(&self, id: &str) -> Result<(), Error> {
        self.network.detach(id).await?;
        self.forget_sandbox(id, None).await
    }
}
