//! The front as the kubelet meets it: the real gRPC server on a socket, over the fake engine.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[path = "../fake/mod.rs"]
mod fake;

mod answers;
mod deadlines;
mod limits;
mod missing;
mod node;
mod refused;
mod services;
