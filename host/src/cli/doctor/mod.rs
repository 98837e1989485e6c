//! `springline doctor`: looks at the engine, the plugins and the node, and says what is wrong and what to do.
//!
//! Owns the order: look (`look.rs`), judge (`engine.rs`, `plugins.rs`, `node.rs`: pure, each with its table of cases), show
//! (`table.rs`, or JSON). It must not need the daemon: it is for the day when that does not run. Ends with
//! [`exit::FAILED`] when anything must be put right before pods run.

use std::sync::Arc;
use std::time::Duration;

use super::{ConfigFlags, complain, exit, print, serve, wrong_config};
use crate::config::{Config, Endpoint};
use crate::cri::listener::probe;
use crate::docker::DockerEngine;
use crate::model::engine::EngineFacts;
use crate::plugin::{PluginHost, PluginHostSettings};
use crate::runtime::ports::{ContainerEngine, EngineError, Plugins};

mod engine;
mod finding;
mod look;
mod node;
mod plugins;
mod table;

use finding::{Finding, Report};

/// How long each of those who are asked has for its answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Flags of `springline doctor`.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct DoctorFlags {
    #[command(flatten)]
    config: ConfigFlags,
    /// How the answer is written
    #[arg(long, short, value_name = "FORMAT", value_enum, default_value_t = Output::Table)]
    output: Output,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Output {
    /// For people
    Table,
    /// For programs
    Json,
}

/// Looks, says what it found, and gives the exit code.
pub(super) fn doctor(flags: &DoctorFlags) -> u8 {
    let config = match flags.config.load() {
        Ok(config) => config,
        Err(error) => return wrong_config(&error),
    };
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return complain(exit::FAILED, &format!("cannot start threads: {error}")),
    };
    let report = Report::new(runtime.block_on(examine(&config)));
    let text = match flags.output {
        Output::Table => table::render(&report),
        Output::Json => match serde_json::to_string_pretty(&report) {
            Ok(text) => text + "\n",
            Err(error) => return complain(exit::FAILED, &error.to_string()),
        },
    };
    match print(&text) {
        exit::OK if !report.ok => exit::FAILED,
        code => code,
    }
}

async fn examine(config: &Config) -> Vec<Finding> {
    let (facts, answer) = tokio::join!(ask_engine(config), ask_daemon(config));
    let docker = config.docker_endpoint.to_string();
    let mut findings = engine::findings(&docker, facts.as_deref());
    findings.extend(examine_plugins(config).await);
    let roots = config.seccomp_roots.iter();
    let roots: Vec<_> = roots.map(|root| (root.clone(), root.is_dir())).collect();
    findings.extend(node::seccomp_roots(&roots));
    findings.push(node::store(
        &config.root_dir,
        &look::store(&config.root_dir),
    ));
    findings.push(node::daemon(
        &config.container_runtime_endpoint,
        answer.as_ref(),
    ));
    findings
}

async fn ask_engine(config: &Config) -> Result<Arc<EngineFacts>, EngineError> {
    let engine = DockerEngine::new(&config.docker_endpoint.to_string())?;
    let asked = tokio::time::timeout(PATIENCE, engine.facts()).await;
    asked.unwrap_or(Err(EngineError::Timeout { after: PATIENCE }))
}

/// `None` when there is no socket that we could name.
async fn ask_daemon(config: &Config) -> Option<probe::Answer> {
    match &config.container_runtime_endpoint {
        Endpoint::Unix(socket) => Some(probe::ask(socket.path(), PATIENCE).await),
        Endpoint::Passed => None,
    }
}

/// Loads the shipped plugins as the daemon would, and asks them nothing.
async fn examine_plugins(config: &Config) -> Vec<Finding> {
    let host = PluginHost::new(PluginHostSettings {
        seccomp_roots: config.seccomp_roots.clone(),
    });
    let ready = host.ready().await;
    let mut loaded = host.status();
    if let Err(broke_off) = ready {
        for plugin in &mut loaded {
            plugin.error.get_or_insert_with(|| broke_off.to_string());
        }
    }
    plugins::findings(
        &loaded,
        PluginHost::has_shipped(),
        host.unpooled().as_deref(),
        &config.plugins_dir,
        &serve::manifests(&config.plugins_dir),
    )
}
