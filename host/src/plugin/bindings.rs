//! The code that wasmtime generates from `wit/`, and nothing else. Only this folder meets it.
//!
//! Imports may trap (a plugin over its quota is stopped); only `files.read` waits for something. Exports are one tiny world
//! each, since a world has no optional exports: what type-checks is a hook that the component has.

#![allow(
    missing_docs,
    reason = "generated; the WIT files carry the documentation"
)]

/// What a plugin may import.
pub(super) mod host {
    wasmtime::component::bindgen!({
        path: "../wit/0.1",
        world: "host",
        imports: {
            "springline:plugin/files.read": async | trappable,
            default: trappable,
        },
        require_store_data_send: true,
    });
}

/// The hook at RunPodSandbox.
pub(super) mod sandbox {
    wasmtime::component::bindgen!({
        path: "../wit/0.1",
        world: "probe-sandbox",
        exports: { default: async },
        with: { "springline:plugin/types": super::host::springline::plugin::types },
        require_store_data_send: true,
    });
}

/// The hook at CreateContainer.
pub(super) mod container {
    wasmtime::component::bindgen!({
        path: "../wit/0.1",
        world: "probe-container",
        exports: { default: async },
        with: { "springline:plugin/types": super::host::springline::plugin::types },
        require_store_data_send: true,
    });
}

pub(super) use container::{ProbeContainer, ProbeContainerPre};
pub(super) use host::Host_ as Host;
pub(super) use host::springline::plugin::{draft, files, log, node, request, types};
pub(super) use sandbox::{ProbeSandbox, ProbeSandboxPre};
