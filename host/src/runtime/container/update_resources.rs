//! UpdateContainerResources.

use super::Runtime;
use crate::draft::build;
use crate::error::Error;
use crate::model::resources::LinuxResources;
use crate::runtime::resolve::Wanted;

impl Runtime {
    /// Changes limits of a container; what is not said stays as it is.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Unsupported`] naming a field that the engine cannot change.
    pub async fn update_container_resources(
        &self,
        id: &str,
        limits: &LinuxResources,
    ) -> Result<(), Error> {
        let container = self.resolve(id, Wanted::Container).await?;
        let facts = self.facts().await?;
        let body = build::update(limits, &container.resources, &facts)?;
        if body.as_object().is_some_and(serde_json::Map::is_empty) {
            return Ok(());
        }
        self.engine
            .update(&container.id, &body)
            .await
            .map_err(Error::engine(format!(
                "updating the limits of container {}",
                container.id
            )))
    }
}
