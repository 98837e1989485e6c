//! ImageStatus: a missing image is no error, it is no image (CRI).

use super::Runtime;
use crate::error::Error;
use crate::model::image::Image;
use crate::runtime::ports::EngineError;

impl Runtime {
    /// The image that `reference` names, if it is there.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an empty reference, and the engine's.
    pub async fn image_status(&self, reference: &str) -> Result<Option<Image>, Error> {
        if reference.is_empty() {
            return Err(Error::invalid("image.image", "must not be empty"));
        }
        match self.engine.image(reference).await {
            Ok(facts) => {
                let chosen = self.chosen_sandbox_image().await;
                Ok(Some(self.image_of(facts, chosen.as_deref())))
            }
            Err(EngineError::NotFound(_)) => Ok(None),
            Err(error) => Err(Error::engine(format!("inspecting image {reference}"))(
                error,
            )),
        }
    }
}
