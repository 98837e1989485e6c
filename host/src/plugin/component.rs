//! From a component's bytes to something that can be called: compile, check its imports, link, find its hooks.
//!
//! All or nothing: a component that asks for what this host has not, or that this node does not grant, is refused here with
//! everything that is missing, before any of it runs.

use sha2::{Digest, Sha256};
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, HasSelf, InstancePre, Linker};

use super::bindings::types::Fault;
use super::bindings::{Host, ProbeContainerPre, ProbeSandboxPre};
use super::context::HookContext;
use super::engine::WasmEngine;
use super::manifest::{Manifest, ManifestError};
use crate::runtime::ports::Hook;

/// Largest component that is compiled.
const MAX_COMPONENT: usize = 64 * 1024 * 1024;
/// Bytes of a page of wasm memory; other sizes are switched off.
const WASM_PAGE: u64 = 64 * 1024;
/// The contract's package.
const PACKAGE: &str = "springline:plugin/";
/// The track that this host serves; any `0.1.x` is the same track.
const TRACK: &str = "0.1";
/// Interfaces that this host offers.
const OFFERED: [&str; 6] = ["types", "request", "draft", "files", "node", "log"];

/// Why a component does not load.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// Its file cannot be read.
    #[error("{path}: {reason}")]
    Unreadable {
        /// Its path.
        path: String,
        /// The system's words.
        reason: String,
    },
    /// Too much to compile.
    #[error("the component has {0} bytes; at most {MAX_COMPONENT} are compiled")]
    TooLarge(usize),
    /// The node says something impossible about it.
    #[error("its manifest: {0}")]
    Manifest(#[from] ManifestError),
    /// Not a component, damaged, or one that needs more than this host runs.
    #[error("not a component that this host can run: {0}")]
    Invalid(String),
    /// Two of one name cannot own values.
    #[error("another plugin of this node has the id {0}")]
    Duplicate(String),
    /// It asks for what this host has not.
    #[error("it imports what this host does not offer: {}", .0.join("; "))]
    Imports(Vec<String>),
    /// It asks for what this node does not give it.
    #[error("it imports what its manifest does not grant (imports): {}", .0.join(", "))]
    NotGranted(Vec<String>),
    /// It needs more memory than it may have.
    #[error("it starts with {needs} bytes of memory and may have {limit}")]
    Memory {
        /// What it starts with.
        needs: u64,
        /// What it may have.
        limit: usize,
    },
    /// A hook is there under the right name with another shape.
    #[error("its {hook} hook does not have the contract's shape: {reason}")]
    HookShape {
        /// Which.
        hook: &'static str,
        /// What differs.
        reason: String,
    },
    /// Nothing to call.
    #[error(
        "it exports no hook that this host knows (springline:plugin/sandbox@{TRACK}, springline:plugin/container@{TRACK})"
    )]
    NoHook,
    /// A defect of ours or of the compiler's.
    #[error("compiling it failed: {0}")]
    Compiler(String),
}

/// A component, ready to be called.
pub(super) struct Loaded {
    sandbox: Option<ProbeSandboxPre<HookContext>>,
    container: Option<ProbeContainerPre<HookContext>>,
}

impl Loaded {
    /// The RunPodSandbox hook.
    pub(super) fn sandbox(&self) -> Option<&ProbeSandboxPre<HookContext>> {
        self.sandbox.as_ref()
    }

    /// The CreateContainer hook.
    pub(super) fn container(&self) -> Option<&ProbeContainerPre<HookContext>> {
        self.container.as_ref()
    }

    /// Whether it has the hook.
    pub(super) fn has(&self, hook: Hook) -> bool {
        match hook {
            Hook::Sandbox => self.sandbox.is_some(),
            Hook::Container => self.container.is_some(),
        }
    }
}

/// SHA-256 of a component's bytes, hexadecimal.
pub(super) fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Makes a component callable. Takes the time of a compilation; not for an async thread.
pub(super) fn load(
    engine: &WasmEngine,
    manifest: &Manifest,
    bytes: &[u8],
) -> Result<Loaded, LoadError> {
    manifest.check()?;
    if bytes.len() > MAX_COMPONENT {
        return Err(LoadError::TooLarge(bytes.len()));
    }
    let component = Component::from_binary(engine.wasmtime(), bytes)
        .map_err(|e| LoadError::Invalid(format!("{e:#}")))?;
    check_imports(engine, manifest, &component)?;
    check_memory(manifest, &component)?;

    let mut linker = Linker::new(engine.wasmtime());
    Host::add_to_linker::<HookContext, HasSelf<HookContext>>(&mut linker, |context| context)
        .map_err(|e| LoadError::Compiler(format!("{e:#}")))?;
    // What is left to refuse here is a function that a later version of the track has and this host lacks; wasmtime names it.
    let pre = linker
        .instantiate_pre(&component)
        .map_err(|e| LoadError::Imports(vec![format!("{e:#}")]))?;

    let loaded = Loaded {
        sandbox: probe(engine, &pre, Hook::Sandbox, ProbeSandboxPre::new)?,
        container: probe(engine, &pre, Hook::Container, ProbeContainerPre::new)?,
    };
    if loaded.sandbox.is_none() && loaded.container.is_none() {
        return Err(LoadError::NoHook);
    }
    Ok(loaded)
}

fn check_imports(
    engine: &WasmEngine,
    manifest: &Manifest,
    component: &Component,
) -> Result<(), LoadError> {
    let mut missing = Vec::new();
    let mut ungranted = Vec::new();
    for (name, item) in component.component_type().imports(engine.wasmtime()) {
        let interface = match interface_of(name) {
            Ok(interface) if matches!(item.ty, ComponentItem::ComponentInstance(_)) => interface,
            Ok(_) => {
                missing.push(format!("{name} (not an interface)"));
                continue;
            }
            Err(why) => {
                missing.push(format!("{name} ({why})"));
                continue;
            }
        };
        if !OFFERED.contains(&interface) {
            missing.push(format!("{name} (not in this host's track {TRACK})"));
        } else if !manifest.may_import(interface) {
            ungranted.push(interface.to_owned());
        }
    }
    if !missing.is_empty() {
        return Err(LoadError::Imports(missing));
    }
    if !ungranted.is_empty() {
        return Err(LoadError::NotGranted(ungranted));
    }
    Ok(())
}

/// The interface that an import or export name means, when it is of our contract and track.
fn interface_of(name: &str) -> Result<&str, &'static str> {
    let Some(rest) = name.strip_prefix(PACKAGE) else {
        return Err(if name.starts_with("wasi:") {
            "there is no WASI for plugins"
        } else {
            "unknown"
        });
    };
    let Some((interface, version)) = rest.split_once('@') else {
        return Err("without a version");
    };
    let same_track = version
        .strip_prefix(TRACK)
        .is_some_and(|patch| patch.starts_with('.'));
    if !same_track {
        return Err("another track of the contract; this host serves 0.1");
    }
    Ok(interface)
}

fn check_memory(manifest: &Manifest, component: &Component) -> Result<(), LoadError> {
    let pages = component
        .resources_required()
        .and_then(|required| required.max_initial_memory_size)
        .unwrap_or(0);
    let needs = pages.saturating_mul(WASM_PAGE);
    let limit = manifest.limits.memory;
    if needs > limit as u64 {
        return Err(LoadError::Memory { needs, limit });
    }
    Ok(())
}

/// `None` when the hook is not there at all; an error when it is there with another shape.
fn probe<P>(
    engine: &WasmEngine,
    pre: &InstancePre<HookContext>,
    hook: Hook,
    new: impl FnOnce(InstancePre<HookContext>) -> wasmtime::Result<P>,
) -> Result<Option<P>, LoadError> {
    let component = pre.component().component_type();
    let exported = component
        .exports(engine.wasmtime())
        .find(|(name, _)| interface_of(name) == Ok(hook.as_str()));
    let Some((_, item)) = exported else {
        return Ok(None);
    };
    let misshapen = |reason: String| LoadError::HookShape {
        hook: hook.as_str(),
        reason,
    };
    check_shape(engine, pre, &item.ty).map_err(misshapen)?;
    new(pre.clone())
        .map(Some)
        .map_err(|e| misshapen(format!("{e:#}")))
}

/// Whether it is an interface with `configure: func() -> result<_, fault>`. The generated code looks at names only.
fn check_shape(
    engine: &WasmEngine,
    pre: &InstancePre<HookContext>,
    item: &ComponentItem,
) -> Result<(), String> {
    let ComponentItem::ComponentInstance(interface) = item else {
        return Err("it is not an interface".to_owned());
    };
    match interface.get_export(engine.wasmtime(), "configure") {
        Some(found) => match found.ty {
            ComponentItem::ComponentFunc(function) => function
                .typecheck::<(), (Result<(), Fault>,)>(&pre.instance_type())
                .map_err(|e| format!("configure: {e:#}")),
            _ => Err("configure is not a function".to_owned()),
        },
        None => Err("it has no function configure".to_owned()),
    }
}
