//! The wire: what others write is read, what is written is read back, and nothing that comes in any form does harm.

use bytes::{Bytes, BytesMut};
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

#[test]
fn the_dictionary_is_the_protocols() {
    // Its length and the Adler-32 by which zlib streams name it (78 bb e3c6a7c2 begins every SPDY header stream).
    let (mut a, mut b) = (1_u32, 0_u32);
    for byte in dictionary() {
        a = (a + u32::from(*byte)) % 65_521;
        b = (b + a) % 65_521;
    }
    assert_eq!(dictionary().len(), 1423);
    assert_eq!(b << 16 | a, 0xe3c6_a7c2);
}

/// Decodes bytes that come in pieces of the given lengths, over and over.
fn decode(bytes: &[u8], lengths: &[usize]) -> Result<Vec<Decoded>, SpdyError> {
    let mut decoder = Decoder::default();
    let mut input = BytesMut::new();
    let mut rest = bytes;
    let mut all = Vec::new();
    for length in lengths.iter().cycle() {
        let (piece, after) = rest.split_at((*length).min(rest.len()));
        rest = after;
        input.extend_from_slice(piece);
        while let Some(decoded) = decoder.decode(&mut input)? {
            all.push(decoded);
        }
        if rest.is_empty() {
            break;
        }
    }
    Ok(all)
}

/// Pieces of one data frame put together again.
fn joined(all: Vec<Decoded>) -> Vec<Frame> {
    let mut frames: Vec<Frame> = Vec::new();
    let mut open = false;
    for decoded in all {
        let Decoded::Frame(frame) = decoded else {
            panic!("{decoded:?}")
        };
        match (frames.last_mut(), frame) {
            (
                Some(Frame::Data { stream, bytes, fin }),
                Frame::Data {
                    stream: same,
                    bytes: more,
                    fin: last,
                },
            ) if open && *stream == same => {
                *bytes = [bytes.clone(), more].concat().into();
                *fin = last;
            }
            (_, frame) => frames.push(frame),
        }
        open = matches!(frames.last(), Some(Frame::Data { fin: false, .. }));
    }
    frames
}

fn headers() -> impl Strategy<Value = HeaderList> {
    vec(("[a-z:-]{1,20}", "[ -~]{0,80}"), 0..10).prop_map(|mut headers| {
        headers.sort();
        headers.dedup_by(|a, b| a.0 == b.0);
        headers
    })
}

fn frame() -> impl Strategy<Value = Frame> {
    let stream = || 1..=0x7fff_ffff_u32;
    prop_oneof![
        (stream(), any::<bool>(), any::<bool>(), headers()).prop_map(
            |(stream, fin, unidirectional, headers)| Frame::SynStream {
                stream,
                fin,
                unidirectional,
                headers
            }
        ),
        (stream(), any::<bool>(), headers()).prop_map(|(stream, fin, headers)| Frame::SynReply {
            stream,
            fin,
            headers
        }),
        (stream(), any::<bool>(), headers()).prop_map(|(stream, fin, headers)| Frame::Headers {
            stream,
            fin,
            headers
        }),
        (stream(), any::<u32>()).prop_map(|(stream, status)| Frame::RstStream { stream, status }),
        vec((0..0xff_ffff_u32, any::<u32>()), 0..5).prop_map(Frame::Settings),
        any::<u32>().prop_map(Frame::Ping),
        (0..0x7fff_ffff_u32, any::<u32>())
            .prop_map(|(last_good, status)| Frame::GoAway { last_good, status }),
        (0..0x7fff_ffff_u32, 0..0x7fff_ffff_u32)
            .prop_map(|(stream, delta)| Frame::WindowUpdate { stream, delta }),
        // A frame that ends its stream, so that pieces of two are told apart.
        (stream(), vec(any::<u8>(), 0..3000)).prop_map(|(stream, bytes)| Frame::Data {
            stream,
            bytes: Bytes::from(bytes),
            fin: true
        }),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read_back_however_it_is_cut(
        frames in vec(frame(), 1..20),
        lengths in vec(1_usize..4000, 1..10),
    ) {
        let mut encoder = Encoder::new().unwrap();
        let mut wire = BytesMut::new();
        for frame in &frames {
            encoder.encode(frame, &mut wire).unwrap();
        }
        let read = joined(decode(&wire, &lengths).unwrap());
        prop_assert_eq!(read, frames);
    }

    #[test]
    fn no_bytes_do_harm(bytes in vec(any::<u8>(), 0..2000), lengths in vec(1_usize..100, 1..5)) {
        let _ = decode(&bytes, &lengths);
    }

    /// Frames that are nearly right get further than noise does.
    #[test]
    fn no_spoilt_frames_do_harm(
        frames in vec(frame(), 1..10),
        spoils in vec((any::<prop::sample::Index>(), any::<u8>()), 1..10),
    ) {
        let mut encoder = Encoder::new().unwrap();
        let mut wire = BytesMut::new();
        for frame in &frames {
            encoder.encode(frame, &mut wire).unwrap();
        }
        for (at, byte) in spoils {
            let at = at.index(wire.len());
            wire[at] = byte;
        }
        let _ = decode(&wire, &[7]);
    }
}

#[test]
fn what_a_go_client_writes_is_read() {
    // Two SYN_STREAM frames with `streamtype: error` and `streamtype: stdin`, as the Go library writes them: its zlib makes
    // other blocks than ours, and the second depends on the first.
    let hex = "80030001000000290000000100000000000078f9e3c6a7c2\
        6260606004a7b392a2d4c45c6851c29a0a0a6800000000ffff\
        800300010000001700000003000000000000c22e555c92929907000000ffff\
        000000030000000568656c6c6f000000030100000080030006000000\
        0400000001";
    let wire: Vec<u8> = hex
        .as_bytes()
        .chunks(2)
        .map(|digits| u8::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap())
        .collect();
    let opened = |stream, kind: &str| Frame::SynStream {
        stream,
        fin: false,
        unidirectional: false,
        headers: vec![("streamtype".into(), kind.into())],
    };
    let expected = [
        opened(1, "error"),
        opened(3, "stdin"),
        Frame::Data {
            stream: 3,
            bytes: Bytes::from_static(b"hello"),
            fin: true, // which the library writes as a frame of its own, without bytes
        },
        Frame::Ping(1),
    ];
    for length in [1, 7, 4096] {
        assert_eq!(
            joined(decode(&wire, &[length]).unwrap()).as_slice(),
            expected.as_slice()
        );
    }
}
