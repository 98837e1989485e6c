//! The plugins of this node: one generation of them, in the order of the chain.
//!
//! A generation is made as a whole and never changes; the host swaps whole ones. A plugin that does not load stays in it with
//! its error, so that status shows it; it serves nothing and hurts nobody.

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::component::{self, LoadError, Loaded};
use super::engine::WasmEngine;
use super::manifest::Manifest;
use crate::runtime::ports::{Hook, PluginStatus};

/// Where a component's bytes come from.
#[derive(Debug, Clone)]
pub enum Artifact {
    /// Built into the daemon.
    Shipped(&'static [u8]),
    /// Read when it is loaded.
    File(PathBuf),
    /// Given as they are.
    Bytes(Vec<u8>),
}

/// A plugin to load.
#[derive(Debug, Clone)]
pub struct PluginSource {
    /// What the node says about it.
    pub manifest: Manifest,
    /// Its component.
    pub artifact: Artifact,
}

impl Artifact {
    fn bytes(&self) -> Result<Cow<'_, [u8]>, LoadError> {
        match self {
            Self::Shipped(bytes) => Ok(Cow::Borrowed(bytes)),
            Self::Bytes(bytes) => Ok(Cow::Borrowed(bytes)),
            Self::File(path) => {
                std::fs::read(path)
                    .map(Cow::Owned)
                    .map_err(|error| LoadError::Unreadable {
                        path: path.display().to_string(),
                        reason: error.to_string(),
                    })
            }
        }
    }

    fn origin(&self) -> String {
        match self {
            Self::Shipped(_) => "shipped".to_owned(),
            Self::File(path) => path.display().to_string(),
            Self::Bytes(_) => "memory".to_owned(),
        }
    }
}

/// A plugin of a generation.
pub(super) struct Plugin {
    /// What the node says about it.
    pub(super) manifest: Arc<Manifest>,
    /// SHA-256 of its component; empty when that could not be read.
    pub(super) digest: String,
    /// What can be called, or why nothing can.
    pub(super) loaded: Result<Loaded, LoadError>,
    /// What became of its calls.
    pub(super) counters: Counters,
    origin: String,
}

/// What became of a plugin's calls.
#[derive(Debug, Default)]
pub(super) struct Counters {
    calls: AtomicU64,
    failures: AtomicU64,
    busy_nanos: AtomicU64,
}

impl Counters {
    /// One call is over.
    pub(super) fn count(&self, took: Duration, failed: bool) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.failures
            .fetch_add(u64::from(failed), Ordering::Relaxed);
        self.busy_nanos.fetch_add(nanos, Ordering::Relaxed);
    }
}

impl Plugin {
    /// Reads, compiles and links it; blocks for the time of a compilation.
    pub(super) fn load(engine: &WasmEngine, source: &PluginSource) -> Self {
        let bytes = source.artifact.bytes();
        let digest = bytes.as_deref().map(component::digest).unwrap_or_default();
        let loaded = bytes.and_then(|bytes| component::load(engine, &source.manifest, &bytes));
        Self::new(source, digest, loaded)
    }

    /// One that did not load.
    pub(super) fn failed(source: &PluginSource, error: LoadError) -> Self {
        Self::new(source, String::new(), Err(error))
    }

    fn new(source: &PluginSource, digest: String, loaded: Result<Loaded, LoadError>) -> Self {
        Self {
            manifest: Arc::new(source.manifest.clone()),
            digest,
            loaded,
            counters: Counters::default(),
            origin: source.artifact.origin(),
        }
    }

    /// Whether it loaded and has the hook.
    pub(super) fn has(&self, hook: Hook) -> bool {
        self.loaded.as_ref().is_ok_and(|loaded| loaded.has(hook))
    }

    pub(super) fn status(&self) -> PluginStatus {
        let hooks = [Hook::Sandbox, Hook::Container];
        let counters = &self.counters;
        PluginStatus {
            id: self.manifest.id.clone(),
            version: self.manifest.version.clone(),
            digest: self.digest.clone(),
            hooks: hooks
                .into_iter()
                .filter(|hook| self.has(*hook))
                .map(|hook| hook.as_str().to_owned())
                .collect(),
            source: self.origin.clone(),
            error: self.loaded.as_ref().err().map(ToString::to_string),
            calls: counters.calls.load(Ordering::Relaxed),
            failures: counters.failures.load(Ordering::Relaxed),
            busy: Duration::from_nanos(counters.busy_nanos.load(Ordering::Relaxed)),
        }
    }
}

/// All plugins at one time.
#[derive(Default)]
pub(super) struct Generation {
    /// The engine that they were compiled for; `None` in the generation before the first.
    pub(super) engine: Option<Arc<WasmEngine>>,
    plugins: Vec<Plugin>,
}

impl Generation {
    /// Loads all of them, several at once; blocks until the last is done.
    pub(super) fn load(sources: &[PluginSource]) -> Self {
        let engine = WasmEngine::shared();
        let mut plugins = match &engine {
            Ok(engine) => load_all(engine, sources),
            Err(error) => sources
                .iter()
                .map(|source| Plugin::failed(source, LoadError::Compiler(error.to_string())))
                .collect(),
        };
        plugins.sort_by(|a, b| {
            let key = |p: &Plugin| (p.manifest.order, p.manifest.id.clone());
            key(a).cmp(&key(b))
        });
        for plugin in &plugins {
            report(plugin);
        }
        Self {
            engine: engine.ok(),
            plugins,
        }
    }

    /// Those that have the hook, in the order of the chain.
    pub(super) fn chain(&self, hook: Hook) -> impl Iterator<Item = &Plugin> {
        self.plugins.iter().filter(move |plugin| plugin.has(hook))
    }

    /// Every plugin, also what does not serve.
    pub(super) fn status(&self) -> Vec<PluginStatus> {
        self.plugins.iter().map(Plugin::status).collect()
    }
}

/// A few at a time: each compilation takes memory, and is spread over threads itself.
fn load_all(engine: &WasmEngine, sources: &[PluginSource]) -> Vec<Plugin> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some(source) = sources.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push(load_one(engine, sources, source));
        }
        done
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers.min(sources.len()))
            .map(|_| scope.spawn(work))
            .collect();
        threads
            .into_iter()
            .filter_map(|thread| thread.join().ok())
            .flatten()
            .collect()
    })
}

fn load_one(engine: &WasmEngine, all: &[PluginSource], source: &PluginSource) -> Plugin {
    let id = &source.manifest.id;
    if all.iter().filter(|other| other.manifest.id == *id).count() > 1 {
        return Plugin::failed(source, LoadError::Duplicate(id.clone()));
    }
    // A defect of the compiler costs this plugin, not the daemon.
    let load = AssertUnwindSafe(|| Plugin::load(engine, source));
    std::panic::catch_unwind(load).unwrap_or_else(|_| {
        let cause = "the compiler panicked".to_owned();
        Plugin::failed(source, LoadError::Compiler(cause))
    })
}

fn report(plugin: &Plugin) {
    let status = plugin.status();
    match status.error {
        None => tracing::info!(
            plugin = %status.id,
            digest = %status.digest,
            hooks = status.hooks.join(","),
            source = %status.source,
            "plugin loaded"
        ),
        Some(error) => tracing::error!(
            plugin = %status.id,
            source = %status.source,
            %error,
            "plugin does not load and serves nothing"
        ),
    }
}
