//! Embeds the shipped plugins' components, so that one file serves a node.
//!
//! `SPRINGLINE_COMPONENTS_DIR` names a folder with one `<plugin id>.wasm` per shipped plugin; `cargo xtask build` sets it.
//! Without it the list is empty and the daemon says so. A folder that is named but cannot serve fails the build: a release
//! must not lose its plugins in silence.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

const DIR: &str = "SPRINGLINE_COMPONENTS_DIR";

/// Writes `shipped_components.rs` into the build's own folder, and sets the cfg `springline_components` when there are any.
pub fn embed() {
    println!("cargo::rerun-if-env-changed={DIR}");
    println!("cargo::rustc-check-cfg=cfg(springline_components)");
    let components = match env::var_os(DIR) {
        Some(dir) if !dir.is_empty() => find(Path::new(&dir)),
        _ => Vec::new(),
    };
    if !components.is_empty() {
        println!("cargo::rustc-cfg=springline_components");
    }
    let out = env::var_os("OUT_DIR").map(PathBuf::from);
    let Some(out) = out else {
        fail("cargo gave no OUT_DIR");
    };
    if let Err(error) = fs::write(out.join("shipped_components.rs"), table(&components)) {
        fail(&format!("cannot write the table of components: {error}"));
    }
}

fn find(dir: &Path) -> Vec<(String, PathBuf)> {
    println!("cargo::rerun-if-changed={}", dir.display());
    let dir = match fs::canonicalize(dir) {
        Ok(dir) => dir,
        Err(error) => fail(&format!("{DIR}={}: {error}", dir.display())),
    };
    let entries = match fs::read_dir(&dir) {
        Ok(entries) => entries,
        Err(error) => fail(&format!("{DIR}={}: {error}", dir.display())),
    };
    let mut found: Vec<(String, PathBuf)> = entries
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "wasm"))
        .filter_map(|path| Some((path.file_stem()?.to_str()?.to_owned(), path)))
        .collect();
    found.sort();
    if found.is_empty() {
        fail(&format!("{DIR}={}: no *.wasm in it", dir.display()));
    }
    for (_, path) in &found {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    found
}

fn table(components: &[(String, PathBuf)]) -> String {
    let mut out = String::from("&[\n");
    for (id, path) in components {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "    ({id:?}, include_bytes!({path:?})),");
    }
    out.push_str("]\n");
    out
}

fn fail(message: &str) -> ! {
    println!("cargo::error={message}");
    std::process::exit(1)
}
