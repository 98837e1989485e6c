//! RunPodSandbox: named steps with an undo stack.
//!
//! | step | leaves behind | taken back by |
//! |---|---|---|
//! | `pick_image` | the pause image, kept | – |
//! | `write_files` | resolv.conf | removing it |
//! | `make_body` | – | – |
//! | `create` | a container | removing it |
//! | `record` | a record without the mark | removing it |
//! | `start` | a running process | removing the container |
//! | `attach` | addresses | detaching |
//! | `complete` | the mark: READY from here on | – |

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use super::resolv;
use super::undo::{Done, UndoStack};
use crate::draft::build;
use crate::error::Error;
use crate::model::ids::SandboxId;
use crate::model::sandbox::{NamespaceMode, SandboxConfig};
use crate::model::{labels, name};
use crate::runtime::claim::Claim;
use crate::runtime::configure::{Asked, config_hash};
use crate::runtime::ports::{EngineFacts, Hook, SandboxRecord, Subject};
use crate::runtime::{Runtime, image, salt};

/// File name of the resolv.conf among a sandbox's files.
const RESOLV_CONF: &str = "resolv.conf";

/// A RunPodSandbox request.
#[derive(Debug, Clone)]
pub struct RunSandbox {
    /// What to make.
    pub config: SandboxConfig,
    /// The request as JSON in CRI's field names, for plugins.
    pub document: Arc<Value>,
}

impl Runtime {
    /// Makes, starts and connects a pod sandbox.
    ///
    /// # Errors
    /// Those of any step; everything done so far is taken back then.
    pub async fn run_pod_sandbox(&self, request: RunSandbox) -> Result<SandboxId, Error> {
        let name = name::sandbox(&request.config.metadata);
        let _one_at_a_time = self.creations.lock(&name).await;
        let mut undo = UndoStack::default();
        let mut run = Run {
            runtime: self,
            name,
            hash: config_hash(&request.document),
            key: format!("{}-{:016x}", request.config.metadata.uid, salt()),
            host_network: request.config.security.namespaces.network == NamespaceMode::Node,
            request,
        };
        match run.steps(&mut undo).await {
            Ok(id) => Ok(id),
            Err(error) => {
                undo.undo(self).await;
                Err(error)
            }
        }
    }
}

struct Run<'a> {
    runtime: &'a Runtime,
    name: String,
    hash: String,
    key: String,
    host_network: bool,
    request: RunSandbox,
}

/// What the step `create` came to.
enum Made {
    /// A sandbox to be recorded, started and connected.
    New(String),
    /// One that an earlier try of the same request finished.
    Ready(String),
}

impl Run<'_> {
    async fn steps(&mut self, undo: &mut UndoStack) -> Result<SandboxId, Error> {
        let facts = self.runtime.facts().await?;
        self.check_handler(&facts)?;
        let image = self.pick_image().await?;
        let resolv_conf = self.write_files(undo).await?;
        let body = self.make_body(&image, resolv_conf, facts).await?;
        let id = match self.create(&body, undo).await? {
            Made::Ready(id) => return Ok(SandboxId::new(id)),
            Made::New(id) => id,
        };
        self.record(&id, false, undo).await?;
        self.start(&id).await?;
        self.attach(&id, undo).await?;
        self.record(&id, true, undo).await?;
        Ok(SandboxId::new(id))
    }

    fn check_handler(&self, facts: &EngineFacts) -> Result<(), Error> {
        let handler = &self.request.config.runtime_handler;
        if handler.is_empty() || facts.runtimes.contains(handler) {
            return Ok(());
        }
        Err(Error::invalid(
            "runtime_handler",
            format!(
                "the engine knows no runtime {handler:?}; it has {}",
                facts.runtimes.join(", ")
            ),
        ))
    }

    async fn pick_image(&self) -> Result<String, Error> {
        let wanted = self.runtime.settings.sandbox_image.as_deref();
        image::pause::ensure(self.runtime.engine.as_ref(), wanted).await
    }

    /// The resolv.conf is whole before the sandbox exists, and its containers inherit it.
    async fn write_files(&self, undo: &mut UndoStack) -> Result<Option<PathBuf>, Error> {
        let Some(dns) = self
            .request
            .config
            .dns
            .as_ref()
            .filter(|dns| !dns.is_empty())
        else {
            return Ok(None);
        };
        undo.push(Done::Files(self.key.clone()));
        let content = resolv::resolv_conf(dns);
        let path = self
            .runtime
            .store
            .put_file(&self.key, RESOLV_CONF, content.as_bytes())
            .await?;
        Ok(Some(path))
    }

    async fn make_body(
        &self,
        image: &str,
        resolv_conf: Option<PathBuf>,
        facts: Arc<EngineFacts>,
    ) -> Result<Value, Error> {
        let plan = self.runtime.network.plan();
        let config = &self.request.config;
        let translated = build::sandbox(build::SandboxInput {
            config,
            image,
            network_mode: &plan.mode,
            publish_ports: plan.engine_publishes_ports,
            resolv_conf: resolv_conf.as_deref(),
            create_key: &self.key,
            config_hash: &self.hash,
            facts: &facts,
        })?;
        self.runtime.warn_of_clamped_oom(translated.clamped_oom);
        let asked = Asked {
            hook: Hook::Sandbox,
            subject: Subject {
                pod_uid: config.metadata.uid.clone(),
                pod_namespace: config.metadata.namespace.clone(),
                pod_name: config.metadata.name.clone(),
                attempt: config.metadata.attempt,
                ..Subject::default()
            },
            document: Arc::clone(&self.request.document),
            annotations: config.meta.annotations.clone(),
        };
        self.runtime.configure(asked, translated.draft, facts).await
    }

    async fn create(&mut self, body: &Value, undo: &mut UndoStack) -> Result<Made, Error> {
        let claimed = self
            .runtime
            .claim(Claim {
                name: &self.name,
                kind: labels::TYPE_SANDBOX,
                config_hash: &self.hash,
                body,
            })
            .await?;
        if claimed.ready {
            self.runtime.store.remove_files(&self.key).await?;
            return Ok(Made::Ready(claimed.id));
        }
        undo.push(Done::Container(claimed.id.clone()));
        if let Some(key) = claimed.create_key {
            self.take_key(key, undo).await?;
        }
        Ok(Made::New(claimed.id))
    }

    /// An adopted sandbox bind-mounts the file under the key it was made with: that one must be there, ours need not.
    async fn take_key(&mut self, key: String, undo: &mut UndoStack) -> Result<(), Error> {
        self.runtime.store.remove_files(&self.key).await?;
        self.key = key;
        self.write_files(undo).await?;
        Ok(())
    }

    async fn record(&self, id: &str, complete: bool, undo: &mut UndoStack) -> Result<(), Error> {
        let config = &self.request.config;
        undo.push(Done::Record(id.to_owned()));
        self.runtime
            .store
            .put(SandboxRecord {
                id: id.to_owned(),
                metadata: config.metadata.clone(),
                complete,
                create_key: self.key.clone(),
                runtime_handler: config.runtime_handler.clone(),
                host_network: self.host_network,
                port_mappings: config.port_mappings.clone(),
                failed_starts: Default::default(),
            })
            .await?;
        Ok(())
    }

    async fn start(&self, id: &str) -> Result<(), Error> {
        self.runtime
            .engine
            .start(id)
            .await
            .map_err(Error::engine(format!("starting pod sandbox {id}")))
    }

    async fn attach(&self, id: &str, undo: &mut UndoStack) -> Result<(), Error> {
        if self.host_network {
            return Ok(());
        }
        let facts = self
            .runtime
            .engine
            .inspect(id)
            .await
            .map_err(Error::engine(format!("inspecting pod sandbox {id}")))?;
        undo.push(Done::Network(id.to_owned()));
        self.runtime
            .network
            .attach(&self.request.config, &facts)
            .await?;
        Ok(())
    }
}

impl Runtime {
    /// What is known of the engine.
    ///
    /// # Errors
    /// The engine cannot be reached or is too old.
    pub(crate) async fn facts(&self) -> Result<Arc<EngineFacts>, Error> {
        self.engine
            .facts()
            .await
            .map_err(Error::engine("asking the engine about itself"))
    }
}
