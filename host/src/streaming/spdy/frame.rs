//! The frames of SPDY/3.1 and what can be wrong with them. Types only.

use bytes::Bytes;

/// The version in every control frame; SPDY/3.1 kept that of SPDY/3.
pub(super) const VERSION: u16 = 3;
/// A control frame's payload may not be longer: the largest honest ones are header blocks of a few hundred bytes.
pub(super) const MAX_CONTROL: usize = 16 * 1024;
/// This side will send no more on the stream.
pub(super) const FLAG_FIN: u8 = 0x01;
/// The other side may send nothing on the stream.
pub(super) const FLAG_UNIDIRECTIONAL: u8 = 0x02;

/// Headers of a stream, in the order of the wire; names in lower case.
pub type HeaderList = Vec<(String, String)>;

/// The types of control frames.
pub(super) mod kind {
    pub const SYN_STREAM: u16 = 1;
    pub const SYN_REPLY: u16 = 2;
    pub const RST_STREAM: u16 = 3;
    pub const SETTINGS: u16 = 4;
    pub const PING: u16 = 6;
    pub const GOAWAY: u16 = 7;
    pub const HEADERS: u16 = 8;
    pub const WINDOW_UPDATE: u16 = 9;
}

/// The setting that gives the window with which streams begin.
pub(super) const SETTINGS_INITIAL_WINDOW_SIZE: u32 = 7;

/// One frame, or a piece of a data frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// Opens a stream.
    SynStream {
        /// Odd when the client opens it, even when the server does.
        stream: u32,
        /// The sender sends nothing after this.
        fin: bool,
        /// The receiver may send nothing.
        unidirectional: bool,
        /// What the stream is for.
        headers: HeaderList,
    },
    /// Accepts a stream.
    SynReply {
        /// Which one.
        stream: u32,
        /// The sender sends nothing after this.
        fin: bool,
        /// Usually none.
        headers: HeaderList,
    },
    /// Ends a stream at once, both ways.
    RstStream {
        /// Which one.
        stream: u32,
        /// Why; see [`RstStatus`].
        status: u32,
    },
    /// Tells of the sender's settings, as id and value.
    Settings(Vec<(u32, u32)>),
    /// Wants the same back when its id is of the other side's kind (odd: client).
    Ping(u32),
    /// The sender accepts no more streams.
    GoAway {
        /// The last stream that it accepted.
        last_good: u32,
        /// 0 = all is well.
        status: u32,
    },
    /// More headers of an open stream.
    Headers {
        /// Which one.
        stream: u32,
        /// The sender sends nothing after this.
        fin: bool,
        /// The headers.
        headers: HeaderList,
    },
    /// The sender takes this many bytes more.
    WindowUpdate {
        /// Which stream; 0 = the session as a whole.
        stream: u32,
        /// At least 1.
        delta: u32,
    },
    /// Bytes of a stream: a whole frame or a piece of one.
    Data {
        /// Which one.
        stream: u32,
        /// Its bytes; may be none.
        bytes: Bytes,
        /// The last of the sender's.
        fin: bool,
    },
}

/// Why a stream is reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum RstStatus {
    /// The peer broke the protocol on this stream.
    Protocol = 1,
    /// It is not accepted.
    Refused = 3,
    /// Not our version of SPDY.
    UnsupportedVersion = 4,
    /// No longer wanted.
    Cancel = 5,
    /// More was sent, or more allowed, than windows can hold.
    FlowControl = 7,
}

/// What ends a connection.
#[derive(Debug, thiserror::Error)]
pub enum SpdyError {
    /// A control frame that is longer than any honest one.
    #[error("a control frame of {0} bytes")]
    TooLong(usize),
    /// A frame whose payload does not have the form of its type.
    #[error("a malformed {0} frame")]
    Malformed(&'static str),
    /// Headers that cannot be inflated: the state of the connection's compression is lost.
    #[error("headers that cannot be inflated")]
    Compression,
    /// Headers that inflate to more than any honest ones.
    #[error("headers of more than {0} bytes")]
    HeaderBomb(usize),
    /// More than the protocol's other limits allow.
    #[error("{0}")]
    Abuse(&'static str),
    /// The byte stream below.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}
