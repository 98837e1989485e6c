//! Pod networks; each is a [`crate::runtime::ports::PodNetwork`]. And the way into them: [`NamespaceDialer`].
//!
//! Owns how a sandbox comes to its addresses: so far through Docker's own bridge ([`DockerBridge`]), which the engine sets up by
//! itself when it starts the sandbox. Must not know the engine's client. Fails with a sentence that says what to do.

mod dialer;
mod docker_bridge;

pub use dialer::NamespaceDialer;
pub use docker_bridge::DockerBridge;
