//! Building the daemon with the shipped plugins' components inside it.

use std::{path::PathBuf, process::Command};

use crate::{
    failure::Outcome,
    paths,
    process::{run, step},
};

/// Builds plugins and daemon; returns the daemon's binary and says where it is.
pub(crate) fn build(debug: bool) -> Outcome<PathBuf> {
    let profile = if debug { "dev" } else { "release" };
    step(&format!("building springline ({profile})"), || {
        run(Command::new(paths::cargo())
            .current_dir(paths::repository())
            .args([
                "build",
                "--locked",
                "--package",
                "springline",
                "--profile",
                profile,
            ]))
    })?;
    let folder = if debug { "debug" } else { "release" };
    let binary = paths::target()?.join(folder).join("springline");
    println!("    the daemon: {}", binary.display());
    Ok(binary)
}
