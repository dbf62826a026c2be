//! Connections that move while the client does not read.

use super::*;

fn backlog_bytes(mover: &mut Mover) -> usize {
    let id = mover.id;
    mover.reactor().status(id).unwrap().backlog_bytes
}

/// Sends output until `bytes` of it wait; returns all output.
fn fill(mover: &mut Mover, bytes: usize) -> Vec<u8> {
    let id = mover.id;
    let shared = numbered(0..100);
    let own = vec![9; 3_000];
    let mut output = Vec::new();
    while backlog_bytes(mover) < bytes {
        let mut connection = mover.reactor().connection(id).unwrap();
        connection.send_frames(&shared).unwrap();
        connection.send(Message::Binary(&own)).unwrap();
        connection.flush();
        output.extend_from_slice(&shared);
        output.extend(unmasked(0x2, &own));
    }
    output
}

fn roomy() -> Mover {
    let mut options = quiet();
    options.backlog_bytes_max = 10 << 20;
    Mover::with(LocalMessages::Collected, options, |adoption| adoption)
}

#[test]
fn output_that_waits_is_written_first_and_once() {
    let mut mover = roomy();
    let mut expected = fill(&mut mover, 1 << 20);
    let mut number = 0_u32;
    while mover.seen.output.len() < expected.len() {
        number += 1;
        let waits = backlog_bytes(&mut mover);
        mover.hand_over();
        assert_eq!(backlog_bytes(&mut mover), waits);
        // The shared frames are this connection's own here.
        assert!(mover.reactor().memory().backlog_bytes + 4_096 >= waits as u64);
        if number < 20 {
            let (id, text) = (mover.id, number.to_string());
            let mut connection = mover.reactor().connection(id).unwrap();
            connection.send(Message::Text(&text)).unwrap();
            connection.flush();
            expected.extend(unmasked(0x1, text.as_bytes()));
        }
        mover.read(10_007);
        mover.turn();
    }
    assert!(mover.seen.output == expected);
    assert!(number > 100, "{number}");
}

#[test]
fn the_end_of_a_backlog_is_reported_where_it_ends() {
    let mut mover = Mover::new(LocalMessages::Collected);
    let expected = fill(&mut mover, 1);
    mover.hand_over();
    let id = mover.id;
    let mut drained = false;
    while !drained {
        mover.read(usize::MAX);
        mover.reactor().turn().unwrap();
        while let Some(event) = mover.reactor().poll_event() {
            assert_eq!(event, LocalEvent::Drained { connection: id });
            drained = true;
        }
    }
    mover.settle();
    assert!(mover.seen.output == expected);
}

#[test]
fn a_full_backlog_stops_the_input_after_the_move_too() {
    let mut mover = Mover::new(LocalMessages::Collected);
    let mut expected = fill(&mut mover, 100 << 10);
    mover.client.write_all(&masked(0x1, b"Spam")).unwrap();
    mover.turn();
    mover.hand_over();
    mover.turn();
    assert!(mover.seen.messages.is_empty());
    mover.settle();
    assert_eq!(mover.seen.messages, [b"Spam"]);
    expected.extend(unmasked(0x1, b"Spam"));
    assert!(mover.seen.output == expected);
}

#[test]
fn shared_frames_that_have_not_begun_can_still_be_discarded() {
    let mut mover = roomy();
    let (id, frames) = (mover.id, numbered(0..200));
    let mut sent = 0;
    while backlog_bytes(&mut mover) < 2 * frames.len() {
        let mut connection = mover.reactor().connection(id).unwrap();
        connection.send_frames(&frames).unwrap();
        connection.flush();
        sent += 1;
    }
    mover.hand_over();
    let id = mover.id;
    let mut connection = mover.reactor().connection(id).unwrap();
    connection.discard_unsent();
    connection.flush();
    assert!(backlog_bytes(&mut mover) < 1_000);
    mover.settle();
    let output = &mover.seen.output;
    assert_eq!(output.len() % 1_000, 0);
    assert!(*output == frames.repeat(sent)[..output.len()]);
}
