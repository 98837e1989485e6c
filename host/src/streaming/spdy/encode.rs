//! Frames to the wire: pure.

use bytes::{BufMut, BytesMut};

use super::frame::{FLAG_FIN, FLAG_UNIDIRECTIONAL, Frame, HeaderList, SpdyError, VERSION, kind};
use super::headers::{Deflater, serialize};

/// The longest payload that a frame's 24 bits of length can tell.
const MAX_LENGTH: usize = 0xff_ffff;

/// One direction of a connection, written.
pub struct Encoder {
    deflater: Deflater,
}

impl Encoder {
    /// A new one, its compression primed.
    ///
    /// # Errors
    /// Never with a working zlib.
    pub fn new() -> Result<Self, SpdyError> {
        Ok(Self {
            deflater: Deflater::new()?,
        })
    }

    /// Appends a frame to `out`.
    ///
    /// # Errors
    /// When the payload is longer than a frame can be.
    pub fn encode(&mut self, frame: &Frame, out: &mut BytesMut) -> Result<(), SpdyError> {
        let mut payload = BytesMut::new();
        let flag = |fin: bool| if fin { FLAG_FIN } else { 0 };
        let (kind, flags) = match frame {
            Frame::Data { stream, bytes, fin } => {
                let head =
                    data_head(*stream, bytes.len(), *fin).ok_or(SpdyError::TooLong(bytes.len()))?;
                out.put_slice(&head);
                out.put_slice(bytes);
                return Ok(());
            }
            Frame::SynStream {
                stream,
                fin,
                unidirectional,
                headers,
            } => {
                payload.put_u32(*stream);
                payload.put_slice(&[0; 6]); // belongs to no stream, priority 0, no slot
                self.put_headers(headers, &mut payload)?;
                let one_way = if *unidirectional {
                    FLAG_UNIDIRECTIONAL
                } else {
                    0
                };
                (kind::SYN_STREAM, flag(*fin) | one_way)
            }
            Frame::SynReply {
                stream,
                fin,
                headers,
            } => {
                payload.put_u32(*stream);
                self.put_headers(headers, &mut payload)?;
                (kind::SYN_REPLY, flag(*fin))
            }
            Frame::Headers {
                stream,
                fin,
                headers,
            } => {
                payload.put_u32(*stream);
                self.put_headers(headers, &mut payload)?;
                (kind::HEADERS, flag(*fin))
            }
            Frame::RstStream { stream, status } => {
                payload.put_u32(*stream);
                payload.put_u32(*status);
                (kind::RST_STREAM, 0)
            }
            Frame::Settings(settings) => {
                payload.put_u32(u32::try_from(settings.len()).unwrap_or(u32::MAX));
                for (id, value) in settings {
                    payload.put_u32(*id);
                    payload.put_u32(*value);
                }
                (kind::SETTINGS, 0)
            }
            Frame::Ping(id) => {
                payload.put_u32(*id);
                (kind::PING, 0)
            }
            Frame::GoAway { last_good, status } => {
                payload.put_u32(*last_good);
                payload.put_u32(*status);
                (kind::GOAWAY, 0)
            }
            Frame::WindowUpdate { stream, delta } => {
                payload.put_u32(*stream);
                payload.put_u32(*delta);
                (kind::WINDOW_UPDATE, 0)
            }
        };
        let [_, l2, l1, l0] = length(payload.len())
            .ok_or(SpdyError::TooLong(payload.len()))?
            .to_be_bytes();
        out.put_u16(0x8000 | VERSION);
        out.put_u16(kind);
        out.put_slice(&[flags, l2, l1, l0]);
        out.put_slice(&payload);
        Ok(())
    }

    fn put_headers(&mut self, headers: &HeaderList, out: &mut BytesMut) -> Result<(), SpdyError> {
        out.put_slice(&self.deflater.deflate(&serialize(headers))?);
        Ok(())
    }
}

/// What stands before the bytes of a data frame; `None` when they are too many for one.
pub fn data_head(stream: u32, bytes: usize, fin: bool) -> Option<[u8; 8]> {
    let [s3, s2, s1, s0] = (stream & 0x7fff_ffff).to_be_bytes();
    let [_, l2, l1, l0] = length(bytes)?.to_be_bytes();
    Some([s3, s2, s1, s0, if fin { FLAG_FIN } else { 0 }, l2, l1, l0])
}

fn length(bytes: usize) -> Option<u32> {
    (bytes <= MAX_LENGTH)
        .then(|| u32::try_from(bytes).ok())
        .flatten()
}
