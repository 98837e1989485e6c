//! The Kubernetes Container Runtime Interface, version 1, as Springline declares it.
//!
//! Owns the wire contract and nothing else: the proto files under `proto/`, the message types, clients and
//! servers that `build.rs` generates from them, and the compiled descriptor. It must not know what any
//! message leads to: no validation, no defaults, no conversion; those are in the host crate's `cri` module.
//!
//! The declaration is our own text. That it still is the protocol every kubelet speaks is held by
//! `tests/golden.rs` (each name, number and type against a table) and `tests/wire.rs` (bytes).
//!
//! Nothing here fails at run time, other than decoding bytes that are no message.

mod redact;

/// The protocol's packages, as modules.
pub mod runtime {
    /// Package `runtime.v1`: `RuntimeService` and `ImageService` with their messages.
    ///
    /// Enum fields are plain `i32`, as everywhere in prost: a number that this version does not know arrives
    /// as it was sent. Maps are ordered.
    #[allow(
        missing_docs,
        reason = "a signal or a protocol says by its name what it is; all else has a comment in the proto files"
    )]
    pub mod v1 {
        tonic::include_proto!("runtime.v1");
    }
}

/// The encoded `FileDescriptorSet` of all packages, without comments; for reflection and for the golden test.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptor.bin"));
