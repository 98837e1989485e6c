//! The lab: real Docker Engines of several ages and a registry that serves
//! test images under the names that the public CRI suite uses.
//!
//! Each engine lives in a network namespace of its own, with its own bridge,
//! iptables rules, loopback registry and sockets. So the lab changes nothing
//! of the machine's network, never meets a user's own engine, needs no entry
//! in the hosts file, and its engines can run side by side.
//!
//! Everything comes from Debian's packages, most of them unpacked into the
//! cache and not installed. What runs is found again by pid files under
//! `/run/springline-lab`, so that each chore is quick when the work is done.

mod decoy;
pub(crate) mod engines;
pub(crate) mod go;
mod images;
mod layers;
mod network;
mod packages;
pub(crate) mod registry;

use std::{
    ffi::OsString,
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
};

use clap::Subcommand;
use engines::{Engine, Version};

use crate::{
    failure::{Context, Failure, Outcome},
    process,
};

#[derive(Subcommand)]
pub(crate) enum LabCommand {
    /// Start an engine with its registry (installs and publishes what is missing).
    Start { engine: Version },
    /// Stop an engine with its registry; images and data stay for the next start.
    Stop {
        engine: Version,
        /// Also delete the engine's data.
        #[arg(long)]
        wipe: bool,
    },
    /// Say what runs and where; all engines when none is named.
    Status { engine: Option<Version> },
    /// Build the test images and put them into the registry's storage.
    Images,
    /// Build crictl into the cache and say where it is.
    Crictl,
    /// Run a command in an engine's network namespace, with the environment that the tests read.
    Exec {
        engine: Version,
        #[arg(trailing_var_arg = true, required = true)]
        command: Vec<OsString>,
    },
    /// The HTTPS proxy that has no HTTPS (started by `start`).
    #[command(hide = true)]
    Decoy { address: String },
}

/// Runs a lab chore.
pub(crate) fn lab(command: LabCommand) -> Outcome {
    match command {
        LabCommand::Start { engine } => {
            let engine = start(engine)?;
            println!("{}", engine.report());
            Ok(())
        }
        LabCommand::Stop { engine, wipe } => Engine::new(engine).stop(wipe),
        LabCommand::Status { engine } => {
            let all = Version::ALL.to_vec();
            for version in engine.map_or(all, |one| vec![one]) {
                println!("{}", Engine::new(version).report());
            }
            Ok(())
        }
        LabCommand::Images => {
            let images = registry::publish()?;
            images.iter().for_each(|image| println!("{image}"));
            Ok(())
        }
        LabCommand::Crictl => {
            println!("{}", crate::conformance::crictl()?.display());
            Ok(())
        }
        LabCommand::Exec { engine, command } => exec(engine, &command),
        LabCommand::Decoy { address } => decoy::serve(&address),
    }
}

/// An engine that runs, with the test images at hand.
pub(crate) fn start(version: Version) -> Outcome<Engine> {
    root_only()?;
    registry::publish()?;
    start_bare(version)
}

/// An engine that runs, whatever its registry holds.
pub(crate) fn start_bare(version: Version) -> Outcome<Engine> {
    root_only()?;
    let engine = Engine::new(version);
    let _alone = lock()?;
    engine.start()?;
    Ok(engine)
}

fn exec(version: Version, command: &[OsString]) -> Outcome {
    let engine = Engine::new(version);
    if !engine.runs() {
        return Err(Failure::new(format!(
            "engine {version} does not run: cargo xtask lab start {version}"
        )));
    }
    let (program, arguments) = command.split_first().context("no command given")?;
    let mut inside: Command = engine.inside(program);
    inside.args(arguments).envs(engine.environment());
    let status = inside.status().context("starting the command")?;
    if status.success() {
        Ok(())
    } else {
        Err(Failure::new(format!("ended with {status}")))
    }
}

/// A root file system with busybox, as a tar file.
pub(crate) fn busybox_tar() -> Outcome<Vec<u8>> {
    Ok(images::busybox_layer()?.bytes.clone())
}

/// A static busybox, for those who make an image of it.
pub(crate) fn static_busybox() -> Outcome<PathBuf> {
    images::static_busybox()
}

/// A key for what bytes say, in hex digits.
pub(crate) fn fingerprint(bytes: &[u8]) -> String {
    layers::digest(bytes)
        .trim_start_matches("sha256:")
        .to_owned()
}

fn root_only() -> Outcome {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    Err(Failure::new(
        "the lab runs Docker Engines and network namespaces: run this as root",
    ))
}

/// Held while something of the lab is set up, so that two chores do not do it twice.
fn lock() -> Outcome<File> {
    let run = Path::new("/run/springline-lab");
    fs::create_dir_all(run).context(format!("making {}", run.display()))?;
    let file = File::create(run.join("lock")).context("making the lab's lock file")?;
    file.lock().context("waiting for the lab's lock")?;
    Ok(file)
}

/// Where the lab keeps what it can get again.
fn cache() -> Outcome<PathBuf> {
    Ok(crate::paths::cache()?.join("lab"))
}

/// Says that a package is fetched or that something long begins.
fn announce<T>(name: &str, work: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    process::step(name, work)
}
