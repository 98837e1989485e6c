//! `springline serve`: configuration, log, runtime, and over to `crate::run`.
//!
//! Owns what comes before and after the daemon's life. Fails with [`exit::USAGE`] for a wrong configuration, before anything
//! is touched, and with [`exit::FAILED`] for all that goes wrong later.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{ConfigFlags, complain, exit, wrong_config};
use crate::config::Config;
use crate::run;
use crate::shutdown::Shutdown;
use crate::telemetry;

/// How long the end waits for work on blocking threads.
const LINGER: Duration = Duration::from_secs(2);

/// Runs the daemon until it is asked to end; gives the exit code.
pub(super) fn serve(flags: &ConfigFlags) -> u8 {
    let config = match flags.load() {
        Ok(config) => config,
        Err(error) => return wrong_config(&error),
    };
    if let Err(error) = telemetry::init(&config.log_level, config.log_format) {
        return complain(exit::FAILED, &error.to_string());
    }
    tracing::info!(version = env!("CARGO_PKG_VERSION"), "springline starts");
    tell_of_unread_manifests(&config.plugins_dir);

    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return complain(exit::FAILED, &format!("cannot start threads: {error}")),
    };
    let code = runtime.block_on(live(config));
    runtime.shutdown_timeout(LINGER);
    code
}

async fn live(config: Config) -> u8 {
    let shutdown = match Shutdown::on_signals() {
        Ok(shutdown) => shutdown,
        Err(error) => {
            tracing::error!("cannot handle signals: {error}");
            return exit::FAILED;
        }
    };
    match run(config, shutdown).await {
        Ok(()) => {
            tracing::info!("springline has ended");
            exit::OK
        }
        Err(error) => {
            tracing::error!("{error}");
            exit::FAILED
        }
    }
}

/// An operator who put manifests there must not believe that they are in force.
fn tell_of_unread_manifests(folder: &Path) {
    let files = manifests(folder);
    if !files.is_empty() {
        tracing::warn!(
            folder = %folder.display(),
            ?files,
            "plugin manifests are not read by this version: only the shipped plugins serve"
        );
    }
}

/// Names of the plugin manifests in a folder, sorted; none when it is absent or cannot be read.
pub(super) fn manifests(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut names: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .map(|entry| PathBuf::from(entry.file_name()))
        .filter(|name| name.extension().is_some_and(|ext| ext == "toml"))
        .collect();
    names.sort();
    names
}
