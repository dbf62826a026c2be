//! Connections that move while they close.

use super::*;

#[test]
fn a_closing_handshake_moves_at_every_byte() {
    let answer = masked(0x8, &1_000_u16.to_be_bytes());
    for at in 0..answer.len() {
        let mut mover = Mover::new(LocalMessages::Collected);
        let id = mover.id;
        let mut connection = mover.reactor().connection(id).unwrap();
        connection.close(CloseCode::NORMAL, "bye").unwrap();
        mover.feed(&answer[..at]);
        mover.hand_over();
        assert_eq!(mover.seen.closed, None);
        mover.feed(&answer[at..]);
        assert_eq!(mover.seen.closed, Some(1_000), "at {at}");
        assert_eq!(mover.seen.output, unmasked(0x8, b"\x03\xe8bye"));
        assert_eq!(mover.reactor().connections(), 0);
    }
}

/// The Close frame that answers the peer's waits behind other output.
#[test]
fn an_answer_to_a_close_frame_moves_with_the_backlog() {
    let mut options = quiet();
    options.backlog_bytes_max = 10 << 20;
    let mut mover = Mover::with(LocalMessages::Collected, options, |adoption| adoption);
    let (id, frames) = (mover.id, numbered(0..20));
    let mut expected = Vec::new();
    while mover.reactor().status(id).unwrap().backlog_bytes == 0 {
        let mut connection = mover.reactor().connection(id).unwrap();
        connection.send_frames(&frames).unwrap();
        connection.flush();
        expected.extend_from_slice(&frames);
    }
    // The first fragment of a message that nothing completes.
    let mut wire = fragment(0x1, b"half", false);
    wire.extend(masked(0x8, &1_001_u16.to_be_bytes()));
    mover.client.write_all(&wire).unwrap();
    mover.turn();
    assert!(!mover.reactor().status(id).unwrap().is_open);
    mover.hand_over();
    mover.settle();
    expected.extend(unmasked(0x8, &1_001_u16.to_be_bytes()));
    assert!(mover.seen.output == expected);
    assert_eq!(mover.seen.closed, Some(1_001));
}

/// After an error, our stream has ended, and the client's is read to its end.
#[test]
fn a_failed_connection_moves_until_the_client_ends_it() {
    let mut mover = Mover::new(LocalMessages::Collected);
    // The mask is missing.
    mover.feed(b"\x81\x00");
    assert_eq!(mover.seen.output[2..4], 1_002_u16.to_be_bytes());
    for _ in 0..4 {
        mover.hand_over();
        mover.feed(b"ignored");
        let id = mover.id;
        let mut connection = mover.reactor().connection(id).unwrap();
        connection.discard_unsent();
        connection.flush();
        assert_eq!(mover.seen.closed, None);
    }
    mover.client.shutdown(std::net::Shutdown::Write).unwrap();
    mover.settle();
    assert_eq!(mover.seen.closed, Some(1_006));
}

#[test]
fn the_time_for_the_closing_handshake_continues() {
    let mut options = quiet();
    options.config.close_timeout = Duration::from_secs(1);
    let mut mover = Mover::with(LocalMessages::Collected, options, |adoption| adoption);
    let id = mover.id;
    let mut connection = mover.reactor().connection(id).unwrap();
    connection.close(CloseCode::NORMAL, "").unwrap();
    mover.settle();
    // If the state did not contain the time, it would begin again with each move.
    for _ in 0..50 {
        thread::sleep(Duration::from_millis(100));
        mover.turn();
        if mover.seen.closed.is_some() {
            break;
        }
        mover.hand_over();
    }
    assert_eq!(mover.seen.closed, Some(1_006));
}

#[test]
fn a_client_may_leave_between_export_and_import() {
    for left in [b"".to_vec(), b"\x81".to_vec(), masked(0x9, b"Spam")] {
        let mut mover = Mover::new(LocalMessages::Collected);
        let exported = mover.export().unwrap();
        mover.client.write_all(&left).unwrap();
        mover.client.shutdown(std::net::Shutdown::Both).unwrap();
        mover.now = 1;
        mover.import(exported);
        while mover.seen.closed.is_none() {
            mover.turn();
        }
        assert_eq!(mover.seen.closed, Some(1_006));
        assert_eq!(mover.reactor().connections(), 0);
    }
}

/// The old process may still have a descriptor of a socket when its connection ends in the new one.
#[test]
fn a_connection_ends_although_another_descriptor_is_open() {
    for driver in [DriverKind::default(), DriverKind::Portable] {
        let mut options = quiet();
        options.driver = driver;
        let mut mover = Mover::with(LocalMessages::Collected, options, |adoption| adoption);
        let exported = mover.export().unwrap();
        let _kept = exported.socket.try_clone().unwrap();
        mover.now = 1;
        mover.import(exported);
        mover.feed(&masked(0x8, &1_000_u16.to_be_bytes()));
        assert_eq!(mover.seen.closed, Some(1_000));
        // Neither reactor watches the socket, in which there is input.
        mover.client.write_all(b"ignored").unwrap();
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let _entered = runtime.enter();
        for reactor in &mut mover.reactors {
            reactor.turn().unwrap();
            assert_eq!(reactor.poll_timeout(), None);
            let descriptor = Descriptor(reactor.descriptor());
            #[expect(deprecated, reason = "the reactor is dropped after it")]
            let fd = AsyncFd::with_interest(descriptor, Interest::READABLE).unwrap();
            let wait = async {
                timeout(Duration::from_millis(50), fd.readable())
                    .await
                    .is_err()
            };
            assert!(runtime.block_on(wait), "{driver} is ready");
        }
    }
}
