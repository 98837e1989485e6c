//! What comes out of a hijacked connection: the engine's frames, or plain bytes where a terminal is behind.
//!
//! A frame is one byte of stream (1 output, 2 error output, 3 the engine's own complaint), three of zero, four of length, and
//! the bytes. A piece is passed on as soon as it is there, not when its frame is whole. Knows nothing of execs. Fails with
//! `InvalidData` on bytes that are no frames, and with `UnexpectedEof` on an end inside of one.

use std::io;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::runtime::ports::Output;

const HEADER: usize = 8;
/// What is read at once, at most. The engine writes 32 KiB at a time.
const READ_SIZE: usize = 64 << 10;
/// A read with less room than this would be a waste.
const LEAST_ROOM: usize = 8 << 10;

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const COMPLAINT: u8 = 3;

/// How the bytes are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A terminal's output, as it is.
    Plain,
    /// In frames.
    Framed,
}

/// The pieces of output of one connection.
pub(super) struct Frames<R> {
    from: R,
    form: Form,
    buffer: BytesMut,
    /// The frame that is being read: its stream, and how much of it is still to come.
    stream: u8,
    rest: usize,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    pub(super) fn new(from: R, form: Form) -> Self {
        Self {
            from,
            form,
            buffer: BytesMut::new(),
            stream: STDOUT,
            rest: 0,
        }
    }

    /// The next piece; `None` at the end. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Option<io::Result<Output>> {
        loop {
            match self.piece() {
                Ok(None) => {}
                Ok(Some(piece)) => return Some(Ok(piece)),
                Err(error) => return Some(Err(error)),
            }
            if self.buffer.capacity() - self.buffer.len() < LEAST_ROOM {
                self.buffer.reserve(READ_SIZE);
            }
            match self.from.read_buf(&mut self.buffer).await {
                Ok(0) if self.rest == 0 && self.buffer.is_empty() => return None,
                Ok(0) => return Some(Err(io::ErrorKind::UnexpectedEof.into())),
                Ok(_) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// A piece out of what was read already.
    fn piece(&mut self) -> io::Result<Option<Output>> {
        if self.form == Form::Plain {
            return Ok(match self.buffer.len() {
                0 => None,
                _ => Some(Output::Stdout(self.buffer.split().freeze())),
            });
        }
        loop {
            if self.rest == 0 && !self.header()? {
                return Ok(None);
            }
            let there = self.rest.min(self.buffer.len());
            if there == 0 && self.rest > 0 {
                return Ok(None);
            }
            self.rest -= there;
            let bytes = self.buffer.split_to(there).freeze();
            match self.stream {
                _ if bytes.is_empty() => {}
                STDOUT => return Ok(Some(Output::Stdout(bytes))),
                STDERR | COMPLAINT => return Ok(Some(Output::Stderr(bytes))),
                _ => {}
            }
        }
    }

    /// Reads a frame's header; `false` when it is not there yet.
    fn header(&mut self) -> io::Result<bool> {
        let Some(header) = self.buffer.first_chunk::<HEADER>() else {
            return Ok(false);
        };
        let [stream, 0, 0, 0, a, b, c, d] = *header else {
            return Err(no_frames());
        };
        if !matches!(stream, STDIN | STDOUT | STDERR | COMPLAINT) {
            return Err(no_frames());
        }
        self.stream = stream;
        self.rest = usize::try_from(u32::from_be_bytes([a, b, c, d])).map_err(|_| no_frames())?;
        self.buffer.advance(HEADER);
        Ok(true)
    }
}

fn no_frames() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the engine's stream is not in frames",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(stream: u8, text: &str) -> Vec<u8> {
        let mut bytes = vec![stream, 0, 0, 0];
        bytes.extend(u32::try_from(text.len()).unwrap().to_be_bytes());
        bytes.extend(text.as_bytes());
        bytes
    }

    /// What is read from these reads, each stream's pieces joined: `o:…`, `e:…`, and the error that ends it.
    async fn read(form: Form, reads: &[&[u8]]) -> String {
        let mut script = tokio_test_reads(reads);
        let mut frames = Frames::new(&mut script, form);
        let mut told = String::new();
        let mut last = ' ';
        while let Some(piece) = frames.next().await {
            let (sign, bytes) = match piece {
                Ok(Output::Stdout(bytes)) => ('o', bytes),
                Ok(Output::Stderr(bytes)) => ('e', bytes),
                Err(error) => return format!("{told} !{:?}", error.kind()),
            };
            if sign != last {
                told += &format!(" {sign}:");
                last = sign;
            }
            told += std::str::from_utf8(&bytes).unwrap();
        }
        told
    }

    fn tokio_test_reads(reads: &[&[u8]]) -> impl AsyncRead + Unpin + use<> {
        let reads: Vec<io::Result<bytes::Bytes>> = reads
            .iter()
            .map(|bytes| Ok(bytes::Bytes::copy_from_slice(bytes)))
            .collect();
        tokio_util::io::StreamReader::new(futures_util::stream::iter(reads))
    }

    #[tokio::test]
    async fn frames_are_taken_apart() {
        let all = [
            frame(1, "out"),
            frame(2, "err"),
            frame(1, ""),
            frame(0, "echo"),
            frame(3, "complaint"),
            frame(1, "more"),
        ]
        .concat();
        let want = " o:out e:errcomplaint o:more";
        assert_eq!(read(Form::Framed, &[&all]).await, want, "in one read");
        for size in [1, 2, 7, 9, 13] {
            let reads: Vec<&[u8]> = all.chunks(size).collect();
            assert_eq!(read(Form::Framed, &reads).await, want, "reads of {size}");
        }
    }

    #[tokio::test]
    async fn what_is_not_whole_or_no_frame_is_an_error() {
        let whole = frame(1, "four");
        for (name, bytes, want) in [
            ("half a header", &whole[..5], " !UnexpectedEof"),
            ("half a frame", &whole[..10], " o:fo !UnexpectedEof"),
            ("text", b"plain text".as_slice(), " !InvalidData"),
            ("another stream", &[4, 0, 0, 0, 0, 0, 0, 0], " !InvalidData"),
            ("nothing", &[], ""),
        ] {
            assert_eq!(read(Form::Framed, &[bytes]).await, want, "{name}");
        }
    }

    #[tokio::test]
    async fn a_terminal_has_no_frames() {
        let got = read(Form::Plain, &[b"\x01\0\0\0", b" text"]).await;
        assert_eq!(got, " o:\x01\0\0\0 text");
    }
}
