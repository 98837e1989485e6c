//! RemoveImage: the image with all its tags, whichever way it is named.

use super::Runtime;
use crate::error::Error;
use crate::runtime::ports::{ContainerQuery, EngineError, ImageFacts};
use crate::runtime::resolve::gone_is_fine;

impl Runtime {
    /// Removes an image. A missing one is fine (CRI).
    ///
    /// # Errors
    /// [`Error::Invalid`] for an empty reference; [`Error::Precondition`] when a container uses it, before any tag is gone;
    /// the engine's.
    pub async fn remove_image(&self, reference: &str) -> Result<(), Error> {
        if reference.is_empty() {
            return Err(Error::invalid("image.image", "must not be empty"));
        }
        let doing = || format!("removing image {reference}");
        let image = match self.engine.image(reference).await {
            Ok(image) => image,
            Err(EngineError::NotFound(_)) => return Ok(()),
            Err(error) => return Err(Error::engine(doing())(error)),
        };
        let containers = self
            .engine
            .list(&ContainerQuery::default())
            .await
            .map_err(Error::engine(doing()))?;
        if let Some(user) = containers
            .iter()
            .find(|container| container.image_id == image.id)
        {
            return Err(Error::Precondition(format!(
                "image {reference} is in use by container {}: remove that first",
                user.id
            )));
        }
        let removed = self.remove_names_and_image(&image).await;
        self.forget_image_refs();
        match removed {
            Ok(()) => Ok(()),
            // Engines word it in many ways when somebody else removes the same image meanwhile; whether it is gone is what
            // counts, and that can be asked.
            Err(_) if self.is_gone(&image.id).await => Ok(()),
            Err(error) => Err(Error::engine(doing())(error)),
        }
    }

    /// Untagging the last name removes the image; what has no name is removed by its ID.
    async fn remove_names_and_image(&self, image: &ImageFacts) -> Result<(), EngineError> {
        for name in image.repo_tags.iter().chain(&image.repo_digests) {
            gone_is_fine(self.engine.remove_image(name).await)?;
        }
        gone_is_fine(self.engine.remove_image(&image.id).await)
    }

    async fn is_gone(&self, image_id: &str) -> bool {
        matches!(
            self.engine.image(image_id).await,
            Err(EngineError::NotFound(_))
        )
    }
}
