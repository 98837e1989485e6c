//! Where things live: the repository, the target folder, and the caches
//! outside the repository that a fresh clone finds again.

use std::{env, path::PathBuf, process::Command};

use serde_json::Value;

use crate::failure::{Context, Outcome};

/// The root of the repository.
pub(crate) fn repository() -> PathBuf {
    let crate_folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    crate_folder
        .parent()
        .map_or_else(|| crate_folder.clone(), PathBuf::from)
}

/// Cargo's target folder, as cargo itself sees it (CARGO_TARGET_DIR, config files, default).
pub(crate) fn target() -> Outcome<PathBuf> {
    let output = Command::new(cargo())
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(repository())
        .output()
        .context("running cargo metadata")?;
    let metadata: Value =
        serde_json::from_slice(&output.stdout).context("reading cargo metadata")?;
    metadata
        .get("target_directory")
        .and_then(Value::as_str)
        .map(PathBuf::from)
        .context("cargo metadata names no target folder")
}

/// The cargo that runs this chore.
pub(crate) fn cargo() -> PathBuf {
    env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from)
}

/// Downloads and tools worth keeping between clones: `SPRINGLINE_CACHE`, else `~/.cache/springline`.
pub(crate) fn cache() -> Outcome<PathBuf> {
    if let Some(folder) = env::var_os("SPRINGLINE_CACHE") {
        return Ok(PathBuf::from(folder));
    }
    let base = env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))
        .context("neither HOME nor XDG_CACHE_HOME is set: set SPRINGLINE_CACHE to a folder")?;
    Ok(base.join("springline"))
}
