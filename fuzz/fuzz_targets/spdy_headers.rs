//! Header blocks as a client might compress them, one after another on one connection: what is written is read back, and a block
//! that inflates too far ends the connection.

#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use springline_fuzz::{Decoded, Decoder, Encoder, Frame, MAX_INFLATED};

fuzz_target!(|blocks: Vec<Vec<(String, String)>>| {
    let (mut encoder, mut decoder) = (Encoder::new().unwrap(), Decoder::default());
    for (stream, headers) in (1..).zip(blocks) {
        let size: usize = headers
            .iter()
            .map(|(name, value)| name.len() + value.len() + 8)
            .sum();
        let frame = Frame::Headers {
            stream,
            fin: false,
            headers,
        };
        let mut wire = BytesMut::new();
        encoder.encode(&frame, &mut wire).unwrap();
        match decoder.decode(&mut wire) {
            Ok(Some(Decoded::Frame(read @ Frame::Headers { .. }))) => {
                // Names are read in lower case.
                let (Frame::Headers { headers: sent, .. }, Frame::Headers { headers: got, .. }) =
                    (&frame, &read)
                else {
                    unreachable!()
                };
                assert_eq!(sent.len(), got.len());
                for ((name, value), (read_name, read_value)) in sent.iter().zip(got) {
                    assert_eq!(name.to_ascii_lowercase(), *read_name);
                    assert_eq!(value, read_value);
                }
            }
            Ok(Some(Decoded::Broken { .. })) => {}
            Ok(other) => panic!("{other:?}"),
            Err(_) => {
                assert!(
                    size + 4 > MAX_INFLATED.min(16 * 1024),
                    "an honest block of {size} bytes is refused"
                );
                return;
            }
        }
    }
});
