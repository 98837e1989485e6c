//! ListImages.

use futures_util::future::join_all;

use super::Runtime;
use crate::error::Error;
use crate::model::image::Image;

impl Runtime {
    /// Lists images; with a reference only the one it names, if it is there.
    ///
    /// # Errors
    /// The engine's.
    pub async fn list_images(&self, reference: Option<&str>) -> Result<Vec<Image>, Error> {
        if let Some(reference) = reference.filter(|reference| !reference.is_empty()) {
            return Ok(self.image_status(reference).await?.into_iter().collect());
        }
        let listed = self
            .engine
            .images()
            .await
            .map_err(Error::engine("listing images"))?;
        // The list does not say an image's user; the image itself does. One that went away meanwhile is left out.
        let whole = join_all(listed.into_iter().map(|facts| async {
            match facts.user {
                Some(_) => Some(facts),
                None => self
                    .engine
                    .image(&facts.id)
                    .await
                    .ok()
                    .map(|image| super::ImageFacts {
                        user: image.user,
                        config: image.config,
                        ..facts
                    }),
            }
        }))
        .await;
        let chosen = self.chosen_sandbox_image().await;
        Ok(whole
            .into_iter()
            .flatten()
            .map(|facts| self.image_of(facts, chosen.as_deref()))
            .collect())
    }
}
