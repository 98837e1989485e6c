//! Springline: a Kubernetes CRI v1 endpoint for Docker Engine whose platform parts are WebAssembly plugins.
//!
//! The modules in reading order:
//!
//! - [`model`]: the nouns (sandbox, container, image, labels, names), and what states mean;
//! - [`runtime`]: the verbs, one file per RPC, over the traits in [`runtime::ports`];
//! - [`draft`]: the engine's create body while it is built, with an owner on every value;
//! - [`cri`]: the front, CRI v1 over gRPC;
//! - [`docker`]: the back, Docker Engine over its API;
//! - [`plugin`]: the WebAssembly host;
//! - [`network`], [`logs`], [`store`]: one concern each, behind a port;
//! - [`error`]: what an error means to the caller;
//! - [`config`], [`cli`], [`telemetry`], [`shutdown`]: the process around it.
//!
//! [`run`] is the only place that wires concrete types.

pub mod cli;
pub mod config;
pub mod cri;
pub mod docker;
pub mod draft;
pub mod error;
pub mod logs;
pub mod model;
pub mod network;
pub mod plugin;
pub mod runtime;
pub mod shutdown;
pub mod store;
pub mod streaming;
pub mod telemetry;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use config::Config;
use cri::listener::ListenError;
use docker::DockerEngine;
use logs::LogWriter;
use network::{DockerBridge, NamespaceDialer};
use plugin::{PluginHost, PluginHostSettings};
use runtime::ports::{EngineError, StoreError, StreamUrls};
use runtime::{Ports, Runtime, Settings};
use shutdown::Shutdown;
use store::FileStore;
use streaming::{StreamingError, StreamingServer, StreamingSettings};

/// Makes cargo build this anew for each clone that shares a target folder, see `.cargo/config.toml`.
const _CLONE: Option<&str> = option_env!("SPRINGLINE_CLONE");

/// Where cri-dockerd keeps its sandbox files: pods that it made are taken over.
const CRI_DOCKERD_SANDBOXES: &str = "/var/lib/cri-dockerd/sandbox";
/// How long calls in flight get at the end.
const LAST_CALLS: Duration = Duration::from_secs(4);
/// How often an absent engine is asked again at the start.
const ENGINE_RETRY: Duration = Duration::from_secs(2);

/// Why the daemon cannot run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The CRI socket.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The records' folder.
    #[error("cannot open the root directory: {0}")]
    Store(#[from] StoreError),
    /// The engine's endpoint makes no sense. An engine that is absent is no error: it is waited for.
    #[error("docker-endpoint: {0}")]
    Engine(#[from] EngineError),
    /// The streaming server's address, certificate or settings.
    #[error(transparent)]
    Streaming(#[from] StreamingError),
    /// The gRPC server.
    #[error("the CRI server ended: {0}")]
    Server(String),
}

/// Runs the daemon until `shutdown`.
///
/// # Errors
/// What keeps it from serving; see [`RunError`].
pub async fn run(config: Config, shutdown: Shutdown) -> Result<(), RunError> {
    let store = FileStore::open(&config.root_dir, Some(PathBuf::from(CRI_DOCKERD_SANDBOXES)))?;
    let plugins = PluginHost::new(PluginHostSettings {
        seccomp_roots: config.seccomp_roots.clone(),
    });
    let ports = Ports {
        engine: Arc::new(DockerEngine::new(&config.docker_endpoint.to_string())?),
        plugins: Arc::new(plugins),
        network: Arc::new(DockerBridge::new()),
        dialer: Arc::new(NamespaceDialer::new()),
        logs: LogWriter::new(),
        store: Arc::new(store),
    };
    let settings = Settings {
        sandbox_image: config.pod_infra_container_image.clone(),
    };
    let runtime = Arc::new(Runtime::new(ports, settings));
    let streams = StreamingServer::bind(StreamingSettings::from_config(&config)?)?;
    let listener = cri::listener::bind(&config.container_runtime_endpoint)?;
    let recovery = tokio::spawn(recover(Arc::clone(&runtime)));
    tracing::info!(
        endpoint = %config.container_runtime_endpoint, streams = streams.base_url(), "serving CRI v1"
    );
    let sessions =
        tokio::spawn(Arc::clone(&streams).serve(Arc::clone(&runtime) as _, shutdown.requested()));
    shutdown::tell_ready();
    let served = serve(runtime, streams, listener, &shutdown).await;
    recovery.abort();
    if shutdown.is_requested() {
        // They let go of what they started; that is bounded.
        let _ = sessions.await;
    }
    served
}

/// Serves; at the end, calls in flight get a little time and no more, whatever a client does.
async fn serve(
    runtime: Arc<Runtime>,
    urls: Arc<dyn StreamUrls>,
    listener: cri::listener::Listener,
    shutdown: &Shutdown,
) -> Result<(), RunError> {
    let late = {
        let requested = shutdown.requested();
        async move {
            requested.await;
            tokio::time::sleep(LAST_CALLS).await;
        }
    };
    tokio::select! {
        served = cri::serve(runtime, urls, listener, shutdown.requested()) => {
            served.map_err(|error| RunError::Server(error.to_string()))
        }
        () = late => {
            tracing::warn!("calls were still in flight at the end");
            Ok(())
        }
    }
}

/// Picks up where an earlier run left, as soon as the engine answers.
async fn recover(runtime: Arc<Runtime>) {
    let mut told = false;
    while let Err(error) = runtime.recover().await {
        if !told {
            tracing::warn!(%error, "waiting for the container engine");
            told = true;
        }
        tokio::time::sleep(ENGINE_RETRY).await;
    }
    tracing::info!("what an earlier run left is picked up");
}
