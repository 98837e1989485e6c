//! Any bytes from a client, cut anywhere: no panic, no endless loop, no more passed on than came.

#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use springline_fuzz::{Decoded, Decoder, Frame};

fuzz_target!(|data: &[u8]| {
    let Some((cut, wire)) = data.split_first() else {
        return;
    };
    let mut decoder = Decoder::default();
    let mut input = BytesMut::new();
    let mut passed = 0;
    for piece in wire.chunks(usize::from(*cut) + 1) {
        input.extend_from_slice(piece);
        loop {
            match decoder.decode(&mut input) {
                Ok(Some(Decoded::Frame(Frame::Data { bytes, .. }))) => passed += bytes.len(),
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => return,
            }
        }
        assert!(
            input.len() < 17 * 1024,
            "a control frame of any length is kept"
        );
    }
    assert!(passed <= wire.len());
});
