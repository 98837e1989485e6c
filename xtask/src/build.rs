//! Building the daemon with the shipped plugins' components inside it.

use std::{path::PathBuf, process::Command};

use crate::{
    failure::Outcome,
    paths, plugins,
    process::{run, step},
};

/// Builds plugins and daemon; returns the daemon's binary and says where it is.
pub(crate) fn build(debug: bool) -> Outcome<PathBuf> {
    let target = paths::target()?;
    let components = target.join("plugins");
    plugins::build_all(&paths::repository(), &components)?;
    let (profile, folder) = if debug {
        ("dev", "debug")
    } else {
        ("release", "release")
    };
    step(&format!("the daemon ({folder} build)"), || {
        run(Command::new(paths::cargo())
            .current_dir(paths::repository())
            .args([
                "build",
                "--locked",
                "--package",
                "springline",
                "--profile",
                profile,
            ])
            .env("SPRINGLINE_COMPONENTS_DIR", &components))
    })?;
    let binary = target.join(folder).join("springline");
    println!("    {}", binary.display());
    Ok(binary)
}
