//! What the end-to-end tests stand on: the real daemon on a temporary socket, a CRI client, the engine itself for the truth.
//!
//! Reading order: [`environment`] (what `cargo xtask test` sets), [`scene`] (what one test holds; begin here), [`node`] (the
//! daemon that tests share, or one of their own), [`daemon`], [`cri`], [`configs`], [`engine`], [`proxy`], [`streams`] and
//! [`crictl`] (clients of exec, attach and port-forward), [`expect`].
//!
//! Everything here is synchronous and fails by panicking: it is test code. It must know nothing of the daemon's inside.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking and talks on standard output"
)]

pub mod configs;
pub mod cri;
pub mod crictl;
pub mod daemon;
pub mod engine;
pub mod environment;
pub mod expect;
pub mod node;
pub mod proxy;
pub mod scene;
pub mod streams;

pub use expect::{eventually, refused};
pub use scene::{Pod, Scene};

/// Makes cargo build this anew for each clone that shares a target folder, see `.cargo/config.toml`.
const _CLONE: Option<&str> = option_env!("SPRINGLINE_CLONE");
