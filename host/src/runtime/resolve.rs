//! From the ID a caller writes, full or short, to the thing itself.

use super::Runtime;
use super::ports::{ContainerFacts, ContainerQuery, EngineError};
use crate::error::Error;
use crate::model::ids::is_container_id;
use crate::model::labels;

/// Digits of a full ID.
const FULL_ID: usize = 64;

/// What a caller's ID is to name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// A pod sandbox.
    Sandbox,
    /// A container.
    Container,
}

impl Wanted {
    fn label(self) -> &'static str {
        match self {
            Self::Sandbox => labels::TYPE_SANDBOX,
            Self::Container => labels::TYPE_CONTAINER,
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Sandbox => "pod sandbox",
            Self::Container => "container",
        }
    }

    fn field(self) -> &'static str {
        match self {
            Self::Sandbox => "pod_sandbox_id",
            Self::Container => "container_id",
        }
    }
}

impl Runtime {
    /// The thing that `id` names, if it is there and ours.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an empty ID, [`Error::NotFound`] for one that names nothing of ours (a foreign container
    /// is not there as far as CRI goes), and the engine's own errors.
    pub(super) async fn resolve(&self, id: &str, wanted: Wanted) -> Result<ContainerFacts, Error> {
        if id.is_empty() {
            return Err(Error::invalid(wanted.field(), "must not be empty"));
        }
        let not_found = || Error::NotFound {
            what: wanted.noun(),
            id: id.to_owned(),
        };
        // What is no ID can name nothing, and never becomes part of a URL of the engine's.
        if !is_container_id(id) {
            return Err(not_found());
        }
        let full = match self.full_id(id, wanted).await? {
            Some(full) => full,
            None => return Err(not_found()),
        };
        let facts = match self.engine.inspect(&full).await {
            Ok(facts) => facts,
            Err(EngineError::NotFound(_)) => return Err(not_found()),
            Err(error) => {
                return Err(Error::engine(format!("inspecting {} {id}", wanted.noun()))(
                    error,
                ));
            }
        };
        let ours = facts
            .labels
            .get(labels::TYPE)
            .is_some_and(|t| t == wanted.label());
        // The engine resolves names too; a name that looks like an ID is not what the caller means.
        if ours && facts.id.starts_with(id) {
            Ok(facts)
        } else {
            Err(not_found())
        }
    }

    /// The full ID that `id` begins, among what is ours and of the wanted kind: the engine would look at names first, and
    /// at everybody's containers.
    async fn full_id(&self, id: &str, wanted: Wanted) -> Result<Option<String>, Error> {
        if id.len() == FULL_ID {
            return Ok(Some(id.to_owned()));
        }
        let query = ContainerQuery {
            labels: vec![(labels::TYPE.to_owned(), wanted.label().to_owned())],
            id: Some(id.to_owned()),
        };
        let found = self
            .engine
            .list(&query)
            .await
            .map_err(Error::engine(format!("looking for {} {id}", wanted.noun())))?;
        match found.as_slice() {
            [] => Ok(None),
            [one] => Ok(Some(one.id.clone())),
            several => Err(Error::invalid(
                wanted.field(),
                format!(
                    "{id} is the start of {} IDs; give more of it",
                    several.len()
                ),
            )),
        }
    }

    /// As [`Runtime::resolve`]; a missing thing is `None` (CRI: stop and remove must not fail on it).
    pub(super) async fn resolve_if_there(
        &self,
        id: &str,
        wanted: Wanted,
    ) -> Result<Option<ContainerFacts>, Error> {
        match self.resolve(id, wanted).await {
            Ok(facts) => Ok(Some(facts)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Takes "not there" and "being removed by somebody else" as done.
pub(super) fn gone_is_fine(result: Result<(), EngineError>) -> Result<(), EngineError> {
    match result {
        Err(EngineError::NotFound(_)) => Ok(()),
        result => result,
    }
}
