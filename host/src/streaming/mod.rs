//! The streaming server: exec, attach and port-forward over SPDY/3.1 and WebSocket.
//!
//! It turns requests into one-time URLs ([`StreamUrls`](crate::runtime::ports::StreamUrls)) and asks a
//! [`StreamBackend`](crate::runtime::ports::StreamBackend) when a client comes with one; it knows neither containers nor the
//! engine. In the order of a client's life:
//!
//! - `server`: listens, gives URLs (`tokens`), holds `newcomers` to their `limits`; `tls` and `socket` below HTTP;
//! - `upgrade`: the HTTP request, and the `protocol` that both sides speak;
//! - `session`: an upgraded connection and its streams, over [`spdy`] or `websocket`, which both carry the streams of `stream`;
//! - `command` (with `resize` and `status`) and `forward`: what is copied from where to where.
//!
//! A bad client costs its own connection and no more than its limits.

mod command;
mod forward;
mod limits;
mod newcomers;
mod protocol;
mod resize;
mod server;
mod session;
mod socket;
pub mod spdy;
mod status;
mod stream;
mod tls;
mod tokens;
mod upgrade;
mod websocket;

pub use limits::Limits;
pub use server::{StreamingError, StreamingServer, StreamingSettings};
pub use tls::{TlsError, TlsSettings};
