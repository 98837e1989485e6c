//! Where things live: the repository, the target folder, and the caches
//! outside the repository that a fresh clone finds again.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::failure::{Context, Outcome};

/// Makes cargo build the chores anew for each clone that shares a target folder, see `.cargo/config.toml`.
const _CLONE: Option<&str> = option_env!("SPRINGLINE_CLONE");

/// The root of the repository that the chore was called in: cargo says it, else the current folder is in it.
pub(crate) fn repository() -> PathBuf {
    // Not `env!`: the program may have been built in another clone.
    let told = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let here = env::current_dir().ok();
    [told, here]
        .iter()
        .flatten()
        .find_map(|folder| root_above(folder))
        .unwrap_or_else(|| PathBuf::from("."))
}

/// The folder at or above this one that holds these chores.
fn root_above(folder: &Path) -> Option<PathBuf> {
    let is_root = |folder: &&Path| folder.join("xtask/Cargo.toml").is_file();
    folder.ancestors().find(is_root).map(PathBuf::from)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_found_from_any_folder_in_it() {
        let clone = env::temp_dir().join(format!("xtask-paths-{}", std::process::id()));
        let deep = clone.join("host/src");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::create_dir_all(clone.join("xtask")).unwrap();
        std::fs::write(clone.join("xtask/Cargo.toml"), "").unwrap();
        let found = [&clone, &deep, &clone.join("xtask")].map(|folder| root_above(folder));
        std::fs::remove_dir_all(&clone).unwrap();
        assert_eq!(found, [(); 3].map(|()| Some(clone.clone())));
        assert_eq!(root_above(Path::new("/")), None);
    }
}
