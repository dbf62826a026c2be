use flate2::{Compress, Compression, FlushCompress};
use linerate_proto::ProtocolError;

use super::*;
use crate::cell::{Echo, Payload};
use crate::load::Wire;

const PAYLOAD_BYTES: usize = 200;

fn echo() -> Echo {
    Echo {
        connections: 1,
        window: 4,
        payload_bytes: PAYLOAD_BYTES as u32,
        payload: Payload::Ascii,
        frames: 1,
        write_bytes_max: None,
        tls: false,
        deflate: Deflate::Off,
        rate: None,
        messages: None,
    }
}

fn script(wire: Wire) -> Script {
    Script::new(&echo(), wire).unwrap()
}

/// Feeds `input` in pieces of `piece` bytes to a check that expects four messages.
fn feed(script: &Script, input: &[u8], piece: usize) -> (Check, Result<(), LoadError>) {
    let mut check = Check::new(script, 0);
    check.expect(script, 4);
    let result = input
        .chunks(piece)
        .try_for_each(|part| check.take(script, part));
    (check, result)
}

/// Feeds `input` whole and in small pieces. Returns the error, which must always be the same.
fn error(script: &Script, input: &[u8]) -> LoadError {
    let whole = feed(script, input, usize::MAX).1.unwrap_err();
    for piece in [1, 2, 3, 7, 203, 204, 205] {
        let pieces = feed(script, input, piece).1.unwrap_err();
        assert_eq!(pieces.to_string(), whole.to_string(), "pieces of {piece}");
    }
    assert!(!whole.is_ours());
    whole
}

fn assert_right(script: &Script, input: &[u8]) {
    for piece in [usize::MAX, 1, 2, 3, 7, 203, 204, 205] {
        let (check, result) = feed(script, input, piece);
        result.unwrap();
        assert_eq!((check.answered(), check.due()), (4, 0), "pieces of {piece}");
        assert_eq!(check.verified(script), 4 * script.answer_bytes as u64);
    }
}

fn frame(head: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![head];
    match payload.len() {
        bytes @ 0..126 => frame.push(bytes as u8),
        bytes => frame.extend([126, (bytes >> 8) as u8, bytes as u8]),
    }
    frame.extend(payload);
    frame
}

fn payload(script: &Script, message: usize) -> &[u8] {
    &script.answers()[message * script.answer_bytes..][4..script.answer_bytes]
}

#[test]
fn answers_may_come_in_pieces() {
    for wire in [Wire::Raw, Wire::WebSocket] {
        let script = script(wire);
        assert_right(&script, &script.answers()[..4 * script.answer_bytes]);
    }
}

#[test]
fn cycle_begins_anew() {
    let script = script(Wire::WebSocket);
    let mut check = Check::new(&script, 6);
    check.expect(&script, 12);
    let answers = script.answers();
    let first = 6 * script.answer_bytes;
    for part in [
        &answers[first..],
        answers,
        &answers[..2 * script.answer_bytes],
    ] {
        check.take(&script, part).unwrap();
    }
    assert_eq!((check.answered(), check.due()), (12, 0));
}

#[test]
fn server_may_fragment_as_it_likes_and_send_pings() {
    let script = script(Wire::WebSocket);
    let mut input = Vec::new();
    for message in 0..4 {
        let payload = payload(&script, message);
        if message == 2 {
            input.extend(frame(0x81, payload));
            continue;
        }
        input.extend(frame(0x89, b"between"));
        input.extend(frame(0x01, &payload[..50]));
        input.extend(frame(0x8a, b"unasked pong"));
        input.extend(frame(0x00, b""));
        input.extend(frame(0x00, &payload[50..190]));
        input.extend(frame(0x89, b"within"));
        input.extend(frame(0x80, &payload[190..]));
    }
    assert_right(&script, &input);
    let mut check = feed(&script, &input, 10).0;
    let pongs = check.take_pongs().unwrap();
    let expected: Vec<u8> = [b"between".as_slice(), b"within"]
        .repeat(3)
        .into_iter()
        .flat_map(|payload| masked_frame(Opcode::Pong, payload))
        .collect();
    assert_eq!(pongs, expected);
    assert_eq!(check.take_pongs(), None);
}

#[test]
fn part_of_a_message_counts_as_that_part() {
    let script = script(Wire::WebSocket);
    let half = frame(0x01, &payload(&script, 0)[..100]);
    let (check, result) = feed(&script, &half, usize::MAX);
    result.unwrap();
    assert_eq!(check.verified(&script), 104);
    let (check, result) = feed(&script, &script.answers()[..104], usize::MAX);
    result.unwrap();
    assert_eq!(check.verified(&script), 104);
}

#[test]
fn each_changed_byte_is_found() {
    for wire in [Wire::Raw, Wire::WebSocket] {
        let script = script(wire);
        let right = &script.answers()[..4 * script.answer_bytes];
        let at = 2 * script.answer_bytes + script.header_bytes + 77;
        let mut wrong = right.to_vec();
        wrong[at] ^= 0x20;
        let LoadError::Differs {
            message,
            byte,
            expected,
            found,
        } = error(&script, &wrong)
        else {
            panic!("no difference");
        };
        assert_eq!(
            (message, byte, expected, found),
            (2, 77, right[at], wrong[at])
        );
    }
    // The same in fragments.
    let script = script(Wire::WebSocket);
    let mut wrong = payload(&script, 0).to_vec();
    wrong[120] ^= 1;
    let input = [frame(0x01, &wrong[..100]), frame(0x80, &wrong[100..])].concat();
    let error = error(&script, &input);
    assert!(
        matches!(
            error,
            LoadError::Differs {
                message: 0,
                byte: 120,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn swapped_and_stale_messages_are_found() {
    let script = script(Wire::WebSocket);
    let answer = |message: usize| frame(0x81, payload(&script, message));
    for wrong in [[0, 2, 1, 3], [0, 0, 1, 2], [4, 5, 6, 7]] {
        let found = error(&script, &wrong.map(answer).concat());
        assert!(
            matches!(found, LoadError::Differs { .. }),
            "{wrong:?}: {found}"
        );
    }
}

#[test]
fn lengths_have_to_be_the_same() {
    let script = script(Wire::WebSocket);
    let payload = payload(&script, 0);
    let short = error(&script, &frame(0x81, &payload[..199]));
    assert!(
        matches!(
            short,
            LoadError::Short {
                message: 0,
                bytes: 199,
                expected: 200
            }
        ),
        "{short}"
    );
    let long = [payload, b"."].concat();
    let long = error(&script, &frame(0x81, &long));
    assert!(
        matches!(
            long,
            LoadError::Long {
                message: 0,
                bytes: 201,
                expected: 200
            }
        ),
        "{long}"
    );
    let fragments = [frame(0x01, payload), frame(0x80, b".")].concat();
    let long = error(&script, &fragments);
    assert!(
        matches!(
            long,
            LoadError::Long {
                message: 0,
                bytes: 201,
                expected: 200
            }
        ),
        "{long}"
    );
}

#[test]
fn frames_have_to_follow_the_protocol() {
    let script = script(Wire::WebSocket);
    let payload = payload(&script, 0);
    let mut masked = frame(0x81, payload);
    masked[1] |= 0x80;
    assert!(matches!(
        error(&script, &masked),
        LoadError::Masked { message: 0 }
    ));
    let binary = error(&script, &frame(0x82, payload));
    let expected = LoadError::Opcode {
        message: 0,
        expected: Opcode::Text,
        found: Opcode::Binary,
    };
    assert_eq!(binary.to_string(), expected.to_string());
    for (head, rsv) in [(0xc1, 4), (0xa1, 2), (0x99, 1)] {
        let found = error(&script, &frame(head, b"ping"));
        assert!(matches!(found, LoadError::Reserved { message: 0, rsv: bits } if bits == rsv));
    }
    let cases = [
        (
            frame(0x83, b""),
            ProtocolError::ReservedOpcode { opcode: 3 },
        ),
        (frame(0x80, payload), ProtocolError::UnexpectedContinuation),
        (
            [frame(0x01, &payload[..9]), frame(0x81, &payload[9..])].concat(),
            ProtocolError::ExpectedContinuation {
                opcode: Opcode::Text,
            },
        ),
        (frame(0x88, b"\x03"), ProtocolError::CloseTooShort),
    ];
    for (input, wanted) in cases {
        let found = error(&script, &input);
        assert!(
            matches!(found, LoadError::Protocol { message: 0, source } if source == wanted),
            "{found}"
        );
    }
}

#[test]
fn close_counts_only_once_everything_is_answered() {
    let script = script(Wire::WebSocket);
    for (payload, code) in [(b"\x03\xe9".as_slice(), Some(1001)), (b"", None)] {
        let found = error(&script, &frame(0x88, payload));
        assert!(
            matches!(found, LoadError::Closed { code: there } if there == code),
            "{found}"
        );
    }
    let answers = &script.answers()[..4 * script.answer_bytes];
    let input = [answers, &frame(0x88, b"\x03\xe8")].concat();
    assert!(matches!(
        error(&script, &input),
        LoadError::Closed { code: Some(1000) }
    ));
    let mut check = feed(&script, answers, usize::MAX).0;
    check.expect_close();
    check.take(&script, b"\x88\x02\x03\xe8").unwrap();
    assert!(check.is_closed());
}

#[test]
fn nothing_may_come_unasked() {
    for wire in [Wire::Raw, Wire::WebSocket] {
        let script = script(wire);
        let found = error(&script, &script.answers()[..5 * script.answer_bytes]);
        assert!(
            matches!(found, LoadError::Unasked { message: 4 }),
            "{found}"
        );
    }
}

/// Compresses four answers as a server does, each in two frames.
fn deflate(script: &Script, deflate: Deflate) -> Vec<u8> {
    let mut compress = Compress::new(Compression::fast(), false);
    let mut input = Vec::new();
    for message in 0..4 {
        if deflate == Deflate::NoTakeover {
            compress.reset();
        }
        let mut output = Vec::with_capacity(1_000);
        compress
            .compress_vec(payload(script, message), &mut output, FlushCompress::Sync)
            .unwrap();
        output.truncate(output.len() - 4);
        input.extend(frame(0x41, &output[..9]));
        input.extend(frame(0x80, &output[9..]));
    }
    input
}

#[test]
fn compressed_answers_are_undone() {
    for mode in [Deflate::NoTakeover, Deflate::Takeover] {
        let script = Script::new(
            &Echo {
                deflate: mode,
                ..echo()
            },
            Wire::WebSocket,
        )
        .unwrap();
        assert_right(&script, &deflate(&script, mode));
    }
}

#[test]
fn compressed_answers_have_to_be_compressed_and_right() {
    let mode = Deflate::NoTakeover;
    let script = Script::new(
        &Echo {
            deflate: mode,
            ..echo()
        },
        Wire::WebSocket,
    )
    .unwrap();
    let plain = frame(0x81, payload(&script, 0));
    assert!(matches!(
        error(&script, &plain),
        LoadError::Uncompressed { message: 0 }
    ));
    // A block of the reserved type.
    let broken = frame(0xc1, b"\xff\xff\xff");
    assert!(matches!(
        error(&script, &broken),
        LoadError::Inflate { message: 0 }
    ));
    let unfinished = frame(0xc1, b"");
    assert!(matches!(
        error(&script, &unfinished),
        LoadError::Short {
            message: 0,
            bytes: 0,
            ..
        }
    ));
    let other = Script::new(
        &Echo {
            payload: Payload::Json,
            ..echo()
        },
        Wire::WebSocket,
    )
    .unwrap();
    let found = error(&script, &deflate(&other, mode));
    assert!(
        matches!(
            found,
            LoadError::Differs {
                message: 0,
                byte: 0,
                ..
            }
        ),
        "{found}"
    );
    let longer = Echo {
        payload_bytes: 201,
        ..echo()
    };
    let longer = Script::new(&longer, Wire::WebSocket).unwrap();
    let found = error(&script, &deflate(&longer, mode));
    assert!(
        matches!(
            found,
            LoadError::Long {
                message: 0,
                expected: 200,
                ..
            }
        ),
        "{found}"
    );
}
