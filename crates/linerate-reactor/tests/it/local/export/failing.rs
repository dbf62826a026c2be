//! Moves that fail.

use linerate_reactor::{ImportError, portable};
use linerate_testkit::Rng;

use super::*;

#[test]
fn a_connection_is_taken_back_if_the_other_process_does_not_take_it() {
    let wire = script();
    let still = run(Mover::new(LocalMessages::Collected), wire.chunks(50), false);
    let mut mover = Mover::new(LocalMessages::Collected);
    for piece in wire.chunks(50) {
        mover.feed(piece);
        let exported = mover.export().unwrap();
        // The other process gets a duplicate, and fails: closing it does not end the connection.
        let duplicate = exported.socket.try_clone().unwrap();
        let other = &mut mover.reactors[1];
        let cut = &exported.state[..exported.state.len() - 1];
        let refused = other.import(duplicate, cut, &ImportOptions::new());
        let is_truncated = matches!(
            refused,
            Err(ImportError::State(portable::ImportError::Truncated { .. }))
        );
        assert!(is_truncated, "{refused:?}");
        assert_eq!(other.connections(), 0);
        assert_eq!(other.memory(), Default::default());
        // It may also end after it has imported the connection.
        let duplicate = exported.socket.try_clone().unwrap();
        let mut third = LocalReactor::new(quiet()).unwrap();
        let imported = third.import(duplicate, &exported.state, &ImportOptions::new());
        imported.unwrap();
        drop(third);
        mover.import(exported);
    }
    mover.settle();
    assert_eq!(mover.seen, still);
}

#[test]
fn dropping_the_socket_of_an_export_closes_one_descriptor_only() {
    let mut mover = Mover::new(LocalMessages::Collected);
    let mut exported = mover.export().unwrap();
    let kept = exported.socket.try_clone().unwrap();
    drop(std::mem::replace(&mut exported.socket, kept));
    mover.now = 1;
    mover.import(exported);
    mover.feed(&masked(0x1, b"Spam"));
    assert_eq!(mover.seen.output, unmasked(0x1, b"Spam"));
}

#[test]
fn a_message_beyond_the_limit_of_the_new_process_fails_the_connection() {
    for sent in [10, 100] {
        let mut mover = Mover::new(LocalMessages::Collected);
        mover.feed(&masked(0x2, &[1; 200])[..sent]);
        let mut config = Config::default();
        config.limits.message_bytes_max = 50;
        mover.options = ImportOptions::new().with_config(Arc::new(config));
        mover.hand_over();
        mover.settle();
        assert_eq!(mover.seen.output[2..4], 1_009_u16.to_be_bytes());
        mover.client.shutdown(std::net::Shutdown::Write).unwrap();
        mover.settle();
        assert!(mover.seen.closed.is_some());
    }
}

#[test]
fn states_are_not_printed() {
    let mut mover = Mover::new(LocalMessages::Collected);
    mover.feed(&masked(0x1, b"secret")[..8]);
    let exported = mover.export().unwrap();
    let bytes = exported.state.len();
    let printed = format!("{:?}", exported.state);
    assert_eq!(printed, format!("ExportedState({bytes} bytes)"));
}

/// Returns the state of a connection with output of each kind and with input that waits.
fn full() -> Vec<u8> {
    let mut mover = Mover::new(LocalMessages::Collected);
    let (id, frames) = (mover.id, numbered(0..6));
    while mover.reactor().status(id).unwrap().backlog_bytes == 0 {
        let mut connection = mover.reactor().connection(id).unwrap();
        connection.send_frames(&frames).unwrap();
        connection.flush();
    }
    let mut connection = mover.reactor().connection(id).unwrap();
    connection.pause();
    connection.send(Message::Text("Spam")).unwrap();
    connection.send_frames(&frames).unwrap();
    connection.flush();
    mover.export().unwrap().state.to_vec()
}

/// Imports `state`, uses the connection, and ends it.
fn import(reactor: &mut LocalReactor, state: &[u8], wire: &[u8]) -> Result<(), ImportError> {
    let (socket, mut client) = UnixStream::pair().unwrap();
    let imported = reactor.import(socket, state, &ImportOptions::new());
    // This fails if a connection in this state is over.
    _ = client.write_all(wire);
    reactor.turn().unwrap();
    if let Ok(id) = imported
        && let Some(mut connection) = reactor.connection(id)
    {
        connection.discard_unsent();
        _ = connection.send(Message::Text("Spam"));
        connection.flush();
        if let Ok(exported) = reactor.export(id, Version::NEWEST) {
            let options = ImportOptions::new();
            let id = reactor.import(exported.socket, &exported.state, &options);
            // A connection that is over ends at once.
            if let Some(mut connection) = reactor.connection(id.unwrap()) {
                connection.resume();
                connection.flush();
            }
        }
    }
    drop(client);
    while reactor.connections() > 0 {
        reactor.turn().unwrap();
        while reactor.poll_event().is_some() {}
    }
    while reactor.poll_event().is_some() {}
    assert_eq!(reactor.memory(), Default::default());
    imported.map(drop)
}

#[test]
fn damaged_states_are_refused_or_those_of_another_connection() {
    let mut rng = Rng::new(19);
    let mut states = vec![full()];
    let wire = script();
    for at in [0, 1, 90, 150, 200, wire.len() - 3] {
        let mut mover = Mover::new(LocalMessages::Collected);
        mover.feed(&wire[..at]);
        states.push(mover.export().unwrap().state.to_vec());
    }
    let mut reactor = LocalReactor::new(quiet()).unwrap();
    for state in states {
        import(&mut reactor, &state, &wire).unwrap();
        let step = (state.len() / 300).max(1);
        for end in (0..state.len()).step_by(step) {
            let error = import(&mut reactor, &state[..end], &wire).unwrap_err();
            assert!(matches!(error, ImportError::State(_)), "{error:?}");
        }
        let longer = [&state[..], b"x"].concat();
        let refused = import(&mut reactor, &longer, &wire);
        let trailing = portable::ImportError::Trailing { bytes: 1 };
        assert!(matches!(refused, Err(ImportError::State(error)) if error == trailing));
        for _ in 0..500 {
            let mut changed = state.clone();
            for _ in 0..=rng.below(3) {
                // Most fields are at the start.
                let at = rng.below(state.len());
                let at = if rng.below(2) == 0 { at % 120 } else { at };
                changed[at.min(state.len() - 1)] = *rng.pick(&[0, 1, 2, 3, 0x7f, 0x80, 0xff]);
            }
            _ = import(&mut reactor, &changed, &wire);
        }
    }
}
