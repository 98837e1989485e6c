//! One forwarded connection: a client's streams and a socket inside a pod, each direction ending by itself.
//!
//! What cannot be done is told in words on the error stream; its end without words means that all is well, and comes as soon
//! as the pod's side has sent everything: Go clients wait for it before they let go of their own side.

use std::io;
use std::sync::Arc;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::stream::{Gone, Incoming, Outgoing};
use crate::runtime::ports::StreamBackend;

const PIECE: usize = 32 * 1024;

/// One connection's streams.
pub(super) struct Pair {
    pub port: u16,
    pub incoming: Incoming,
    pub data: Outgoing,
    pub error: Outgoing,
}

/// Connects and copies until both directions have ended or either side is lost.
pub(super) async fn forward(backend: Arc<dyn StreamBackend>, sandbox: Arc<str>, pair: Pair) {
    let Pair {
        port,
        incoming,
        mut data,
        mut error,
    } = pair;
    let failed = match backend.dial(&sandbox, port).await {
        Ok(socket) => match copy(socket, incoming, &mut data, &mut error).await {
            Ok(()) | Err(Lost::Client) => None,
            Err(Lost::Pod(error)) => Some(error.to_string()),
        },
        Err(error) => {
            drop(incoming);
            Some(error.to_string())
        }
    };
    if let Some(reason) = failed {
        tracing::debug!(sandbox = %sandbox, port, %reason, "a port cannot be forwarded");
        let words = format!("error forwarding port {port} to pod sandbox {sandbox}: {reason}");
        let _ = error.send(words.into()).await; // an end without words may have been sent already
    }
    let _ = error.close().await;
    let _ = data.close().await;
}

/// Who broke it off.
enum Lost {
    Client,
    Pod(io::Error),
}

impl From<Gone> for Lost {
    fn from(_: Gone) -> Self {
        Self::Client
    }
}

async fn copy(
    socket: TcpStream,
    incoming: Incoming,
    data: &mut Outgoing,
    error: &mut Outgoing,
) -> Result<(), Lost> {
    let _ = socket.set_nodelay(true);
    let (from_pod, to_pod) = socket.into_split();
    let down = async {
        read_pod(from_pod, data).await?;
        error.finish().await?;
        Ok::<_, Lost>(())
    };
    tokio::try_join!(down, write_pod(incoming, to_pod))?;
    Ok(())
}

async fn read_pod(mut from: OwnedReadHalf, to: &mut Outgoing) -> Result<(), Lost> {
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(PIECE);
        if from.read_buf(&mut buffer).await.map_err(Lost::Pod)? == 0 {
            break;
        }
        to.send(buffer.split().freeze()).await?;
    }
    to.finish().await?;
    Ok(())
}

/// A pod that takes no more may still have things to say: only the client's going ends both directions.
async fn write_pod(mut from: Incoming, mut to: OwnedWriteHalf) -> Result<(), Lost> {
    while let Some(bytes) = from.next().await? {
        if to.write_all(&bytes).await.is_err() {
            return Ok(());
        }
    }
    let _ = to.shutdown().await; // fails when the pod has closed: nothing is lost
    Ok(())
}
