//! The wire to frames: pure, fed with bytes as they come, cut anywhere.
//!
//! Control frames are collected whole (bounded); data frames are passed on in pieces, so their length does not matter to
//! memory. An unknown type of control frame is skipped, as the protocol says.

use bytes::{Buf, BytesMut};

use super::frame::{
    FLAG_FIN, FLAG_UNIDIRECTIONAL, Frame, HeaderList, MAX_CONTROL, RstStatus, SpdyError, VERSION,
    kind,
};
use super::headers::{Inflater, parse};

const HEAD: usize = 8;
const MAX_SETTINGS: u32 = 64;

/// What came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decoded {
    /// A frame.
    Frame(Frame),
    /// A frame that its stream does not survive; the connection does.
    Broken {
        /// Which stream.
        stream: u32,
        /// With what to reset it.
        status: RstStatus,
    },
}

/// One direction of a connection, read.
pub struct Decoder {
    inflater: Inflater,
    /// A data frame of which not all has come.
    data: Option<DataFrame>,
}

struct DataFrame {
    stream: u32,
    left: usize,
    fin: bool,
}

impl Default for Decoder {
    fn default() -> Self {
        Self {
            inflater: Inflater::new(),
            data: None,
        }
    }
}

impl Decoder {
    /// Takes the next frame, or piece of a data frame, off `input`; `None` when more bytes are due first.
    ///
    /// # Errors
    /// What the connection does not survive.
    pub fn decode(&mut self, input: &mut BytesMut) -> Result<Option<Decoded>, SpdyError> {
        loop {
            if let Some(data) = self.data.take() {
                return Ok(self.piece(data, input));
            }
            let Some(head) = input.first_chunk::<HEAD>().copied() else {
                return Ok(None);
            };
            let first = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
            let length =
                usize::from(head[5]) << 16 | usize::from(head[6]) << 8 | usize::from(head[7]);
            let flags = head[4];
            if first >> 31 == 0 {
                if first == 0 {
                    return Err(SpdyError::Malformed("data"));
                }
                input.advance(HEAD);
                self.data = Some(DataFrame {
                    stream: first,
                    left: length,
                    fin: flags & FLAG_FIN != 0,
                });
                continue;
            }
            if length > MAX_CONTROL {
                return Err(SpdyError::TooLong(length));
            }
            if input.len() < HEAD + length {
                return Ok(None);
            }
            input.advance(HEAD);
            let payload = input.split_to(length);
            let [_, _, low, high] = first.to_be_bytes();
            let version = u16::try_from(first >> 16 & 0x7fff).unwrap_or_default();
            let kind = u16::from_be_bytes([low, high]);
            if let Some(decoded) = self.control(version, kind, flags, &payload)? {
                return Ok(Some(decoded));
            }
        }
    }

    fn piece(&mut self, mut data: DataFrame, input: &mut BytesMut) -> Option<Decoded> {
        let length = data.left.min(input.len());
        if length == 0 && data.left > 0 {
            self.data = Some(data);
            return None;
        }
        data.left -= length;
        let piece = Frame::Data {
            stream: data.stream,
            bytes: input.split_to(length).freeze(),
            fin: data.fin && data.left == 0,
        };
        if data.left > 0 {
            self.data = Some(data);
        }
        Some(Decoded::Frame(piece))
    }

    fn control(
        &mut self,
        version: u16,
        kind: u16,
        flags: u8,
        mut payload: &[u8],
    ) -> Result<Option<Decoded>, SpdyError> {
        let fin = flags & FLAG_FIN != 0;
        let frame = match kind {
            kind::SYN_STREAM => {
                const NAME: &str = "SYN_STREAM";
                let stream = stream_id(&mut payload, NAME)?;
                // The stream that this one belongs to, priority and slot: of no use here.
                let block = payload.get(6..).ok_or(SpdyError::Malformed(NAME))?;
                let headers = self.headers(block)?;
                if version != VERSION {
                    return Ok(Some(broken(stream, RstStatus::UnsupportedVersion)));
                }
                let Some(headers) = headers else {
                    return Ok(Some(broken(stream, RstStatus::Protocol)));
                };
                Frame::SynStream {
                    stream,
                    fin,
                    unidirectional: flags & FLAG_UNIDIRECTIONAL != 0,
                    headers,
                }
            }
            kind::SYN_REPLY | kind::HEADERS => {
                let stream = stream_id(&mut payload, "header")?;
                let Some(headers) = self.headers(payload)? else {
                    return Ok(Some(broken(stream, RstStatus::Protocol)));
                };
                if kind == kind::HEADERS {
                    Frame::Headers {
                        stream,
                        fin,
                        headers,
                    }
                } else {
                    Frame::SynReply {
                        stream,
                        fin,
                        headers,
                    }
                }
            }
            kind => return fixed(kind, payload).map(|frame| frame.map(Decoded::Frame)),
        };
        Ok(Some(Decoded::Frame(frame)))
    }

    fn headers(&mut self, block: &[u8]) -> Result<Option<HeaderList>, SpdyError> {
        Ok(parse(&self.inflater.inflate(block)?))
    }
}

fn broken(stream: u32, status: RstStatus) -> Decoded {
    Decoded::Broken { stream, status }
}

/// A frame without headers; `None` when its type is unknown.
fn fixed(kind: u16, mut payload: &[u8]) -> Result<Option<Frame>, SpdyError> {
    let frame = match kind {
        kind::RST_STREAM => Frame::RstStream {
            stream: stream_id(&mut payload, "RST_STREAM")?,
            status: word(&mut payload, "RST_STREAM")?,
        },
        kind::SETTINGS => Frame::Settings(settings(payload)?),
        kind::PING => Frame::Ping(word(&mut payload, "PING")?),
        kind::GOAWAY => Frame::GoAway {
            last_good: word(&mut payload, "GOAWAY")? & 0x7fff_ffff,
            // SPDY/2 had no status.
            status: payload.try_get_u32().unwrap_or_default(),
        },
        kind::WINDOW_UPDATE => Frame::WindowUpdate {
            stream: word(&mut payload, "WINDOW_UPDATE")? & 0x7fff_ffff,
            delta: word(&mut payload, "WINDOW_UPDATE")? & 0x7fff_ffff,
        },
        _ => return Ok(None),
    };
    Ok(Some(frame))
}

fn settings(mut payload: &[u8]) -> Result<Vec<(u32, u32)>, SpdyError> {
    const NAME: &str = "SETTINGS";
    let count = word(&mut payload, NAME)?;
    if count > MAX_SETTINGS {
        return Err(SpdyError::Malformed(NAME));
    }
    (0..count)
        .map(|_| {
            let id = word(&mut payload, NAME)? & 0x00ff_ffff;
            Ok((id, word(&mut payload, NAME)?))
        })
        .collect()
}

fn word(payload: &mut &[u8], name: &'static str) -> Result<u32, SpdyError> {
    payload
        .try_get_u32()
        .map_err(|_| SpdyError::Malformed(name))
}

fn stream_id(payload: &mut &[u8], name: &'static str) -> Result<u32, SpdyError> {
    match word(payload, name)? & 0x7fff_ffff {
        0 => Err(SpdyError::Malformed(name)),
        id => Ok(id),
    }
}
