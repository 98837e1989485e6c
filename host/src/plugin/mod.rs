//! The plugin host: WebAssembly components that shape the create body where the platform is concerned.
//!
//! The only place that knows wasmtime. In reading order: `manifest` (what a node says about a plugin), `bindings` (generated
//! from `wit/`), `engine` (one per process), `component` (bytes to something callable), `registry` (all plugins of the node),
//! `pipeline` (the chain, behind the verbs' port), `call` (one call, bounded in every way), `context` and `imports/` (what a
//! guest can do to the host), `limits`, `roots` (files). No client of the engine and no gRPC here.
//!
//! A plugin's failure is confined to its call: it becomes a [`PluginError`](crate::runtime::ports::PluginError) and
//! leaves no trace in the draft. A component that does not load is reported in status, and the daemon lives.

mod bindings;
mod call;
mod component;
mod context;
mod engine;
mod imports;
mod limits;
mod manifest;
mod pipeline;
mod registry;
mod roots;
#[cfg(test)]
mod tests;

pub use component::LoadError;
pub use manifest::{Limits, Manifest, ManifestError};
pub use pipeline::{PluginHost, PluginHostSettings};
pub use registry::{Artifact, PluginSource};
