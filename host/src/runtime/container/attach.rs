//! Attach: to a container's own process, once the client has come.
//!
//! Whether the end of a client's input ends the process's is the container's to say (CRI `stdin_once`, which the engine keeps
//! since the create call), and so is whether there is a terminal.

use super::exec::possible;
use crate::error::Error;
use crate::runtime::Runtime;
use crate::runtime::ports::{Session, StreamSpec};

impl Runtime {
    /// The full ID of a container to which can be attached now.
    ///
    /// # Errors
    /// [`Error::Invalid`] for impossible streams, [`Error::NotFound`], [`Error::Precondition`] when the container does not
    /// run.
    pub async fn may_attach(&self, id: &str, streams: StreamSpec) -> Result<String, Error> {
        possible(streams)?;
        Ok(self.running_container(id).await?.id)
    }

    /// Attaches to a container's own process.
    ///
    /// # Errors
    /// As [`Runtime::may_attach`], whose answer can be old by now, and the engine's.
    pub async fn attach(&self, id: &str, streams: StreamSpec) -> Result<Session, Error> {
        let id = self.may_attach(id, streams).await?;
        self.engine
            .attach(&id, streams)
            .await
            .map_err(Error::engine(format!("attaching to container {id}")))
    }
}
