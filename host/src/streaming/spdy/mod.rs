//! SPDY/3.1 as far as Kubernetes clients use it, a part that stands on its own.
//!
//! `frame` are the frames, `headers` their compressed header blocks, `decode` and `encode` the two directions of the wire (pure,
//! no I/O), `flow` the windows, `connection` a live connection on any byte stream. No crate that is kept alive does this.
//!
//! It must not know what streams are used for. A broken peer costs its connection, a broken header block its stream; nothing
//! that a peer sends makes memory grow: control frames and inflated headers are bounded, data is passed on in pieces of any
//! frame, streams and what they hold are bounded, and a peer that is not read from is not read for.
//!
//! Flow control: the peers of every Kubernetes version are built on one Go library that neither sends WINDOW_UPDATE nor
//! looks at it. See [`flow`] for what is made of that.

mod connection;
mod decode;
mod encode;
pub mod flow;
mod frame;
mod headers;
mod state;
mod writer;

pub use connection::{Connection, HangUp, NewStream, serve};
pub use decode::{Decoded, Decoder};
pub use encode::{Encoder, data_head};
pub use frame::{Frame, HeaderList, RstStatus, SpdyError};
pub use headers::{MAX_INFLATED, dictionary};

#[cfg(test)]
mod tests;
