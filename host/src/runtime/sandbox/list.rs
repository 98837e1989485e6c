//! ListPodSandbox.

use std::collections::BTreeMap;

use crate::error::Error;
use crate::model::ids::SandboxId;
use crate::model::sandbox::{SandboxMetadata, SandboxState, SandboxSummary};
use crate::model::{labels, name};
use crate::runtime::Runtime;
use crate::runtime::ports::ContainerQuery;

/// What to list; an unset part filters nothing.
#[derive(Debug, Clone, Default)]
pub struct SandboxFilter {
    /// An ID or the start of one; empty = any.
    pub id: String,
    /// State.
    pub state: Option<SandboxState>,
    /// Labels that must be there.
    pub labels: BTreeMap<String, String>,
}

impl Runtime {
    /// Lists sandboxes, newest first.
    ///
    /// # Errors
    /// The engine's; one sandbox that cannot be read is logged and left out.
    pub async fn list_pod_sandbox(
        &self,
        filter: &SandboxFilter,
    ) -> Result<Vec<SandboxSummary>, Error> {
        let query = ContainerQuery {
            labels: vec![(labels::TYPE.to_owned(), labels::TYPE_SANDBOX.to_owned())],
            id: None,
        };
        let entries = self
            .engine
            .list(&query)
            .await
            .map_err(Error::engine("listing pod sandboxes"))?;
        let mut found: Vec<SandboxSummary> = entries
            .into_iter()
            .filter(|entry| entry.id.starts_with(&filter.id))
            .map(|entry| SandboxSummary {
                state: self.sandbox_state(&entry.id, entry.state),
                metadata: self.identity_of_sandbox(&entry.id, &entry.name, &entry.labels),
                created_at: entry.created_at,
                meta: labels::from_engine(&entry.labels),
                runtime_handler: entry
                    .labels
                    .get(labels::RUNTIME_HANDLER)
                    .cloned()
                    .unwrap_or_default(),
                id: SandboxId::new(entry.id),
            })
            .filter(|sandbox| filter.state.is_none_or(|state| state == sandbox.state))
            .filter(|sandbox| labels::matches(&filter.labels, &sandbox.meta.labels))
            .collect();
        found.sort_by_key(|sandbox| std::cmp::Reverse(sandbox.created_at));
        Ok(found)
    }

    /// A sandbox's identity: from its name, else its record, else the kubelet's labels.
    pub(super) fn identity_of_sandbox(
        &self,
        id: &str,
        name: &str,
        engine_labels: &BTreeMap<String, String>,
    ) -> SandboxMetadata {
        if let Some(parsed) = name::parse(name) {
            return parsed.sandbox;
        }
        if let Some(record) = self.store.get(id) {
            return record.metadata;
        }
        let label = |key: &str| engine_labels.get(key).cloned().unwrap_or_default();
        SandboxMetadata {
            name: label("io.kubernetes.pod.name"),
            uid: label("io.kubernetes.pod.uid"),
            namespace: label("io.kubernetes.pod.namespace"),
            attempt: 0,
        }
    }
}
