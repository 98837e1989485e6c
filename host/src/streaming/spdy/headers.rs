//! Header blocks: name and value pairs behind one zlib stream per direction and connection, primed with the protocol's
//! dictionary. A block ends with a sync flush, so its bytes are complete while the stream goes on.
//!
//! Fails when a block cannot be inflated or inflates beyond [`MAX_INFLATED`] (the connection is lost then), and when the
//! inflated pairs are malformed (only their stream is).

use std::sync::LazyLock;

use bytes::{Buf, BufMut};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::frame::{HeaderList, SpdyError};

/// What one block may inflate to, in bytes.
pub const MAX_INFLATED: usize = 16 * 1024;
/// Headers of one block.
const MAX_HEADERS: u32 = 64;

/// The protocol's dictionary begins with these words, each behind its length as 32 bits.
const WORDS: &str = "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges \
age allow authorization cache-control connection content-base content-encoding content-language content-length \
content-location content-md5 content-range content-type date etag expect expires from host if-match if-modified-since \
if-none-match if-range if-unmodified-since last-modified location max-forwards pragma proxy-authenticate \
proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade user-agent vary via warning \
www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie keep-alive origin";
/// And ends with these, as they are.
const TAIL: &str = "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505\
203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden\
404 Not Found500 Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept \
Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,\
application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdch\
charset=utf-8charset=iso-8859-1,utf-,*,enq=0.";

static DICTIONARY: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut all = Vec::new();
    for word in WORDS.split(' ') {
        let word = word.replace('_', " ");
        all.put_u32(u32::try_from(word.len()).unwrap_or_default());
        all.put_slice(word.as_bytes());
    }
    all.put_slice(TAIL.as_bytes());
    all
});

/// The dictionary with which both sides prime their compression.
pub fn dictionary() -> &'static [u8] {
    &DICTIONARY
}

/// Inflates the blocks of one direction.
pub(super) struct Inflater(Decompress);

impl Inflater {
    pub fn new() -> Self {
        Self(Decompress::new(true))
    }

    /// Inflates one block.
    pub fn inflate(&mut self, mut block: &[u8]) -> Result<Vec<u8>, SpdyError> {
        let mut out = Vec::with_capacity(512);
        loop {
            let before = self.0.total_in();
            let had = out.len();
            let result = self
                .0
                .decompress_vec(block, &mut out, FlushDecompress::Sync);
            let taken = usize::try_from(self.0.total_in() - before).unwrap_or(usize::MAX);
            block = block.get(taken..).unwrap_or_default();
            match result {
                Ok(Status::StreamEnd) => return Err(SpdyError::Compression),
                Ok(_) => {}
                Err(error) if error.needs_dictionary().is_some() => {
                    let set = self.0.set_dictionary(dictionary());
                    set.map_err(|_| SpdyError::Compression)?;
                    continue;
                }
                Err(_) => return Err(SpdyError::Compression),
            }
            if out.len() > MAX_INFLATED {
                return Err(SpdyError::HeaderBomb(MAX_INFLATED));
            }
            let full = out.len() == out.capacity();
            if block.is_empty() && !full {
                return Ok(out);
            }
            if full {
                out.reserve(out.len().min(MAX_INFLATED));
            } else if taken == 0 && out.len() == had {
                return Err(SpdyError::Compression);
            }
        }
    }
}

/// Deflates the blocks of one direction.
pub(super) struct Deflater(Compress);

impl Deflater {
    pub fn new() -> Result<Self, SpdyError> {
        let mut compress = Compress::new(Compression::new(6), true);
        compress
            .set_dictionary(dictionary())
            .map_err(|_| SpdyError::Compression)?;
        Ok(Self(compress))
    }

    /// Deflates one block.
    pub fn deflate(&mut self, mut block: &[u8]) -> Result<Vec<u8>, SpdyError> {
        let mut out = Vec::with_capacity(block.len() + 64);
        loop {
            let before = self.0.total_in();
            self.0
                .compress_vec(block, &mut out, FlushCompress::Sync)
                .map_err(|_| SpdyError::Compression)?;
            let taken = usize::try_from(self.0.total_in() - before).unwrap_or(usize::MAX);
            block = block.get(taken..).unwrap_or_default();
            if block.is_empty() && out.len() < out.capacity() {
                return Ok(out);
            }
            out.reserve(out.len().max(64));
        }
    }
}

/// Reads the pairs of an inflated block. `None` when they are malformed.
pub(super) fn parse(mut block: &[u8]) -> Option<HeaderList> {
    let count = block.try_get_u32().ok()?;
    if count > MAX_HEADERS {
        return None;
    }
    let mut headers: HeaderList = Vec::new();
    for _ in 0..count {
        let name = text(&mut block)?.to_ascii_lowercase();
        let value = text(&mut block)?;
        if name.is_empty() || headers.iter().any(|(known, _)| *known == name) {
            return None;
        }
        headers.push((name, value));
    }
    block.is_empty().then_some(headers)
}

fn text(block: &mut &[u8]) -> Option<String> {
    let length = usize::try_from(block.try_get_u32().ok()?).ok()?;
    let (text, rest) = block.split_at_checked(length)?;
    *block = rest;
    String::from_utf8(text.to_vec()).ok()
}

/// Writes pairs in the form that [`parse`] reads.
pub(super) fn serialize(headers: &HeaderList) -> Vec<u8> {
    let mut block = Vec::new();
    let put = |block: &mut Vec<u8>, text: &str| {
        block.put_u32(u32::try_from(text.len()).unwrap_or(u32::MAX));
        block.put_slice(text.as_bytes());
    };
    block.put_u32(u32::try_from(headers.len()).unwrap_or(u32::MAX));
    for (name, value) in headers {
        put(&mut block, name);
        put(&mut block, value);
    }
    block
}
