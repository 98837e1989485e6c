//! ListContainers: all states unless one is asked for, only what carries our type label.

use std::collections::{BTreeMap, HashSet};

use futures_util::future::join_all;

use super::{Runtime, identity, image_requested};
use crate::error::Error;
use crate::model::container::{ContainerState, ContainerSummary, EngineState};
use crate::model::ids::{ContainerId, ImageId, SandboxId};
use crate::model::labels;
use crate::runtime::ports::{ContainerEntry, ContainerQuery};

/// What to list; an unset part filters nothing.
#[derive(Debug, Clone, Default)]
pub struct ContainerFilter {
    /// An ID or the start of one; empty = any.
    pub id: String,
    /// State.
    pub state: Option<ContainerState>,
    /// The sandbox they are in, full or short; empty = any.
    pub sandbox_id: String,
    /// Labels that must be there.
    pub labels: BTreeMap<String, String>,
}

impl Runtime {
    /// Lists containers, newest first.
    ///
    /// # Errors
    /// The engine's; one container that cannot be read is logged and left out.
    pub async fn list_containers(
        &self,
        filter: &ContainerFilter,
    ) -> Result<Vec<ContainerSummary>, Error> {
        let query = ContainerQuery {
            labels: vec![(labels::TYPE.to_owned(), labels::TYPE_CONTAINER.to_owned())],
            id: None,
        };
        let entries = self
            .engine
            .list(&query)
            .await
            .map_err(Error::engine("listing containers"))?;
        let entries: Vec<ContainerEntry> = entries
            .into_iter()
            .filter(|entry| entry.id.starts_with(&filter.id))
            .filter(|entry| sandbox_of(entry).starts_with(&filter.sandbox_id))
            .filter(|entry| {
                labels::matches(&filter.labels, &labels::from_engine(&entry.labels).labels)
            })
            .collect();
        self.learn_image_refs(&entries).await;
        let mut found: Vec<ContainerSummary> =
            join_all(entries.into_iter().map(|entry| self.summary(entry)))
                .await
                .into_iter()
                .flatten()
                .filter(|container| filter.state.is_none_or(|state| state == container.state))
                .collect();
        found.sort_by_key(|container| std::cmp::Reverse(container.created_at));
        Ok(found)
    }

    async fn summary(&self, entry: ContainerEntry) -> Option<ContainerSummary> {
        let Some(metadata) = identity(&entry.name, &entry.labels) else {
            tracing::warn!(container = %entry.id, name = entry.name, "left out of the list: it carries our type label but no identity");
            return None;
        };
        let state = match self.listed_state(&entry).await {
            Ok(state) => state,
            Err(error) => {
                tracing::warn!(container = %entry.id, %error, "left out of the list: it cannot be inspected");
                return None;
            }
        };
        if state == ContainerState::Exited {
            self.logs.complete(&entry.id).await;
        }
        Some(ContainerSummary {
            sandbox_id: SandboxId::new(sandbox_of(&entry)),
            metadata,
            image: image_requested(&entry.image, &entry.labels),
            image_ref: self
                .known_image_ref(&entry.image_id)
                .unwrap_or_else(|| entry.image_id.clone()),
            image_id: ImageId::new(&entry.image_id),
            state,
            created_at: entry.created_at,
            meta: labels::from_engine(&entry.labels),
            id: ContainerId::new(entry.id),
        })
    }

    /// A start that failed leaves the engine's word at `created`; only its details tell, and status must agree with the list.
    async fn listed_state(&self, entry: &ContainerEntry) -> Result<ContainerState, Error> {
        Ok(match entry.state {
            EngineState::Running | EngineState::Paused | EngineState::Restarting => {
                ContainerState::Running
            }
            EngineState::Exited | EngineState::Dead | EngineState::Removing => {
                ContainerState::Exited
            }
            EngineState::Created | EngineState::Other => {
                let facts = self
                    .engine
                    .inspect(&entry.id)
                    .await
                    .map_err(Error::engine(format!("inspecting container {}", entry.id)))?;
                self.life_of(&facts).state
            }
        })
    }

    /// Learns the digests of images not met before with one listing instead of an inspection each.
    async fn learn_image_refs(&self, entries: &[ContainerEntry]) {
        let unknown: HashSet<&str> = entries
            .iter()
            .map(|entry| entry.image_id.as_str())
            .filter(|id| self.known_image_ref(id).is_none())
            .collect();
        if unknown.is_empty() {
            return;
        }
        match self.engine.images().await {
            Ok(images) => {
                for image in images
                    .iter()
                    .filter(|image| unknown.contains(image.id.as_str()))
                {
                    let reference = image.repo_digests.first().unwrap_or(&image.id);
                    self.note_image_ref(&image.id, reference);
                }
            }
            Err(error) => {
                tracing::warn!(%error, "listing images failed: image_ref is the image ID for now")
            }
        }
    }
}

fn sandbox_of(entry: &ContainerEntry) -> &str {
    entry
        .labels
        .get(labels::SANDBOX_ID)
        .map_or("", String::as_str)
}
