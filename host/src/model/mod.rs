//! The nouns of the daemon, in CRI words: what a pod sandbox, a container and an image are to us.
//!
//! Owns the typed forms that the front translates into and the verbs work with. Must not know gRPC, Docker's client or
//! WebAssembly. Constructing these types validates nothing about the engine; it only rules out what can never be meant.

pub mod container;
pub mod engine;
pub mod ids;
pub mod image;
pub mod labels;
pub mod mount;
pub mod name;
pub mod resources;
pub mod sandbox;
pub mod security;
