//! The verbs on images, and the pause image that is our own.
//!
//! One identity everywhere: the engine's image ID is Image.id, PullImage's answer, and the image_id of containers.

pub mod fs_info;
pub mod list;
pub mod pause;
pub mod pull;
pub mod remove;
pub mod status;

use std::sync::PoisonError;

use super::Runtime;
use super::ports::ImageFacts;
use crate::model::ids::{ImageId, RepoDigest};
use crate::model::image::Image;

impl Runtime {
    pub(super) fn known_image_ref(&self, image_id: &str) -> Option<String> {
        let known = self
            .image_refs
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        known.get(image_id).cloned()
    }

    pub(super) fn note_image_ref(&self, image_id: &str, reference: &str) {
        let mut known = self
            .image_refs
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        known.insert(image_id.to_owned(), reference.to_owned());
    }

    fn forget_image_refs(&self) {
        self.image_refs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    /// ID of the sandbox image that the administrator chose, in whichever form it was named; `None` = our own serves, or it
    /// is not there (yet).
    async fn chosen_sandbox_image(&self) -> Option<String> {
        let wanted = self.settings.sandbox_image.as_deref()?.trim();
        self.engine.image(wanted).await.ok().map(|image| image.id)
    }

    /// `chosen` is [`Runtime::chosen_sandbox_image`]: the kubelet must never collect what sandboxes are made from.
    fn image_of(&self, facts: ImageFacts, chosen: Option<&str>) -> Image {
        let own = pause::reference();
        Image {
            pinned: chosen == Some(&facts.id) || facts.repo_tags.contains(&own),
            id: ImageId::new(facts.id),
            repo_tags: facts.repo_tags,
            repo_digests: facts
                .repo_digests
                .into_iter()
                .map(RepoDigest::new)
                .collect(),
            size: facts.size,
            user: facts.user.unwrap_or_default(),
            labels: facts.labels,
        }
    }
}
