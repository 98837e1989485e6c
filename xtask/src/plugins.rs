//! Builds WebAssembly plugins: guest crates in, component files out.
//!
//! Owns the way from a crate to a component: which toolchain ([`toolchain`]), cargo, and the wrapping of the core module ([`component`]). It knows
//! nothing of what a plugin does, nor who embeds or loads the files. It fails with a text that says what to do.
//!
//! Guests have a target folder of their own (`wasm` in cargo's), shared by shipped plugins and fixtures; what is up to date costs
//! nothing, and a component that has not changed is not written again, so that what embeds it is not rebuilt either.

mod component;
mod toolchain;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{
    failure::{Context, Failure, Outcome},
    paths, process,
};
use component::Imports;
use toolchain::Toolchain;

/// One component file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BuiltComponent {
    /// The guest crate's name, which is the plugin's id; the file is `<name>.wasm`.
    pub(crate) name: String,
    /// Where the file is.
    pub(crate) path: PathBuf,
    /// Its size.
    pub(crate) bytes: usize,
    /// Its digest, 64 hexadecimal digits.
    pub(crate) sha256: String,
}

/// Builds the shipped plugins, every crate under `plugins/`, into `<out_dir>/<name>.wasm`, sorted by name. `out_dir` belongs to this
/// function: component files of plugins that are no more are removed from it.
pub(crate) fn build_all(repo_root: &Path, out_dir: &Path) -> Outcome<Vec<BuiltComponent>> {
    build(repo_root, "plugins", out_dir, Imports::ContractOnly)
}

/// Builds the hostile plugins of the tests, every crate under `tests/fixtures/plugins/`, in the same way. They may import what no host offers.
pub(crate) fn build_fixtures(repo_root: &Path, out_dir: &Path) -> Outcome<Vec<BuiltComponent>> {
    build(repo_root, "tests/fixtures/plugins", out_dir, Imports::Any)
}

fn build(
    repo_root: &Path,
    folder: &str,
    out_dir: &Path,
    imports: Imports,
) -> Outcome<Vec<BuiltComponent>> {
    let names = crates(&repo_root.join(folder))?;
    let toolchain = Toolchain::find_or_install(repo_root)?;
    let modules = process::step(
        &format!("building the plugins in {folder}/ for WebAssembly"),
        || {
            println!("    with {toolchain}");
            compile(repo_root, &names, &toolchain)
        },
    )?;
    fs::create_dir_all(out_dir).context(format!("making {}", out_dir.display()))?;
    let mut built = Vec::new();
    for name in names {
        let module = modules.get(&name).context(format!(
            "{name} made no WebAssembly module: its Cargo.toml needs `crate-type = [\"cdylib\", \"lib\"]`"
        ))?;
        let bytes = fs::read(module).context(format!("reading {}", module.display()))?;
        let component =
            component::wrap(&bytes, imports).context(format!("making a component of {name}"))?;
        built.push(store(name, &component, out_dir)?);
    }
    remove_stale(out_dir, &built)?;
    Ok(built)
}

/// The names of the crates in a folder, sorted.
fn crates(folder: &Path) -> Outcome<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).context(format!("listing {}", folder.display()))? {
        let manifest = entry
            .context(format!("listing {}", folder.display()))?
            .path()
            .join("Cargo.toml");
        if !manifest.exists() {
            continue;
        }
        let text =
            fs::read_to_string(&manifest).context(format!("reading {}", manifest.display()))?;
        let table: toml::Table = text
            .parse()
            .context(format!("reading {}", manifest.display()))?;
        let name = table
            .get("package")
            .and_then(|package| package.get("name"))
            .and_then(toml::Value::as_str)
            .context(format!("{} has no package.name", manifest.display()))?;
        names.push(name.to_owned());
    }
    if names.is_empty() {
        return Err(Failure::new(format!(
            "there is no crate in {}",
            folder.display()
        )));
    }
    names.sort();
    Ok(names)
}

/// Compiles the crates and returns their core modules by crate name.
fn compile(
    repo_root: &Path,
    names: &[String],
    toolchain: &Toolchain,
) -> Outcome<BTreeMap<String, PathBuf>> {
    let mut command = toolchain.cargo(repo_root)?;
    command
        .args(["--locked", "--profile", "plugin", "--lib"])
        .arg("--message-format=json-render-diagnostics")
        .env("CARGO_TARGET_DIR", paths::target()?.join("wasm"));
    for name in names {
        command.args(["--package", name]);
    }
    Ok(modules(&process::capture(&mut command)?))
}

/// Finds the modules in cargo's messages, one JSON object per line.
fn modules(messages: &str) -> BTreeMap<String, PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| {
            message.get("reason").and_then(Value::as_str) == Some("compiler-artifact")
        })
        .filter_map(|message| {
            let name = message.pointer("/target/name")?.as_str()?.replace('_', "-");
            let file = message
                .get("filenames")?
                .as_array()?
                .iter()
                .filter_map(Value::as_str)
                .find(|file| file.ends_with(".wasm"))?;
            Some((name, PathBuf::from(file)))
        })
        .collect()
}

/// Puts a component in place, unless it is there already, and says what it is.
fn store(name: String, component: &[u8], out_dir: &Path) -> Outcome<BuiltComponent> {
    let path = out_dir.join(format!("{name}.wasm"));
    if fs::read(&path).ok().as_deref() != Some(component) {
        let partial = out_dir.join(format!("{name}.wasm.partial"));
        fs::write(&partial, component).context(format!("writing {}", partial.display()))?;
        fs::rename(&partial, &path).context(format!("writing {}", path.display()))?;
    }
    let sha256: String = Sha256::digest(component)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    println!(
        "    {name}.wasm  {} bytes  sha256:{sha256}",
        component.len()
    );
    Ok(BuiltComponent {
        name,
        path,
        bytes: component.len(),
        sha256,
    })
}

fn remove_stale(out_dir: &Path, built: &[BuiltComponent]) -> Outcome {
    for entry in fs::read_dir(out_dir).context(format!("listing {}", out_dir.display()))? {
        let path = entry
            .context(format!("listing {}", out_dir.display()))?
            .path();
        let component = path
            .extension()
            .is_some_and(|extension| extension == "wasm");
        if component && !built.iter().any(|kept| kept.path == path) {
            fs::remove_file(&path).context(format!("removing {}", path.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_come_from_cargos_messages() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","target":{"name":"serde"},"filenames":["/t/libserde.rlib"]}"#,
            "\n",
            r#"{"reason":"compiler-artifact","target":{"name":"linux_security"},"filenames":["/t/liblinux_security.rlib","/t/linux_security.wasm"]}"#,
            "\n",
            r#"{"reason":"build-finished","success":true}"#,
            "\nno json\n"
        );
        assert_eq!(
            modules(messages),
            BTreeMap::from([(
                "linux-security".to_owned(),
                PathBuf::from("/t/linux_security.wasm")
            )])
        );
    }
}
