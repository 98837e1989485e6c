//! The front: CRI v1 over gRPC.
//!
//! Owns everything of tonic and the generated types: requests become model types in [`from_proto`] (validated there), answers
//! are written in [`to_proto`], errors get their code in [`status`] and nowhere else. Must not know the engine. A call that
//! goes wrong is one call's error: see [`call`].

mod call;
mod document;
mod from_proto;
mod image_service;
pub mod listener;
mod runtime_service;
mod server;
mod status;
mod to_proto;

pub use server::serve;

/// CRI's message limit in bytes, both ways: what the kubelet and crictl send and take at the most.
const MESSAGE_LIMIT: usize = 16 * 1024 * 1024;
