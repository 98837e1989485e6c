//! The pure part of the host's SPDY module, compiled alone: a fuzz build of the whole host would take many minutes for code
//! that these targets do not touch.

#![allow(
    dead_code,
    unused_imports,
    reason = "parts of the modules serve the host's live connections"
)]

#[path = "../../host/src/streaming/spdy/decode.rs"]
mod decode;
#[path = "../../host/src/streaming/spdy/encode.rs"]
mod encode;
#[path = "../../host/src/streaming/spdy/frame.rs"]
mod frame;
#[path = "../../host/src/streaming/spdy/headers.rs"]
mod headers;

pub use decode::{Decoded, Decoder};
pub use encode::Encoder;
pub use frame::Frame;
pub use headers::MAX_INFLATED;
