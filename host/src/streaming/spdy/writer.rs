//! The one writer of a connection: control frames first, then data in the order of the queue.

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use super::encode::{Encoder, data_head};
use super::frame::{Frame, RstStatus, SpdyError};
use super::state::Shared;
use crate::streaming::stream::Outbound;

/// What a connection's writer takes from.
pub(super) struct Queues {
    pub controls: mpsc::UnboundedReceiver<Frame>,
    pub data: mpsc::Receiver<Outbound>,
}

/// Writes until the end of the queue is asked for; all before it is flushed then. Gives the byte stream back.
pub(super) async fn write<W>(mut io: W, mut queues: Queues, shared: &Shared) -> Result<W, SpdyError>
where
    W: AsyncWrite + Unpin + Send,
{
    let mut encoder = Encoder::new()?;
    let mut frames = BytesMut::new();
    loop {
        tokio::select! {
            biased;
            Some(first) = queues.controls.recv() => {
                encoder.encode(&first, &mut frames)?;
                shared.control_written();
                while let Ok(next) = queues.controls.try_recv() {
                    encoder.encode(&next, &mut frames)?;
                    shared.control_written();
                }
                io.write_all_buf(&mut frames).await?;
            }
            item = queues.data.recv() => match item {
                Some(Outbound::Data { bytes, fin: false, .. }) if bytes.is_empty() => {}
                Some(Outbound::Data { stream, bytes, fin }) => {
                    let head = data_head(stream, bytes.len(), fin)
                        .ok_or(SpdyError::TooLong(bytes.len()))?;
                    io.write_all_buf(&mut head.as_slice().chain(bytes)).await?;
                }
                Some(Outbound::Reset { stream }) => {
                    let status = RstStatus::Cancel as u32;
                    encoder.encode(&Frame::RstStream { stream, status }, &mut frames)?;
                    io.write_all_buf(&mut frames).await?;
                }
                Some(Outbound::End) | None => {
                    io.flush().await?;
                    return Ok(io);
                }
            },
        }
        shared.activity.seen();
        if queues.data.is_empty() && queues.controls.is_empty() {
            io.flush().await?;
        }
    }
}
