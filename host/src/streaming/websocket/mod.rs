//! WebSocket: the channels of `channel.k8s.io` in its versions, and the tunnel that carries SPDY.
//!
//! The WebSocket protocol itself is the crate tungstenite's. A message that is too large or makes no sense ends the connection.

mod channels;
mod tunnel;

use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

pub(super) use channels::{Direction, Halves, serve};
pub(super) use tunnel::Tunnel;

use super::socket::Socket;

/// The longest message, and frame, that is taken from a client: it is held in memory as a whole.
const MAX_MESSAGE: usize = 4 * 1024 * 1024;

/// WebSocket on a connection whose handshake is done.
pub(super) async fn on(socket: Socket) -> WebSocketStream<Socket> {
    let config = WebSocketConfig::default()
        .max_message_size(Some(MAX_MESSAGE))
        .max_frame_size(Some(MAX_MESSAGE));
    WebSocketStream::from_raw_socket(socket, Role::Server, Some(config)).await
}
