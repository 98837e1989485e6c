//! When starts failed.
//!
//! The kubelet computes its restart back-off from a failed container's times, and no engine keeps the time at which a start
//! failed. It is kept in the record of the container's sandbox, so that a restart of ours changes no answer, and goes with
//! it; for a sandbox without a record it is known as long as the daemon lives.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::ports::{ContainerFacts, SandboxRecord};
use super::{Runtime, now};
use crate::model::labels;

/// Times by container ID, in nanoseconds since the epoch.
#[derive(Default)]
pub(super) struct FailedStarts(Mutex<HashMap<String, i64>>);

impl FailedStarts {
    fn with<T>(&self, act: impl FnOnce(&mut HashMap<String, i64>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Runtime {
    /// Notes that a start of this container failed just now.
    pub(super) async fn note_failed_start(&self, container: &ContainerFacts) {
        let at = now();
        self.failed_starts
            .with(|known| known.insert(container.id.clone(), at));
        self.change_record(container, |record| {
            record.failed_starts.insert(container.id.clone(), at) != Some(at)
        })
        .await;
    }

    /// When the last start of this container failed.
    pub(super) fn failed_start(&self, container: &ContainerFacts) -> Option<i64> {
        self.failed_starts
            .with(|known| known.get(&container.id).copied())
            .or_else(|| {
                let record = self.store.get(sandbox_of(container)?)?;
                record.failed_starts.get(&container.id).copied()
            })
    }

    /// Forgets it: the container runs, or is gone.
    pub(super) async fn forget_failed_start(&self, container: &ContainerFacts) {
        self.failed_starts.with(|known| known.remove(&container.id));
        self.change_record(container, |record| {
            record.failed_starts.remove(&container.id).is_some()
        })
        .await;
    }

    /// Changes the sandbox's record, if there is one and `change` says that it changed something. A record that cannot be
    /// written costs a time after the next restart, and no caller's verb.
    async fn change_record(
        &self,
        container: &ContainerFacts,
        change: impl FnOnce(&mut SandboxRecord) -> bool,
    ) {
        let Some(sandbox) = sandbox_of(container) else {
            return;
        };
        let _one_at_a_time = self.creations.lock(&format!("record {sandbox}")).await;
        let Some(mut record) = self.store.get(sandbox) else {
            return;
        };
        if change(&mut record)
            && let Err(error) = self.store.put(record).await
        {
            tracing::warn!(container = %container.id, %error, "the time of a failed start cannot be kept");
        }
    }
}

fn sandbox_of(container: &ContainerFacts) -> Option<&str> {
    container.labels.get(labels::SANDBOX_ID).map(String::as_str)
}
