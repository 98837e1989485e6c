//! The client: one endpoint, what is known of the engine there, and calls to it.
//!
//! Facts are learnt with the first call and forgotten when the engine was away: a dial that failed, a connection that
//! broke, another process behind the socket, or an engine that says its API is older than what we speak. Whoever comes
//! first then learns them again, the others wait for it, each within its own deadline.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::sync::Mutex;

use super::endpoint::{Endpoint, Stream};
use super::raw::{self, Call, Open, READ, Reply};
use super::{facts, from_docker};
use crate::runtime::ports::{EngineError, EngineFacts, Version};

/// The way to the engine and what is known of it.
pub(super) struct Wire {
    pub(super) endpoint: Endpoint,
    known: ArcSwapOption<EngineFacts>,
    /// Counts how often the facts were forgotten, so that facts learnt meanwhile are not kept.
    forgotten: AtomicU64,
    /// The process that listened at the last dial; 0 = not known.
    peer: AtomicI32,
}

impl Wire {
    fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            known: ArcSwapOption::empty(),
            forgotten: AtomicU64::new(0),
            peer: AtomicI32::new(0),
        }
    }

    /// A new connection.
    pub(super) async fn dial(&self) -> Result<Box<dyn Stream>, EngineError> {
        let dialled = self.endpoint.dial().await.map_err(|e| self.broke(e))?;
        let peer = dialled.peer.unwrap_or(0);
        let before = self.peer.swap(peer, Ordering::AcqRel);
        if before != 0 && before != peer {
            self.forget();
        }
        Ok(dialled.stream)
    }

    /// The process that listened at the last dial.
    pub(super) fn peer(&self) -> Option<i32> {
        Some(self.peer.load(Ordering::Acquire)).filter(|pid| *pid > 0)
    }

    /// What is known of the engine is to be learnt anew.
    pub(super) fn forget(&self) {
        self.forgotten.fetch_add(1, Ordering::AcqRel);
        self.known.store(None);
    }

    /// Passes `error` on; one that says the engine was away makes us forget.
    pub(super) fn broke(&self, error: EngineError) -> EngineError {
        if matches!(error, EngineError::Unreachable { .. }) {
            self.forget();
        }
        error
    }

    fn version(&self) -> Option<Version> {
        self.known.load().as_ref().map(|facts| facts.api)
    }
}

/// The engine's client.
pub(super) struct Client {
    wire: Wire,
    learning: Mutex<()>,
}

impl Client {
    pub(super) fn new(endpoint: Endpoint) -> Self {
        Self {
            wire: Wire::new(endpoint),
            learning: Mutex::new(()),
        }
    }

    /// The way to the engine.
    pub(super) fn wire(&self) -> &Wire {
        &self.wire
    }

    /// What is known of the engine; see [`crate::runtime::ports::ContainerEngine::facts`].
    pub(super) async fn facts(&self) -> Result<Arc<EngineFacts>, EngineError> {
        if let Some(facts) = self.wire.known.load_full() {
            return Ok(facts);
        }
        within(Some(READ), self.learn()).await
    }

    async fn learn(&self) -> Result<Arc<EngineFacts>, EngineError> {
        let _turn = self.learning.lock().await;
        if let Some(facts) = self.wire.known.load_full() {
            return Ok(facts);
        }
        let forgotten = self.wire.forgotten.load(Ordering::Acquire);
        let facts = Arc::new(facts::learn(&self.wire).await?);
        tracing::info!(
            endpoint = %self.wire.endpoint, version = %facts.version, api = %facts.api, "container engine"
        );
        self.wire.known.store(Some(Arc::clone(&facts)));
        if self.wire.forgotten.load(Ordering::Acquire) != forgotten {
            self.wire.known.store(None);
        }
        Ok(facts)
    }

    /// Makes `call` and reads its answer, within the call's deadline.
    pub(super) async fn call(&self, call: Call) -> Result<Reply, EngineError> {
        within(call.deadline, async {
            let api = self.facts().await?.api;
            match raw::call(&self.wire, &call, Some(api)).await {
                // Refused for its version alone: the engine was exchanged for an older one, and did nothing.
                Err(EngineError::BadRequest(_)) if self.wire.version().is_none() => {
                    let api = self.facts().await?.api;
                    raw::call(&self.wire, &call, Some(api)).await
                }
                other => other,
            }
        })
        .await
    }

    /// Makes `call` and reads its answer as JSON; `what` names it in errors.
    pub(super) async fn json<T: serde::de::DeserializeOwned>(
        &self,
        call: Call,
        what: &str,
    ) -> Result<T, EngineError> {
        from_docker::read(&self.call(call).await?.body, what)
    }

    /// Makes `call` and leaves its answer to be read; the call's deadline is for the answer's beginning.
    pub(super) async fn open(&self, call: Call) -> Result<Open, EngineError> {
        within(call.deadline, async {
            let api = self.facts().await?.api;
            raw::open(&self.wire, &call, Some(api)).await
        })
        .await
    }

    /// Makes `call` and takes its connection over; the call's deadline is for the engine's consent.
    pub(super) async fn hijack(&self, call: Call) -> Result<TokioIo<Upgraded>, EngineError> {
        within(call.deadline, async {
            let api = self.facts().await?.api;
            raw::hijack(&self.wire, &call, Some(api)).await
        })
        .await
    }
}

/// `work`, given up after `deadline`.
pub(super) async fn within<T>(
    deadline: Option<Duration>,
    work: impl Future<Output = Result<T, EngineError>>,
) -> Result<T, EngineError> {
    match deadline {
        None => work.await,
        Some(after) => tokio::time::timeout(after, work)
            .await
            .unwrap_or(Err(EngineError::Timeout { after })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn another_process_behind_the_socket_is_another_engine() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let _listener = tokio::net::UnixListener::bind(&socket).unwrap();
        let wire = Wire::new(Endpoint::Unix(socket));
        let us = i32::try_from(std::process::id()).unwrap();
        for (name, before, kept) in [
            ("never dialled", 0, true),
            ("the same", us, true),
            ("another", us + 1, false),
        ] {
            wire.known.store(Some(Arc::new(EngineFacts::for_tests())));
            wire.peer.store(before, Ordering::Relaxed);
            wire.dial().await.unwrap();
            assert_eq!(wire.known.load().is_some(), kept, "{name}");
            assert_eq!(wire.peer(), Some(us), "{name}");
        }
    }
}
