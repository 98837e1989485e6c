//! The front: CRI v1 over gRPC.

pub mod listener;
