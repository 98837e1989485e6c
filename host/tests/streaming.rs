//! The streaming server, a client of our own, and a backend that follows a script: every protocol from both ends.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, and its functions are no tests to the lint"
)]

#[path = "streaming/backend.rs"]
mod backend;
#[path = "streaming/client.rs"]
mod client;
#[path = "streaming/command.rs"]
mod command;
#[path = "streaming/forward.rs"]
mod forward;
#[path = "streaming/hostile.rs"]
mod hostile;
#[path = "streaming/websocket.rs"]
mod websocket;
