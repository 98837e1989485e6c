//! The verbs on fake ports, a module per RPC, and the contract suite on the fake engine.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[allow(
    unused_imports,
    reason = "the cases that need processes are for real engines"
)]
#[path = "../contract/mod.rs"]
mod contract;
#[path = "../fake/mod.rs"]
mod fake;

mod container_status;
mod contract_on_the_fake;
mod create_container;
mod create_container_again;
mod exec_sync;
mod images;
mod list_containers;
mod pod_sandbox_status;
mod random;
mod recover;
mod remove_container;
mod remove_pod_sandbox;
mod run_pod_sandbox;
mod run_pod_sandbox_again;
mod start_container;
mod stop_container;
mod stop_pod_sandbox;
mod streams;
mod update_container_resources;

use springline::error::{Error, Kind};

/// That a verb failed with this kind, and that its message begins with the field (or says this).
#[track_caller]
fn assert_refused<T: std::fmt::Debug>(
    case: &str,
    result: Result<T, Error>,
    kind: Kind,
    begins: &str,
) {
    let error = result.expect_err(case);
    assert_eq!(error.kind(), kind, "{case}: {error}");
    assert!(error.to_string().starts_with(begins), "{case}: {error}");
}
