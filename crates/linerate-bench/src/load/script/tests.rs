use std::num::NonZeroU32;

use flate2::{Decompress, FlushDecompress};
use linerate_simd::mask;

use super::*;

fn echo(connections: u32, window: u32, payload_bytes: u32) -> Echo {
    Echo {
        connections,
        window,
        payload_bytes,
        payload: Payload::Ascii,
        frames: 1,
        write_bytes_max: None::<NonZeroU32>,
        tls: false,
        deflate: Deflate::Off,
        rate: None,
        messages: None,
    }
}

/// Decodes the requests of a script. Returns the frames of each message, unmasked.
fn frames(script: &Script) -> Vec<Vec<(Header, Vec<u8>)>> {
    let mut start = 0;
    let mut messages = Vec::new();
    for &end in &script.request_ends {
        let mut frames = Vec::new();
        while start < end {
            let (header, header_bytes) =
                Header::decode(&script.requests[start..]).unwrap().unwrap();
            start += header_bytes;
            let mut payload = script.requests[start..][..header.payload_bytes as usize].to_vec();
            start += payload.len();
            mask::apply(header.mask.unwrap().0, 0, &mut payload);
            frames.push((header, payload));
        }
        assert_eq!(start, end);
        messages.push(frames);
    }
    messages
}

#[test]
fn requests_carry_what_the_answers_say() {
    for count in [1, 3, 7] {
        let script = Script::new(
            &Echo {
                frames: count,
                ..echo(2, 4, 200)
            },
            Wire::WebSocket,
        )
        .unwrap();
        assert_eq!(script.messages(), 16);
        for (number, frames) in frames(&script).into_iter().enumerate() {
            assert_eq!(frames.len(), count as usize);
            let answer = &script.answers()[number * script.answer_bytes..][..script.answer_bytes];
            let joined: Vec<u8> = frames
                .iter()
                .flat_map(|(_, payload)| payload.clone())
                .collect();
            assert_eq!(answer[..4], *b"\x81\x7e\x00\xc8");
            assert_eq!(answer[script.header_bytes..], joined);
            for (place, (header, _)) in frames.iter().enumerate() {
                assert_eq!(header.fin, place + 1 == frames.len());
                assert_eq!(header.opcode == Opcode::Text, place == 0);
                assert_eq!(header.rsv, 0);
            }
        }
    }
}

#[test]
fn bare_tcp_gets_back_what_was_sent() {
    let script = Script::new(&echo(1, 2, 8), Wire::Raw).unwrap();
    assert_eq!(script.answers(), script.requests());
    assert_eq!((script.answer_bytes, script.header_bytes), (14, 0));
}

#[test]
fn cycles_fit_the_cache_or_the_limit() {
    let bytes = |connections, window, payload_bytes| {
        let script =
            Script::new(&echo(connections, window, payload_bytes), Wire::WebSocket).unwrap();
        (
            script.messages(),
            script.requests.len() + script.answers.len(),
        )
    };
    assert_eq!(bytes(8, 128, 20).0, 2 * 8 * 128);
    assert_eq!(bytes(1, 1, 8).0, 3);
    let (messages, cycle) = bytes(8, 64, 1_000);
    assert!(
        messages % 64 == 0 && messages >= 128 && cycle <= 512 << 10,
        "{messages}"
    );
    assert_eq!(bytes(256, 128, 128 << 10).0, 3);
    assert_eq!(bytes(1, 1, 16 << 20).0, 2);
    let error = Script::new(&echo(1, 1, 21 << 20), Wire::WebSocket).unwrap_err();
    assert!(matches!(error, LoadError::TooLarge { .. }) && error.is_ours());
}

#[test]
fn spans_go_round_the_cycle() {
    let script = Script::new(&echo(1, 4, 8), Wire::WebSocket).unwrap();
    assert_eq!(script.messages(), 8);
    assert_eq!(script.request_span(0, 4), (4 * 14, 4));
    assert_eq!(script.request_span(6, 4), (4 * 14, 2));
    assert_eq!(script.request_span(7, 17), (17 * 14, 0));
    assert_eq!(script.first(0), 0);
}

#[test]
fn compressed_cycles_can_be_replayed() {
    for deflate in [Deflate::NoTakeover, Deflate::Takeover] {
        let echo = Echo {
            deflate,
            payload: Payload::Json,
            ..echo(2, 4, 3_000)
        };
        let script = Script::new(&echo, Wire::WebSocket).unwrap();
        let mut inflate = Decompress::new(false);
        for _ in 0..3 {
            for (number, frames) in frames(&script).into_iter().enumerate() {
                let (header, mut payload) = frames.into_iter().next().unwrap();
                assert_eq!(header.rsv, 4);
                assert!(payload.len() < 1_500, "{}", payload.len());
                payload.extend(b"\0\0\xff\xff");
                if deflate == Deflate::NoTakeover {
                    inflate.reset(false);
                }
                let mut plain = Vec::with_capacity(4_000);
                inflate
                    .decompress_vec(&payload, &mut plain, FlushDecompress::Sync)
                    .unwrap();
                let answer = number * script.answer_bytes + script.header_bytes;
                assert_eq!(plain, script.answers()[answer..][..3_000]);
            }
        }
    }
}
