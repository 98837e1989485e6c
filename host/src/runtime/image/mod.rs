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

    /// Whether the kubelet must never collect it: it is the image that sandboxes are made from.
    fn pinned(&self, facts: &ImageFacts) -> bool {
        let own = pause::reference();
        let wanted = self.settings.sandbox_image.as_deref();
        let names = |reference: &str| {
            facts.id == reference
                || facts.repo_tags.iter().any(|tag| tag == reference)
                || facts.repo_digests.iter().any(|digest| digest == reference)
        };
        names(&own) || wanted.is_some_and(names)
    }

    fn image_of(&self, facts: ImageFacts) -> Image {
        Image {
            pinned: self.pinned(&facts),
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
