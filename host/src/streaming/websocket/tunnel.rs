//! A byte stream in the binary messages of a WebSocket, for SPDY to run on.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::{Sink, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::streaming::socket::Socket;
use crate::streaming::stream::PIECE;

/// The byte stream.
pub(crate) struct Tunnel {
    websocket: WebSocketStream<Socket>,
    /// What of a message has not been read yet.
    ahead: Bytes,
    closing: bool,
}

impl Tunnel {
    pub fn new(websocket: WebSocketStream<Socket>) -> Self {
        Self {
            websocket,
            ahead: Bytes::new(),
            closing: false,
        }
    }
}

impl AsyncRead for Tunnel {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.ahead.is_empty() {
            self.ahead = match ready!(Pin::new(&mut self.websocket).poll_next(context)) {
                Some(Ok(Message::Binary(bytes))) => bytes,
                Some(Ok(Message::Text(_))) => {
                    let text = "text where SPDY is due";
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, text)));
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => continue,
                Some(Ok(Message::Close(_)) | Err(Error::ConnectionClosed)) | None => {
                    return Poll::Ready(Ok(()));
                }
                Some(Err(error)) => return Poll::Ready(Err(io_error(error))),
            };
        }
        let length = self.ahead.len().min(buffer.remaining());
        buffer.put_slice(&self.ahead.split_to(length));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Tunnel {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[io::IoSlice::new(bytes)])
    }

    /// One message for all the slices: a frame's head and its bytes travel together.
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(Pin::new(&mut self.websocket).poll_ready(context)).map_err(io_error)?;
        let mut message = Vec::new();
        for slice in slices {
            let room = (PIECE + 64).saturating_sub(message.len());
            message.extend_from_slice(slice.get(..slice.len().min(room)).unwrap_or_default());
        }
        let length = message.len();
        let message = Message::Binary(message.into());
        Pin::new(&mut self.websocket)
            .start_send(message)
            .map_err(io_error)?;
        Poll::Ready(Ok(length))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.websocket)
            .poll_flush(context)
            .map_err(io_error)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.closing {
            ready!(Pin::new(&mut self.websocket).poll_ready(context)).map_err(io_error)?;
            let normal = CloseFrame {
                code: CloseCode::Normal,
                reason: "".into(),
            };
            Pin::new(&mut self.websocket)
                .start_send(Message::Close(Some(normal)))
                .map_err(io_error)?;
            self.closing = true;
        }
        Pin::new(&mut self.websocket)
            .poll_flush(context)
            .map_err(io_error)
    }
}

fn io_error(error: Error) -> io::Error {
    match error {
        Error::Io(error) => error,
        other => io::Error::other(other),
    }
}
