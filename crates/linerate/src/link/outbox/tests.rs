use std::{sync::Arc, time::Duration};

use linerate_proto::{CloseCode, Config, Role};

use super::*;

fn engine() -> Engine<Side> {
    Engine::new(
        Side(Role::Server),
        Arc::new(Config::default()),
        Duration::ZERO,
    )
}

fn ping(outbox: &mut Outbox, engine: &mut Engine<Side>, payload: u8) {
    let mut input = [0x89, 0x81, 0, 0, 0, 0, payload];
    let mut events = engine.handle_input(&mut input, Duration::ZERO);
    assert!(matches!(
        events.next(),
        Some(Ok(linerate_proto::Event::Ping(_)))
    ));
    outbox.take_control(engine);
}

/// Takes at most `bytes` bytes from the outbox.
fn write(outbox: &mut Outbox, bytes: usize, wire: &mut Vec<u8>) {
    let all = outbox.slices().collect::<Vec<_>>().concat();
    assert_eq!(all.len(), outbox.len());
    let bytes = bytes.min(all.len());
    wire.extend_from_slice(&all[..bytes]);
    outbox.advance(bytes);
}

/// Takes everything from the outbox, `bytes` bytes at a time.
fn written(outbox: &mut Outbox, bytes: usize) -> Vec<u8> {
    let mut wire = Vec::new();
    while !outbox.is_empty() {
        write(outbox, bytes, &mut wire);
    }
    wire
}

/// Returns frames with `messages` payloads of `bytes` bytes each; every byte of a payload is its
/// number, counted from `first`.
fn frames(first: u8, messages: u8, bytes: usize) -> Frames {
    let mut wire = Vec::new();
    for number in 0..messages {
        Frames::append(&mut wire, MessageKind::Binary, &vec![first + number; bytes]);
    }
    Frames::from_framed(wire).unwrap()
}

/// Returns the opcode and the first payload byte of each frame; all bytes of a payload must be
/// equal.
fn read(wire: &[u8]) -> Vec<(u8, u8)> {
    let (mut at, mut read) = (0, Vec::new());
    while at < wire.len() {
        let (header, prefix) = Header::decode(&wire[at..])
            .unwrap()
            .expect("a whole header");
        let end = at + prefix + header.payload_bytes as usize;
        let payload = &wire[at + prefix..end];
        assert!(
            payload.windows(2).all(|two| two[0] == two[1]),
            "a torn frame"
        );
        read.push((wire[at] & 0x0F, payload.first().copied().unwrap_or(0)));
        at = end;
    }
    read
}

#[test]
fn pongs_overtake_data_and_keep_their_order() {
    let (mut outbox, mut engine) = (Outbox::default(), engine());
    outbox.push(&mut engine, "ab".into()).unwrap();
    outbox.push(&mut engine, "cd".into()).unwrap();
    outbox.advance(1);
    ping(&mut outbox, &mut engine, b'1');
    ping(&mut outbox, &mut engine, b'2');
    assert_eq!(
        written(&mut outbox, 3),
        b"\x02ab\x8a\x011\x8a\x012\x81\x02cd"
    );
}

#[test]
fn pongs_wait_for_the_end_of_a_large_payload() {
    let (mut outbox, mut engine) = (Outbox::default(), engine());
    let payload = vec![b'x'; COPIED_BYTES_MAX + 1];
    outbox.push(&mut engine, payload.clone().into()).unwrap();
    outbox.push(&mut engine, "cd".into()).unwrap();
    outbox.advance(1);
    ping(&mut outbox, &mut engine, b'1');
    ping(&mut outbox, &mut engine, b'2');
    let wire = written(&mut outbox, 1_000);
    assert_eq!(wire[3..3 + payload.len()], payload);
    assert_eq!(wire[3 + payload.len()..], *b"\x8a\x011\x8a\x012\x81\x02cd");
}

#[test]
fn large_payloads_behind_each_other_are_not_copied() {
    let (mut outbox, mut engine) = (Outbox::default(), engine());
    let payloads = [1, 2, 3].map(|number| vec![number; COPIED_BYTES_MAX + 1]);
    for payload in payloads {
        let address = payload.as_ptr();
        outbox.push(&mut engine, payload.into()).unwrap();
        let last = outbox.slices().last().unwrap();
        assert_eq!(last.as_ptr(), address);
    }
    assert_eq!(read(&written(&mut outbox, 1_000)), [(2, 1), (2, 2), (2, 3)]);
}

#[test]
fn shared_frames_are_copied_if_small_and_referred_to_if_large() {
    let (mut outbox, mut engine) = (Outbox::default(), engine());
    let small = frames(0, 1, SHARED_COPIED_BYTES_MAX - 4);
    outbox.push_frames(&mut engine, &small).unwrap();
    assert!(outbox.first().is_none());
    let large = frames(0, 1, SHARED_COPIED_BYTES_MAX - 3);
    outbox.push_frames(&mut engine, &large).unwrap();
    let last = outbox.slices().last().unwrap();
    assert_eq!(last.as_ptr(), large.as_bytes().as_ptr());
    let expected = [small.as_bytes(), large.as_bytes()].concat();
    assert!(written(&mut outbox, 999) == expected);
}

/// Queues small and large shared frames among small and large ordinary messages; returns the
/// numbers of the messages.
fn push_mixture(outbox: &mut Outbox, engine: &mut Engine<Side>) -> Vec<(u8, u8)> {
    outbox.push(engine, vec![1; 10].into()).unwrap();
    outbox.push_frames(engine, &frames(2, 3, 10)).unwrap();
    outbox.push_frames(engine, &frames(5, 3, 2_000)).unwrap();
    outbox.push_frames(engine, &frames(8, 1, 5_000)).unwrap();
    outbox.push(engine, vec![9; 10].into()).unwrap();
    let large = vec![10; COPIED_BYTES_MAX + 1];
    outbox.push(engine, large.into()).unwrap();
    outbox.push_frames(engine, &frames(11, 2, 3_000)).unwrap();
    outbox.push_frames(engine, &frames(13, 1, 1)).unwrap();
    (1..=13).map(|number| (2, number)).collect()
}

/// Returns every position near a frame boundary, and many in between.
fn places_to_stop(wire: &[u8]) -> impl Iterator<Item = usize> {
    let mut boundaries = vec![0];
    while let Some(at) = boundaries.last().filter(|at| **at < wire.len()) {
        let (header, prefix) = Header::decode(&wire[*at..]).unwrap().unwrap();
        boundaries.push(at + prefix + header.payload_bytes as usize);
    }
    let is_near = move |at: usize| {
        boundaries
            .iter()
            .any(|boundary| boundary.abs_diff(at) <= 20)
    };
    (0..wire.len()).filter(move |at| at % 101 == 0 || is_near(*at))
}

#[test]
fn a_mixture_keeps_its_order_wherever_a_write_ends() {
    let (mut outbox, mut engine) = (Outbox::default(), engine());
    let expected = push_mixture(&mut outbox, &mut engine);
    let whole = written(&mut outbox, usize::MAX);
    assert_eq!(read(&whole), expected);
    for bytes in [1, 2, 3, 7, 100, 1_999, 4_096, 30_000] {
        push_mixture(&mut outbox, &mut engine);
        assert!(written(&mut outbox, bytes) == whole, "{bytes}");
    }
    for first in places_to_stop(&whole) {
        push_mixture(&mut outbox, &mut engine);
        let mut wire = Vec::new();
        write(&mut outbox, first, &mut wire);
        assert_eq!(outbox.len(), whole.len() - first);
        write(&mut outbox, usize::MAX, &mut wire);
        assert!(outbox.is_empty() && wire == whole, "{first}");
    }
}

#[test]
fn k04_pongs_come_at_the_next_frame_boundary_wherever_a_write_ends() {
    let (mut outbox, mut engine) = (Outbox::default(), engine());
    let expected = push_mixture(&mut outbox, &mut engine);
    let whole = written(&mut outbox, usize::MAX);
    let mut ends = vec![0];
    for first in places_to_stop(&whole) {
        outbox = Outbox::default();
        push_mixture(&mut outbox, &mut engine);
        let mut wire = Vec::new();
        write(&mut outbox, first, &mut wire);
        ping(&mut outbox, &mut engine, b'1');
        write(&mut outbox, first % 5, &mut wire);
        ping(&mut outbox, &mut engine, b'2');
        wire.extend(written(&mut outbox, 10_000));
        let frames = read(&wire);
        let pong = |payload| frames.iter().position(|frame| *frame == (0xA, payload));
        let (one, two) = (pong(b'1').unwrap(), pong(b'2').unwrap());
        let data: Vec<_> = frames
            .iter()
            .copied()
            .filter(|(opcode, _)| *opcode == 2)
            .collect();
        assert_eq!(data, expected, "{first}");
        // The first answer comes directly after the frames that were started when it was queued.
        if read_begun(&whole, first) != *ends.last().unwrap() {
            ends.push(read_begun(&whole, first));
        }
        assert_eq!(one, *ends.last().unwrap(), "{first}");
        assert!(two == one + 1 || two == one + 2, "{first}: {one}, {two}");
    }
    assert_eq!(ends, (0..=13).collect::<Vec<_>>());
}

/// Returns how many frames of `wire` are started once `bytes` bytes have been written.
fn read_begun(wire: &[u8], bytes: usize) -> usize {
    let (mut at, mut begun) = (0, 0);
    while at < bytes {
        let (header, prefix) = Header::decode(&wire[at..]).unwrap().unwrap();
        at += prefix + header.payload_bytes as usize;
        begun += 1;
    }
    begun
}

#[test]
fn only_what_is_begun_and_a_close_follow_where_the_rest_is_discarded() {
    let (mut outbox, mut first_engine) = (Outbox::default(), engine());
    let expected = push_mixture(&mut outbox, &mut first_engine);
    let whole = written(&mut outbox, usize::MAX);
    for first in places_to_stop(&whole) {
        let (mut outbox, mut engine) = (Outbox::default(), engine());
        push_mixture(&mut outbox, &mut engine);
        let mut wire = Vec::new();
        write(&mut outbox, first, &mut wire);
        outbox.discard_unbegun();
        let begun = read_begun(&whole, first);
        let is_whole = read_begun(&whole, first + 1) > begun;
        assert_eq!(outbox.is_empty(), is_whole, "{first}");
        let code = CloseCode::new(1013).unwrap();
        engine.close(code, "", Duration::ZERO).unwrap();
        outbox.take_control(&mut engine);
        wire.extend(written(&mut outbox, 777));
        assert_eq!(wire[wire.len() - 4..], *b"\x88\x02\x03\xf5", "{first}");
        assert_eq!(read(&wire[..wire.len() - 4]), expected[..begun], "{first}");
    }
}

#[test]
fn a_close_comes_behind_shared_frames_and_nothing_behind_it() {
    let (mut outbox, mut engine) = (Outbox::default(), engine());
    let expected = push_mixture(&mut outbox, &mut engine);
    let mut wire = Vec::new();
    write(&mut outbox, 4_000, &mut wire);
    engine
        .close(CloseCode::new(3001).unwrap(), "", Duration::ZERO)
        .unwrap();
    outbox.take_control(&mut engine);
    let late = outbox.push_frames(&mut engine, &frames(99, 1, 1));
    assert_eq!(late, Err(SendError::Closed));
    let message = vec![98; COPIED_BYTES_MAX + 1];
    assert!(outbox.push(&mut engine, message.into()).is_err());
    wire.extend(written(&mut outbox, 777));
    assert_eq!(wire[wire.len() - 4..], *b"\x88\x02\x0b\xb9");
    assert_eq!(read(&wire[..wire.len() - 4]), expected);
}

#[test]
fn shared_frames_do_not_come_into_the_middle_of_a_message() {
    let (mut outbox, mut engine) = (Outbox::default(), engine());
    let kind = MessageKind::Text;
    outbox
        .push_fragment(&mut engine, kind, b"a", false)
        .unwrap();
    let refused = outbox.push_frames(&mut engine, &frames(1, 1, 1));
    assert_eq!(refused, Err(SendError::MessageInProgress));
    outbox.push_fragment(&mut engine, kind, b"b", true).unwrap();
    outbox.push_frames(&mut engine, &frames(1, 1, 1)).unwrap();
    assert_eq!(written(&mut outbox, 9), b"\x01\x01a\x80\x01b\x82\x01\x01");
}

#[test]
fn pongs_come_between_the_fragments_of_a_large_message_and_before_shared_frames() {
    let (mut outbox, mut engine) = (Outbox::default(), engine());
    outbox
        .push_frames(&mut engine, &frames(1, 2, 5_000))
        .unwrap();
    // No frame is started yet, so the answer comes first.
    ping(&mut outbox, &mut engine, b'1');
    ping(&mut outbox, &mut engine, b'2');
    let mut wire = Vec::new();
    write(&mut outbox, 7, &mut wire);
    // Now the first frame is started.
    ping(&mut outbox, &mut engine, b'3');
    wire.extend(written(&mut outbox, 5_003));
    let expected = [(0xA, b'1'), (0xA, b'2'), (2, 1), (0xA, b'3'), (2, 2)];
    assert_eq!(read(&wire), expected);
}

#[test]
fn a_queue_that_is_never_empty_does_not_grow() {
    let (mut outbox, mut engine) = (Outbox::default(), engine());
    let mut wire = Vec::new();
    outbox.push(&mut engine, vec![0; 300].into()).unwrap();
    for number in 1..10_000_usize {
        outbox
            .push(&mut engine, vec![number as u8; 300].into())
            .unwrap();
        if number % 100 == 0 {
            ping(&mut outbox, &mut engine, number as u8);
        }
        let bytes = 304.min(outbox.len() - 1);
        wire.extend_from_slice(&outbox.front[outbox.sent..][..bytes]);
        outbox.advance(bytes);
        assert!(outbox.front.capacity() <= 4 * FORGOTTEN_BYTES_MIN);
    }
    wire.extend(written(&mut outbox, 1_000));
    let frames = read(&wire);
    let (pongs, data): (Vec<_>, Vec<_>) = frames.iter().partition(|(opcode, _)| *opcode == 0xA);
    assert_eq!((data.len(), pongs.len()), (10_000, 99));
    let in_order = |(number, frame): (usize, &(u8, u8))| frame.1 == number as u8;
    assert!(data.iter().enumerate().all(in_order));
}

#[test]
fn a_queue_of_shared_frames_that_is_never_empty_does_not_grow() {
    let (mut outbox, mut engine) = (Outbox::default(), engine());
    let (small, large) = (frames(1, 1, 100), frames(2, 5, 2_000));
    for turn in 0..10_000 {
        outbox.push_frames(&mut engine, &small).unwrap();
        outbox.push_frames(&mut engine, &large).unwrap();
        let bytes = outbox.len() - 1_000;
        outbox.advance(bytes);
        if turn % 7 == 0 {
            ping(&mut outbox, &mut engine, 7);
        }
        assert!(outbox.segments().count() <= 4);
        assert!(outbox.front.capacity() <= 4 * FORGOTTEN_BYTES_MIN);
    }
}

#[test]
fn a_flood_of_pings_costs_a_bounded_queue() {
    let (mut outbox, mut engine) = (Outbox::default(), engine());
    for number in 0..100_000 {
        ping(&mut outbox, &mut engine, number as u8);
    }
    assert!(outbox.len() < CONTROL_BYTES_MAX as usize + 127);
    written(&mut outbox, 1 << 20);
    outbox.take_control(&mut engine);
    assert_eq!(
        written(&mut outbox, 1 << 20),
        [0x8A, 1, (99_999 % 256) as u8]
    );
}
