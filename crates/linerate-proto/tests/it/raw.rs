//! Messages returned still masked, for callers that copy and unmask in one pass.

use core::time::Duration;

use linerate_proto::{
    Engine, ProtocolError, Role,
    engine::{MessageKind, RawEvent},
};
use linerate_simd::utf8::{TextBuf, Validator};
use linerate_testkit::{Cuts, Frame, TestEndpoint};

use crate::situation::{ROLES, Situation, close_frame, engine_in};

/// Collects text with [`append_text_to`](linerate_proto::engine::Data::append_text_to), as an I/O
/// layer does, and fails the connection if it is not valid text.
fn gather(engine: &mut Engine<TestEndpoint>, wire: &[u8], cuts: Cuts) -> Vec<String> {
    let mut texts = Vec::new();
    let mut text = TextBuf::new();
    cuts.for_each_piece(wire, |piece| {
        let mut input = piece.to_vec();
        let mut events = engine.handle_input(&mut input, Duration::ZERO);
        let mut failed = None;
        while let Some(event) = events.next_raw() {
            let data = match event {
                Ok(RawEvent::Data(data)) => data,
                Ok(control) => {
                    texts.push(format!("{control:?}"));
                    continue;
                }
                Err(error) => {
                    texts.push(error.to_string());
                    continue;
                }
            };
            assert_eq!(data.kind, MessageKind::Text);
            assert_eq!(data.begins, text.is_empty());
            let ends = data.ends;
            if let Err(error) = data.append_text_to(&mut text) {
                failed = Some(error);
                break;
            }
            if ends {
                let text = core::mem::take(&mut text).finish();
                texts.push(text.expect("it was validated").to_string());
            }
        }
        if let Some(error) = failed {
            engine.fail(&error);
            texts.push(error.to_string());
        }
    });
    texts
}

fn wire(role: Role, frames: &[Frame]) -> Vec<u8> {
    let frames = frames.iter().cloned();
    frames
        .flat_map(|frame| frame.to_role(role).to_bytes())
        .collect()
}

#[test]
fn text_is_assembled_from_pieces_of_any_size() {
    for role in ROLES {
        let frames = [
            Frame::new(0x1, "κό".as_bytes()).with_fin(false),
            Frame::new(0x9, b"ping"),
            Frame::new(0x0, "σμε".as_bytes()),
            Frame::new(0x1, b"whole"),
            Frame::new(0x8, b"\x03\xe8"),
        ];
        let wire = wire(role, &frames);
        let expected = [
            format!("{:?}", RawEvent::Ping(b"ping")),
            "κόσμε".to_owned(),
            "whole".to_owned(),
        ];
        for cuts in (0..=wire.len()).map(Cuts::At).chain([Cuts::Every(1)]) {
            let mut engine = engine_in(Situation::Idle, role);
            let mut texts = gather(&mut engine, &wire, cuts);
            let close = texts.pop().expect("the Close frame");
            assert!(close.starts_with("Close("), "{close}");
            assert_eq!(texts, expected, "{cuts:?}");
        }
    }
}

#[test]
fn the_caller_detects_invalid_utf8_and_fails_the_connection() {
    for role in ROLES {
        for (text, offset) in [(&b"ok \xff.."[..], 3), (b"cut \xe2\x82", 6)] {
            let wire = wire(role, &[Frame::new(0x1, text), Frame::new(0x9, b"late")]);
            for cuts in [Cuts::Whole, Cuts::Every(1), Cuts::Every(3)] {
                let mut engine = engine_in(Situation::Idle, role);
                let error = ProtocolError::InvalidUtf8 { offset };
                assert_eq!(gather(&mut engine, &wire, cuts), [error.to_string()]);
                let mut output = Vec::new();
                engine.poll_transmit(&mut output);
                assert_eq!(output, close_frame(role, 1007));
            }
        }
    }
}

#[test]
fn the_offset_of_invalid_utf8_includes_text_that_was_taken_out() {
    for role in ROLES {
        for (text, offset) in [(&b"ok \xff.."[..], 3), (b"cut \xe2\x82", 6)] {
            let wire = wire(role, &[Frame::new(0x1, text)]);
            let mut engine = engine_in(Situation::Idle, role);
            let (mut text, mut error) = (TextBuf::new(), None);
            Cuts::Every(1).for_each_piece(&wire, |piece| {
                let mut input = piece.to_vec();
                let mut events = engine.handle_input(&mut input, Duration::ZERO);
                if let Some(Ok(RawEvent::Data(data))) = events.next_raw() {
                    let appended = data.append_text_to(&mut text);
                    error = error.take().or(appended.err());
                    _ = text.take_finished(Vec::new());
                }
            });
            assert_eq!(error, Some(ProtocolError::InvalidUtf8 { offset }));
        }
    }
}

/// Validates text in place; returns it, or the error.
fn validate_in_place(
    engine: &mut Engine<TestEndpoint>,
    wire: &[u8],
    cuts: Cuts,
) -> Result<Vec<u8>, ProtocolError> {
    let (mut validator, mut text, mut result) = (Validator::new(), Vec::new(), Ok(()));
    cuts.for_each_piece(wire, |piece| {
        let mut input = piece.to_vec();
        let mut events = engine.handle_input(&mut input, Duration::ZERO);
        while result.is_ok()
            && let Some(event) = events.next_raw()
        {
            let Ok(RawEvent::Data(data)) = event else {
                panic!("{event:?}");
            };
            result = data
                .unmask_text(&mut validator)
                .map(|bytes| text.extend_from_slice(bytes));
        }
    });
    result.map(|()| text)
}

#[test]
fn text_is_validated_in_place_in_pieces_of_any_size() {
    let cases: [(&[u8], Option<u64>); 5] = [
        ("κόσμε".as_bytes(), None),
        (b"", None),
        (b"ok \xff..", Some(3)),
        (b"cut \xe2\x82", Some(6)),
        (b"\xce\xba\xed\xa0", Some(3)),
    ];
    for role in ROLES {
        for (text, invalid_at) in cases {
            let half = text.len() / 2;
            let fragments = [
                Frame::new(0x1, &text[..half]).with_fin(false),
                Frame::new(0x0, &text[half..]),
            ];
            let wire = wire(role, &fragments);
            for cuts in (0..=wire.len()).map(Cuts::At).chain([Cuts::Every(1)]) {
                let mut engine = engine_in(Situation::Idle, role);
                let validated = validate_in_place(&mut engine, &wire, cuts);
                let expected = match invalid_at {
                    None => Ok(text.to_vec()),
                    Some(offset) => Err(ProtocolError::InvalidUtf8 { offset }),
                };
                assert_eq!(validated, expected, "{text:?}, {cuts:?}");
            }
        }
    }
}

#[test]
fn bytes_are_unmasked_in_place_or_while_copying() {
    for role in ROLES {
        let payload: Vec<u8> = (0..=255).collect();
        let frame = Frame::new(0x2, &payload).to_role(role).to_bytes();
        for read_bytes in [1, 3, 64, 1_000] {
            let mut engine = engine_in(Situation::Idle, role);
            let (mut appended, mut left) = (Vec::new(), None);
            for (i, read) in frame.clone().chunks_mut(read_bytes).enumerate() {
                let mut events = engine.handle_input(read, Duration::ZERO);
                while let Some(event) = events.next_raw() {
                    let Ok(RawEvent::Data(data)) = event else {
                        panic!("{event:?}");
                    };
                    assert_eq!(data.ends, data.frame_bytes_left == 0);
                    left = Some(data.frame_bytes_left);
                    assert!(!data.is_empty() && data.len() <= read_bytes);
                    let whole_with_it = appended.len() + data.len();
                    if i % 2 == 0 {
                        data.append_to(&mut appended);
                    } else {
                        appended.extend_from_slice(data.unmask());
                    }
                    assert_eq!(appended.len(), whole_with_it);
                    let whole = payload.len() as u64;
                    assert_eq!(left, Some(whole - appended.len() as u64));
                }
            }
            assert_eq!((appended, left), (payload.clone(), Some(0)));
        }
    }
}

#[test]
fn a_message_begun_validated_and_ended_raw_does_not_affect_the_next() {
    let mut engine = engine_in(Situation::Idle, Role::Client);
    let mut begin = *b"\x01\x01\xe2";
    let mut events = engine.handle_input(&mut begin, Duration::ZERO);
    assert!(matches!(events.next(), Some(Ok(_))));
    let mut end = *b"\x80\x02\x82\xac";
    let mut events = engine.handle_input(&mut end, Duration::ZERO);
    assert!(matches!(events.next_raw(), Some(Ok(RawEvent::Data(_)))));
    for mut piece in [*b"\x01\x01a", *b"\x80\x01b"] {
        let mut events = engine.handle_input(&mut piece, Duration::ZERO);
        assert!(matches!(events.next(), Some(Ok(_))));
    }
}
