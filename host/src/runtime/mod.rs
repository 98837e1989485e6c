//! The verbs: what each RPC does, in terms of the [`ports`].
//!
//! One verb, one file, named after the RPC: validate → look → draft → plugins → engine → record. Knows neither gRPC nor the
//! engine's client nor WebAssembly. Every verb may be repeated; a verb whose caller has gone is finished, not abandoned half
//! way (the front runs each on a task of its own). Stop and remove of what is not there are fine, as CRI says.

mod claim;
mod configure;
pub mod container;
mod failed_starts;
pub mod image;
mod locks;
mod platform_fields;
pub mod ports;
pub mod recover;
mod resolve;
pub mod sandbox;
pub mod status;
mod stream_backend;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use jiff::Timestamp;

use self::locks::KeyedLocks;
use self::ports::{ContainerEngine, ContainerLogs, Plugins, PodDialer, PodNetwork, SandboxStore};

/// What the operator chose, as far as the verbs care.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The pause image to use instead of our own.
    pub sandbox_image: Option<String>,
}

/// The verbs' state: the ports, and the little that is worth remembering between calls.
pub struct Runtime {
    engine: Arc<dyn ContainerEngine>,
    plugins: Arc<dyn Plugins>,
    network: Arc<dyn PodNetwork>,
    dialer: Arc<dyn PodDialer>,
    logs: Arc<dyn ContainerLogs>,
    store: Arc<dyn SandboxStore>,
    settings: Settings,
    /// One creation per name at a time.
    creations: KeyedLocks,
    failed_starts: failed_starts::FailedStarts,
    /// `image_ref` by image ID; an image's content never changes, its digests only by pulls and removals, which clear this.
    image_refs: Mutex<HashMap<String, String>>,
    warned_of_oom: AtomicBool,
    /// What an earlier run of the daemon left in the store: only this may be swept, never what a verb is making now.
    leftovers: recover::Leftovers,
}

/// The ports to run on.
pub struct Ports {
    /// The container engine.
    pub engine: Arc<dyn ContainerEngine>,
    /// The platform plugins.
    pub plugins: Arc<dyn Plugins>,
    /// The pod network.
    pub network: Arc<dyn PodNetwork>,
    /// Connects to ports inside pods.
    pub dialer: Arc<dyn PodDialer>,
    /// The log writer.
    pub logs: Arc<dyn ContainerLogs>,
    /// The record store.
    pub store: Arc<dyn SandboxStore>,
}

impl Runtime {
    /// The verbs over these ports.
    pub fn new(ports: Ports, settings: Settings) -> Self {
        Self {
            leftovers: recover::Leftovers::of(ports.store.as_ref()),
            engine: ports.engine,
            plugins: ports.plugins,
            network: ports.network,
            dialer: ports.dialer,
            logs: ports.logs,
            store: ports.store,
            settings,
            creations: KeyedLocks::default(),
            failed_starts: failed_starts::FailedStarts::default(),
            image_refs: Mutex::default(),
            warned_of_oom: AtomicBool::new(false),
        }
    }

    /// Warns once in the daemon's life that an oom_score_adj had to be raised.
    fn warn_of_clamped_oom(&self, clamped: Option<(i64, i64)>) {
        if let Some((asked, set)) = clamped
            && !self.warned_of_oom.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(
                asked,
                set,
                "the engine lacks CAP_SYS_RESOURCE and cannot lower oom_score_adj: raised to what it can set, here and from \
                 now on without a word"
            );
        }
    }
}

/// Nanoseconds since the epoch.
fn now() -> i64 {
    i64::try_from(Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX)
}

/// A number that two operations do not share; not a secret.
fn salt() -> u64 {
    RandomState::new().hash_one(now())
}
