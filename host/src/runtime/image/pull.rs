//! PullImage.

use std::sync::Arc;

use super::Runtime;
use crate::error::Error;
use crate::model::ids::ImageId;
use crate::model::image::RegistryAuth;

impl Runtime {
    /// Fetches an image and gives its ID. A pull that lives is never cut by us, however slow it is.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an empty reference; the engine's or the registry's refusal.
    pub async fn pull_image(
        &self,
        reference: &str,
        auth: Option<&RegistryAuth>,
    ) -> Result<ImageId, Error> {
        if reference.is_empty() {
            return Err(Error::invalid("image.image", "must not be empty"));
        }
        let shown = reference.to_owned();
        let progress = Arc::new(move |step: &str| tracing::debug!(image = shown, step, "pulling"));
        self.engine
            .pull(reference, auth, progress)
            .await
            .map_err(Error::engine(format!("pulling image {reference}")))?;
        self.forget_image_refs();
        let image = self
            .engine
            .image(reference)
            .await
            .map_err(Error::engine(format!(
                "inspecting the pulled image {reference}"
            )))?;
        tracing::info!(image = reference, id = image.id, "pulled");
        Ok(ImageId::new(image.id))
    }
}
