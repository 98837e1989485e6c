//! The ports in memory, for tests of the verbs and of the front: no engine, no process, no network.
//!
//! [`FakeEngine`] is a small Docker with the real one's books and refusals; the contract suite (`tests/contract`) runs
//! against it as against real engines, so it cannot drift. The store is the real one in a temporary folder. Every call of
//! every port goes through one [`Script`], which logs it and may make it fail, lose its answer or hang.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    dead_code,
    unused_imports,
    reason = "a test fails by panicking, and not every test binary uses everything"
)]

mod books;
mod describe;
mod engine;
mod front;
mod image_store;
mod life;
mod logs;
mod network;
mod plugins;
mod requests;
mod script;
mod session;
mod store;
mod streams;
mod world;

pub use engine::{Exec, FakeEngine};
pub use front::{Front, descriptors, message, method};
pub use image_store::{RegistryImage, StoredImage};
pub use logs::FakeLogs;
pub use network::FakeNetwork;
pub use plugins::{Behaviour, FakePlugins};
pub use requests::{APP_IMAGE, Pod, container, document, pod};
pub use script::{Called, How, Script, When};
pub use store::ScriptedStore;
pub use streams::{Asked, FakeStreams};
pub use world::{World, WorldBuilder};
