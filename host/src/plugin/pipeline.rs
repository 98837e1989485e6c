//! The chain: every plugin that has the hook, in order, each on the draft as the ones before left it.
//!
//! The first that fails ends the chain, and the caller's draft is what it was. Plugins load beside the daemon's start;
//! a call that comes earlier waits for them, so that no request slips past a plugin.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use sha2::{Digest, Sha256};
use tokio::sync::watch;

use super::bindings::types::Fault;
use super::call::{self, Failure};
use super::component::{LoadError, hex};
use super::context::HookContext;
use super::engine::WasmEngine;
use super::manifest::Manifest;
use super::registry::{Artifact, Generation, Plugin, PluginSource};
use crate::draft::Draft;
use crate::runtime::ports::{Configured, PluginCall, PluginError, PluginStatus, Plugins};

/// Components that the build put into this binary, by plugin ID.
static SHIPPED: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/shipped_components.rs"));

/// What the plugin host needs from the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PluginHostSettings {
    /// Folders behind the shipped plugin's file root `seccomp`.
    pub seccomp_roots: Vec<PathBuf>,
}

/// The plugins of this node behind the verbs' port.
pub struct PluginHost {
    current: Arc<ArcSwap<Generation>>,
    loaded: watch::Receiver<bool>,
    /// What is being loaded, for a status that is asked for before it is.
    expected: Vec<PluginStatus>,
}

impl PluginHost {
    /// Begins to load the shipped plugins.
    pub fn new(settings: PluginHostSettings) -> Self {
        if SHIPPED.is_empty() {
            tracing::warn!(
                "this build has no plugins inside (`cargo xtask build` puts them there): \
                 requests that set platform security fields are refused"
            );
        }
        let sources = SHIPPED.iter().map(|(id, bytes)| PluginSource {
            manifest: Manifest::shipped(id, &settings.seccomp_roots)
                .unwrap_or_else(|| Manifest::new(*id)),
            artifact: Artifact::Shipped(bytes),
        });
        Self::with_plugins(sources.collect())
    }

    /// Whether this binary was built with the shipped plugins inside.
    pub fn has_shipped() -> bool {
        !SHIPPED.is_empty()
    }

    /// Begins to load these plugins, on a thread of its own.
    pub fn with_plugins(sources: Vec<PluginSource>) -> Self {
        let current = Arc::new(ArcSwap::from_pointee(Generation::default()));
        let (done, loaded) = watch::channel(false);
        let expected = sources.iter().map(expected).collect();
        let slot = Arc::clone(&current);
        let spawned = std::thread::Builder::new()
            .name("plugin-load".to_owned())
            .spawn(move || {
                slot.store(Arc::new(Generation::load(&sources)));
                // Nobody may be left to hear it.
                let _ = done.send(true);
            });
        if let Err(error) = spawned {
            tracing::error!(%error, "no thread to load the plugins on");
        }
        Self {
            current,
            loaded,
            expected,
        }
    }

    /// Why instances do not come from a pool, once plugins are loaded; `None` = they do. For status and doctor.
    pub fn unpooled(&self) -> Option<String> {
        let generation = self.current.load();
        generation.engine.as_ref()?.unpooled.clone()
    }

    /// Waits until every plugin is loaded or has failed to.
    ///
    /// # Errors
    /// The loading itself broke off.
    pub async fn ready(&self) -> Result<(), PluginError> {
        let mut loaded = self.loaded.clone();
        match loaded.wait_for(|done| *done).await {
            Ok(_) => Ok(()),
            Err(_) => Err(PluginError::Broken {
                plugin: "all".to_owned(),
                hook: "load",
                reason: "loading the plugins broke off; restart the daemon".to_owned(),
            }),
        }
    }
}

#[async_trait]
impl Plugins for PluginHost {
    async fn configure(&self, call: PluginCall) -> Result<Configured, PluginError> {
        self.ready().await?;
        // One generation for the whole call, whatever is swapped in meanwhile.
        let generation = self.current.load_full();
        let mut out = Configured {
            draft: call.draft.clone(),
            handled: Default::default(),
            chain_digest: String::new(),
        };
        let Some(engine) = &generation.engine else {
            return Ok(out);
        };
        let mut chain = Chain::default();
        for plugin in generation.chain(call.hook) {
            let context = one(engine, plugin, &call, out.draft.clone()).await?;
            out.draft = context.draft;
            out.handled.extend(context.handled);
            chain.add(plugin);
        }
        out.chain_digest = chain.digest();
        Ok(out)
    }

    fn status(&self) -> Vec<PluginStatus> {
        if *self.loaded.borrow() {
            self.current.load().status()
        } else {
            self.expected.clone()
        }
    }
}

async fn one(
    engine: &WasmEngine,
    plugin: &Plugin,
    call: &PluginCall,
    draft: Draft,
) -> Result<HookContext, PluginError> {
    let context = HookContext::new(&plugin.manifest, call, draft);
    let start = Instant::now();
    let ended = call::run(engine, plugin, context).await;
    plugin.counters.count(start.elapsed(), ended.is_err());
    ended.map_err(|failure| error(plugin, call, failure))
}

fn error(plugin: &Plugin, call: &PluginCall, failure: Failure) -> PluginError {
    let plugin = plugin.manifest.id.clone();
    match failure {
        Failure::Busy(after) => PluginError::RetryLater {
            plugin,
            message: format!("no instance was free within {after:?}"),
        },
        Failure::Fault(Fault::Settings(message)) => PluginError::Settings { plugin, message },
        Failure::Fault(Fault::Unsupported(message)) => PluginError::Unsupported { plugin, message },
        Failure::Fault(Fault::RetryLater(message)) => PluginError::RetryLater { plugin, message },
        Failure::Fault(Fault::Fatal(message)) => PluginError::Fatal { plugin, message },
        Failure::Broken(reason) => PluginError::Broken {
            plugin,
            hook: call.hook.as_str(),
            reason,
        },
    }
}

/// The plugins that ran, as one digest.
#[derive(Default)]
struct Chain(Option<Sha256>);

impl Chain {
    fn add(&mut self, plugin: &Plugin) {
        let sum = self.0.get_or_insert_default();
        sum.update(format!("{} {}\n", plugin.manifest.id, plugin.digest));
    }

    fn digest(self) -> String {
        self.0.map(|sum| hex(&sum.finalize())).unwrap_or_default()
    }
}

fn expected(source: &PluginSource) -> PluginStatus {
    let unloaded = LoadError::Compiler("still loading".to_owned());
    let mut status = Plugin::failed(source, unloaded).status();
    status.error = Some("it is still loading".to_owned());
    status
}
