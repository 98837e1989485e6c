//! End to end: the daemon as it is shipped, on a real engine, seen through the CRI and through the engine.
//!
//! One file per topic. Tests are ignored unless asked for (`--include-ignored`), since they need an engine; `cargo xtask
//! test` runs them on several. They run beside each other: each holds a [`e2e::Scene`] with names of its own. One that
//! restarts its daemon has the engine to itself (`Scene::alone`).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking and talks on standard output"
)]

mod containers;
mod exec_sync;
mod images;
mod logs;
mod pods;
mod process;
mod refusals;
mod resources;
mod restart;
mod rpcs;
mod security;
mod streaming;
