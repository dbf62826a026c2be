//! Responses that are streamed.

use std::io::{Read, Write};

use linerate_reactor::{ExportError, portable::Version};

use super::*;

/// Adopts a stream.
fn stream(owner: &mut Owner) -> (ConnectionId, UnixStream) {
    let (socket, client) = UnixStream::pair().unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.set_write_timeout(Some(PATIENCE)).unwrap();
    let id = owner.reactor.adopt_stream(socket).unwrap();
    (id, client)
}

fn send(owner: &mut Owner, id: ConnectionId, bytes: &[u8]) {
    let mut stream = owner.reactor.stream(id).unwrap();
    stream.send(bytes);
    stream.flush();
}

fn end(owner: &mut Owner, id: ConnectionId) {
    let mut stream = owner.reactor.stream(id).unwrap();
    stream.end();
    stream.flush();
}

/// Fills the socket, and more; returns what was sent.
fn fill(owner: &mut Owner, id: ConnectionId) -> Vec<u8> {
    // Each byte looks like the header of a frame that is incomplete or invalid.
    let block: Vec<u8> = (0..50_000).map(|number| (number % 251) as u8).collect();
    let shared = Bytes::from(block.clone());
    let mut sent = Vec::new();
    while owner.reactor.status(id).unwrap().backlog_bytes < 2 * block.len() {
        let mut stream = owner.reactor.stream(id).unwrap();
        stream.send(b"small");
        stream.send_shared(&shared);
        stream.flush();
        sent.extend_from_slice(b"small");
        sent.extend_from_slice(&block);
        owner.reactor.turn().unwrap();
    }
    sent
}

fn is_closed(event: &LocalEvent, id: ConnectionId) -> bool {
    matches!(event, LocalEvent::Closed { connection, .. } if *connection == id)
}

fn bytes_are_sent_as_they_are_until_the_end(driver: DriverKind) {
    let mut owner = Owner::quiet(driver);
    let (id, mut client) = stream(&mut owner);
    send(&mut owner, id, b"one");
    let mut stream = owner.reactor.stream(id).unwrap();
    stream.send(b"two");
    stream.end();
    stream.send(b"late");
    stream.send_shared(&vec![0; 10_000].into());
    stream.flush();
    assert!(!owner.reactor.status(id).unwrap().is_open);
    let mut received = Vec::new();
    client.read_to_end(&mut received).unwrap();
    assert_eq!(received, b"onetwo");
    drop(client);
    assert!(is_closed(&owner.next(), id));
    assert_eq!(owner.reactor.connections(), 0);
    assert_eq!(owner.reactor.take_traffic().bytes_sent, 6);
}

fn a_stream_is_no_websocket(driver: DriverKind) {
    let mut owner = Owner::quiet(driver);
    let (id, _client) = stream(&mut owner);
    let (websocket, _other) = owner.collected(b"");
    assert!(owner.reactor.connection(id).is_none());
    assert!(owner.reactor.stream(websocket).is_none());
    let exported = owner.reactor.export(id, Version::NEWEST);
    assert_eq!(exported.unwrap_err(), ExportError::Stream);
    assert!(owner.reactor.status(id).unwrap().is_open);
}

fn a_slow_reader_gets_everything_and_the_drain_is_reported(driver: DriverKind) {
    let mut owner = Owner::quiet(driver);
    let (id, mut client) = stream(&mut owner);
    let mut sent = fill(&mut owner, id);
    // Most of it waits in the shared memory.
    assert!(owner.reactor.memory().backlog_bytes < 50_000);
    let bytes = sent.len();
    let reader = thread::spawn(move || {
        let mut received = vec![0; bytes];
        client.read_exact(&mut received).unwrap();
        (client, received)
    });
    assert_eq!(owner.next(), LocalEvent::Drained { connection: id });
    let (mut client, received) = reader.join().unwrap();
    assert!(received == sent);
    sent = fill(&mut owner, id);
    end(&mut owner, id);
    let reader = thread::spawn(move || {
        let mut received = Vec::new();
        client.read_to_end(&mut received).unwrap();
        received
    });
    owner.until(|event| is_closed(event, id));
    assert!(reader.join().unwrap() == sent);
}

fn input_is_ignored_and_takes_no_memory(driver: DriverKind) {
    let mut owner = Owner::quiet(driver);
    let (id, mut client) = stream(&mut owner);
    let writer = thread::spawn(move || {
        for _ in 0..100 {
            client.write_all(&[0x81; 100_000]).unwrap();
        }
        client
    });
    while !writer.is_finished() {
        owner.reactor.turn().unwrap();
        assert_eq!(owner.reactor.status(id).unwrap().input_bytes, 0);
    }
    send(&mut owner, id, b"still here");
    let mut client = writer.join().unwrap();
    let mut received = [0; 10];
    client.read_exact(&mut received).unwrap();
    assert_eq!(&received, b"still here");
    assert_eq!(owner.reactor.poll_event(), None);
    assert_eq!(owner.reactor.memory().input_bytes, 0);
}

fn a_reader_that_closes_its_side_is_gone_even_if_output_waits(driver: DriverKind) {
    let mut owner = Owner::quiet(driver);
    let (id, client) = stream(&mut owner);
    send(&mut owner, id, b"one");
    client.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(is_closed(&owner.next(), id));
    let (id, client) = stream(&mut owner);
    fill(&mut owner, id);
    drop(client);
    owner.until(|event| is_closed(event, id));
    assert_eq!(owner.reactor.memory().backlog_bytes, 0);
}

fn a_reader_that_never_reads_ends_after_the_write_timeout(driver: DriverKind) {
    let mut options = Options::default();
    options.driver = driver;
    options.write_timeout = Duration::from_secs(1);
    options.backlog_bytes_max = 64 << 10;
    let mut owner = Owner::new(options);
    let (id, _client) = stream(&mut owner);
    fill(&mut owner, id);
    owner.until(|event| is_closed(event, id));
}

fn a_reader_that_does_not_close_has_the_close_timeout(driver: DriverKind) {
    let mut options = Options::default();
    options.driver = driver;
    options.config.close_timeout = Duration::from_secs(1);
    let mut owner = Owner::new(options);
    let (id, mut client) = stream(&mut owner);
    send(&mut owner, id, b"last");
    end(&mut owner, id);
    owner.until(|event| is_closed(event, id));
    let mut received = Vec::new();
    client.read_to_end(&mut received).unwrap();
    assert_eq!(received, b"last");
}

fn long_pieces_that_wait_are_discarded_as_a_whole(driver: DriverKind) {
    let mut owner = Owner::quiet(driver);
    let (id, mut client) = stream(&mut owner);
    // Nothing waits.
    let mut stream = owner.reactor.stream(id).unwrap();
    stream.send(b"small");
    stream.discard_unsent();
    stream.flush();
    fill(&mut owner, id);
    let mut stream = owner.reactor.stream(id).unwrap();
    stream.discard_unsent();
    stream.send(b"last");
    stream.end();
    stream.flush();
    // A piece that has been written in part remains.
    assert!(owner.reactor.status(id).unwrap().backlog_bytes < 51_000);
    let reader = thread::spawn(move || {
        let mut received = Vec::new();
        client.read_to_end(&mut received).unwrap();
        received
    });
    owner.until(|event| is_closed(event, id));
    let received = reader.join().unwrap();
    let pieces = received.strip_suffix(b"last").unwrap();
    let small = pieces.windows(5).filter(|five| five == b"small").count();
    let long = pieces.len() - 5 * small;
    assert!(
        small > 2 && long > 0 && long % 50_000 == 0,
        "{small} {long}"
    );
    assert_eq!(owner.reactor.memory().backlog_bytes, 0);
}

on_each_driver! {
    bytes_are_sent_as_they_are_until_the_end,
    a_stream_is_no_websocket,
    a_slow_reader_gets_everything_and_the_drain_is_reported,
    input_is_ignored_and_takes_no_memory,
    a_reader_that_closes_its_side_is_gone_even_if_output_waits,
    a_reader_that_never_reads_ends_after_the_write_timeout,
    a_reader_that_does_not_close_has_the_close_timeout,
    long_pieces_that_wait_are_discarded_as_a_whole,
}
