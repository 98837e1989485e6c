//! The back: Docker Engine over its HTTP API, the real [`ContainerEngine`].
//!
//! Owns the connection to the engine, the API version negotiated with it, and the translation of its answers into the
//! port's nouns ([`from_docker`], pure functions). Knows nothing of CRI, plugins or pods.
//!
//! Every call has a connection of its own: dialling a unix socket costs some 50 µs, a broken call then is one failed call
//! and no stale pool, and dropping a call's future closes its connection, which is how the engine learns to stop a pull.
//! All calls go through one small call of ours ([`raw`]), because a typed client drops what it does not know from bodies and
//! fails on what it does not expect in answers. Streams with a process are such calls too, whose connection is then taken
//! over ([`session`]); client libraries read them ahead.
//!
//! How it fails: with [`EngineError`] only. An engine that is away is [`EngineError::Unreachable`] for that call; the next
//! call dials anew, and what was learnt about the engine is learnt again. Answers that make no sense are
//! [`EngineError::Garbled`].

mod client;
mod containers;
mod endpoint;
mod error;
mod exec;
mod exec_end;
mod exec_sync;
mod facts;
mod frames;
mod from_docker;
mod images;
mod path;
mod peer;
mod processes;
mod pull;
mod pump;
mod raw;
mod session;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

use crate::model::image::RegistryAuth;
use crate::runtime::ports::{
    ContainerEngine, ContainerEntry, ContainerFacts, ContainerQuery, Created, EngineError,
    EngineFacts, ExecOutput, ExecSpec, ImageFacts, ImageUsage, PullProgress, Session, StreamSpec,
};

use client::Client;

/// Docker Engine behind one endpoint.
#[derive(Clone)]
pub struct DockerEngine {
    client: Arc<Client>,
}

impl DockerEngine {
    /// An engine at `endpoint`: `unix:///path`, a plain absolute path, or `tcp://host:port` (no TLS). Connects at the first
    /// call; an engine that is away is no error here.
    ///
    /// # Errors
    /// [`EngineError::BadRequest`] when `endpoint` is none of these forms.
    pub fn new(endpoint: &str) -> Result<Self, EngineError> {
        let client = Client::new(endpoint.parse()?);
        Ok(Self {
            client: Arc::new(client),
        })
    }
}

#[async_trait]
impl ContainerEngine for DockerEngine {
    async fn facts(&self) -> Result<Arc<EngineFacts>, EngineError> {
        self.client.facts().await
    }

    async fn ping(&self) -> Result<(), EngineError> {
        facts::ping(&self.client).await
    }

    async fn create(&self, name: &str, body: &Value) -> Result<Created, EngineError> {
        containers::create(&self.client, name, body).await
    }

    async fn start(&self, id: &str) -> Result<(), EngineError> {
        containers::start(&self.client, id).await
    }

    async fn stop(&self, id: &str, grace: Duration) -> Result<(), EngineError> {
        containers::stop(&self.client, id, grace).await
    }

    async fn remove(&self, id: &str) -> Result<(), EngineError> {
        containers::remove(&self.client, id).await
    }

    async fn inspect(&self, id_or_name: &str) -> Result<ContainerFacts, EngineError> {
        containers::inspect(&self.client, id_or_name).await
    }

    async fn list(&self, query: &ContainerQuery) -> Result<Vec<ContainerEntry>, EngineError> {
        containers::list(&self.client, query).await
    }

    async fn update(&self, id: &str, body: &Value) -> Result<(), EngineError> {
        containers::update(&self.client, id, body).await
    }

    async fn exec_sync(
        &self,
        id: &str,
        cmd: &[String],
        limit: usize,
        timeout: Option<Duration>,
    ) -> Result<ExecOutput, EngineError> {
        exec_sync::run(&self.client, id, cmd, limit, timeout).await
    }

    async fn exec_session(&self, id: &str, spec: &ExecSpec) -> Result<Session, EngineError> {
        session::exec(&self.client, id, spec).await
    }

    async fn attach(&self, id: &str, streams: StreamSpec) -> Result<Session, EngineError> {
        session::attach(&self.client, id, streams).await
    }

    async fn image(&self, reference: &str) -> Result<ImageFacts, EngineError> {
        images::inspect(&self.client, reference).await
    }

    async fn images(&self) -> Result<Vec<ImageFacts>, EngineError> {
        images::list(&self.client).await
    }

    async fn pull(
        &self,
        reference: &str,
        auth: Option<&RegistryAuth>,
        progress: PullProgress,
    ) -> Result<(), EngineError> {
        pull::pull(&self.client, reference, auth, &progress).await
    }

    async fn remove_image(&self, reference: &str) -> Result<(), EngineError> {
        images::remove(&self.client, reference).await
    }

    async fn load_image(&self, archive: Vec<u8>) -> Result<(), EngineError> {
        pull::load(&self.client, archive).await
    }

    async fn image_usage(&self) -> Result<ImageUsage, EngineError> {
        images::usage(&self.client).await
    }
}
