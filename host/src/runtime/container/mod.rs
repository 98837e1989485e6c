//! The verbs on containers, one file each.
//!
//! A container is created, then started; what the engine says of it afterwards is turned into CRI's states by
//! `model::container::life`. Before any answer shows a container EXITED, its log is complete on disk: the kubelet reads the
//! tail of it right then.

pub mod attach;
pub mod create;
pub mod exec;
pub mod exec_sync;
pub mod list;
mod oom_group;
pub mod remove;
pub mod start;
pub mod status;
pub mod stop;
pub mod update_resources;

use std::collections::BTreeMap;

use super::Runtime;
use super::ports::ContainerFacts;
use super::resolve::Wanted;
use crate::error::Error;
use crate::model::container::{ContainerMetadata, EngineState, Life, life};
use crate::model::labels;
use crate::model::name;

impl Runtime {
    /// The container that `id` names, in which something can be run now.
    async fn running_container(&self, id: &str) -> Result<ContainerFacts, Error> {
        let container = self.resolve(id, Wanted::Container).await?;
        if container.life.engine_state != EngineState::Running {
            return Err(Error::Precondition(format!(
                "container {} does not run",
                container.id
            )));
        }
        Ok(container)
    }

    /// A container's life in CRI's terms; a failed start has the time at which we saw it fail.
    fn life_of(&self, container: &ContainerFacts) -> Life {
        life(&container.life, self.failed_start(container))
    }

    /// CRI `image_ref`: a repo digest of the image where it has one, else its ID.
    async fn image_ref(&self, image_id: &str) -> String {
        if let Some(known) = self.known_image_ref(image_id) {
            return known;
        }
        match self.engine.image(image_id).await {
            Ok(image) => {
                let reference = image
                    .repo_digests
                    .into_iter()
                    .next()
                    .unwrap_or_else(|| image_id.to_owned());
                self.note_image_ref(image_id, &reference);
                reference
            }
            // The image of a container can be untagged or gone; its ID still is what the container runs.
            Err(_) => image_id.to_owned(),
        }
    }
}

/// A container's identity: from its name, else from the kubelet's labels; `None` = neither says it.
fn identity(
    container_name: &str,
    engine_labels: &BTreeMap<String, String>,
) -> Option<ContainerMetadata> {
    if let Some(parsed) = name::parse(container_name) {
        return Some(ContainerMetadata {
            name: parsed.container,
            attempt: parsed.attempt,
        });
    }
    engine_labels
        .get(labels::CONTAINER_NAME)
        .map(|name| ContainerMetadata {
            name: name.clone(),
            attempt: 0,
        })
}

/// The image as the user asked for it; other adapters' containers only have what the engine was told.
fn image_requested(engine_image: &str, engine_labels: &BTreeMap<String, String>) -> String {
    engine_labels
        .get(labels::IMAGE_REQUESTED)
        .filter(|image| !image.is_empty())
        .cloned()
        .unwrap_or_else(|| engine_image.to_owned())
}
