//! Messages in records of all sizes, however they arrive.

use std::{
    io::{ErrorKind, Read, Write},
    net::Shutdown,
    thread,
    time::Duration,
};

use linerate_reactor::{Options, rustls};
use linerate_testkit::Rng;

use super::Encrypted;
use crate::support::{close, fragment, masked, unmasked, wait_until};

#[test]
fn every_way_to_cut_records_comes_to_the_same() {
    let server = Encrypted::echo();
    let parts = [
        [
            masked(0x1, b"Spam"),
            masked(0x9, b"ping"),
            fragment(0x2, b"ab", false),
        ]
        .concat(),
        [
            fragment(0x0, b"cd", true),
            masked(0x1, b"over")[..5].to_vec(),
        ]
        .concat(),
        [masked(0x1, b"over")[5..].to_vec(), masked(0x8, b"\x03\xe8")].concat(),
    ];
    let expected = [
        unmasked(0x1, b"Spam"),
        unmasked(0xA, b"ping"),
        unmasked(0x2, b"abcd"),
        unmasked(0x1, b"over"),
        close(1000),
    ]
    .concat();
    let mut at = 0;
    loop {
        let mut client = server.open();
        let wire = parts.iter().flat_map(|part| client.stream.encrypt(part));
        let wire: Vec<u8> = wire.collect();
        if at == wire.len() {
            break;
        }
        let mut tcp = &client.stream.tcp.stream;
        tcp.write_all(&wire[..at]).unwrap();
        if at % 8 == 0 {
            // This lets the two parts arrive in two reads, at least some of the time.
            thread::sleep(Duration::from_millis(3));
        }
        tcp.write_all(&wire[at..]).unwrap();
        assert_eq!(client.rest(), expected, "cut at {at}");
        at += 1;
    }
}

#[test]
fn records_that_arrive_byte_by_byte_are_read() {
    let server = Encrypted::echo();
    let mut client = server.open();
    client.stream.tcp.write_bytes_max = 1;
    for bytes in [0, 1, 3_000] {
        let payload = vec![b'x'; bytes];
        client.send(&masked(0x1, &payload));
        assert_eq!(client.frame(), (0x81, payload));
    }
}

#[test]
fn messages_over_many_records_come_back() {
    let mut options = Options::default();
    options.config.limits.message_bytes_max = 16 << 20;
    let server = Encrypted::start(options, |_| {});
    let mut rng = Rng::new(3);
    for bytes in [16_383, 16_384, 16_385, 300_000, 16 << 20] {
        let mut client = server.open();
        let payload = rng.bytes(bytes);
        // The kernel cannot buffer all of it, so data has to move in both directions.
        let wire = client.stream.encrypt_all(&masked(0x2, &payload));
        let mut sending = client.stream.tcp.stream.try_clone().unwrap();
        let sender = thread::spawn(move || sending.write_all(&wire).unwrap());
        let (opcode, received) = client.frame();
        assert!(
            opcode == 0x82 && received == payload,
            "{bytes} bytes differ"
        );
        sender.join().unwrap();
    }
}

#[test]
fn answers_to_one_read_share_records() {
    let server = Encrypted::echo();
    let mut client = server.open();
    client.round_trip();
    for (messages, records_max) in [(1, 1), (500, 1), (4_000, 3)] {
        let wire = client
            .stream
            .encrypt_all(&masked(0x1, b"12345678").repeat(messages));
        client.stream.tcp.stream.write_all(&wire).unwrap();
        let expected = unmasked(0x1, b"12345678").repeat(messages);
        let (answer, records) = client.stream.read_records(expected.len());
        assert!(answer == expected);
        // Input of more than one record may arrive in more than one read.
        let reads = wire.len().div_ceil(1 << 14);
        assert!(records <= records_max * reads, "{records} records");
    }
}

#[test]
fn publications_are_encrypted_for_each_subscriber() {
    let server = Encrypted::echo();
    let mut clients: Vec<_> = (0..3).map(|_| server.open()).collect();
    for _ in 0..20 {
        clients[0].send(&masked(0x1, b"publish"));
        clients[1].send(&masked(0x1, b"publish to one"));
        for client in &mut clients {
            let mut received: Vec<_> = (0..3).map(|_| client.frame()).collect();
            received.sort();
            let expected = [
                (0x81, b"second".to_vec()),
                (0x82, vec![1; 6_000]),
                (0x82, vec![1; 40_000]),
            ];
            assert!(received == expected);
        }
    }
}

#[test]
fn plaintext_waits_while_input_is_paused() {
    let server = Encrypted::echo();
    let mut client = server.open();
    let after = [masked(0x1, b"pause"), masked(0x1, b"one")].concat();
    client.send(&after);
    wait_until(|| server.log.lock().unwrap().paused.is_some());
    client.send(&masked(0x1, b"two"));
    let tcp = &client.stream.tcp.stream;
    tcp.set_read_timeout(Some(Duration::from_millis(50)))
        .unwrap();
    let early = client.stream.read(&mut [0]).unwrap_err();
    assert_eq!(early.kind(), ErrorKind::WouldBlock);
    let tcp = &client.stream.tcp.stream;
    tcp.set_read_timeout(Some(crate::support::PATIENCE))
        .unwrap();
    let paused = server.log.lock().unwrap().paused.unwrap();
    assert!(server.running.remote.resume(paused));
    assert_eq!(client.frame(), (0x81, b"one".to_vec()));
    assert_eq!(client.frame(), (0x81, b"two".to_vec()));
}

#[test]
fn a_backlog_of_records_is_written_in_order() {
    let server = Encrypted::echo();
    let mut client = server.open();
    let mut rng = Rng::new(4);
    let payloads: Vec<Vec<u8>> = (0..60).map(|_| rng.bytes(200_000)).collect();
    let wire: Vec<u8> = payloads
        .iter()
        .flat_map(|bytes| masked(0x2, bytes))
        .collect();
    let wire = client.stream.encrypt_all(&wire);
    let mut sending = client.stream.tcp.stream.try_clone().unwrap();
    let sender = thread::spawn(move || sending.write_all(&wire).unwrap());
    // Long enough for the sockets to fill up in both directions.
    thread::sleep(Duration::from_millis(200));
    for payload in payloads {
        assert!(client.frame() == (0x82, payload));
    }
    sender.join().unwrap();
}

#[test]
fn close_notify_ends_the_stream_in_both_directions() {
    let server = Encrypted::echo();
    let mut client = server.open();
    client.stream.tls.send_close_notify();
    client.stream.flush().unwrap();
    // An end without close_notify would be an error here.
    assert_eq!(client.rest(), b"");
    wait_until(|| !server.log.lock().unwrap().closed.is_empty());
    assert!(!server.log.lock().unwrap().closed[0].clean);

    let mut client = server.open();
    server.running.remote.shut_down();
    assert_eq!(client.frame().0, 0x88);
    client.send(&masked(0x8, b"\x03\xe9"));
    assert_eq!(client.rest(), b"");
}

#[test]
fn what_follows_close_notify_is_ignored() {
    let server = Encrypted::echo();
    let mut client = server.open();
    let mut wire = client.stream.encrypt(&masked(0x1, b"before"));
    client.stream.tls.send_close_notify();
    client.stream.tls.write_tls(&mut wire).unwrap();
    wire.extend(b"\x17\x03\x03\x00\x20 and whatever somebody puts there");
    client.stream.tcp.stream.write_all(&wire).unwrap();
    assert_eq!(client.frame(), (0x81, b"before".to_vec()));
    wait_until(|| server.log.lock().unwrap().closed.len() == 1);
}

#[test]
fn t03_an_end_without_close_notify_is_abnormal() {
    let server = Encrypted::echo();
    let mut client = server.open();
    client.round_trip();
    client.stream.tcp.stream.shutdown(Shutdown::Write).unwrap();
    wait_until(|| !server.log.lock().unwrap().closed.is_empty());
    let closed = server.log.lock().unwrap().closed[0];
    assert_eq!((closed.code, closed.clean), (1006, false));
}

#[test]
fn a_forged_record_ends_the_connection_behind_what_came_before() {
    let server = Encrypted::echo();
    let mut client = server.open();
    let mut wire = client.stream.encrypt(&masked(0x1, b"genuine"));
    let mut forged = client.stream.encrypt(&masked(0x1, b"forged"));
    forged[10] ^= 1;
    wire.extend(forged);
    client.stream.tcp.stream.write_all(&wire).unwrap();
    let genuine = unmasked(0x1, b"genuine");
    assert_eq!(client.stream.read_records(genuine.len()).0, genuine);
    let alert = client.stream.read(&mut [0]).unwrap_err();
    let alert = alert
        .into_inner()
        .unwrap()
        .downcast::<rustls::Error>()
        .unwrap();
    let expected = rustls::AlertDescription::BadRecordMac;
    assert_eq!(*alert, rustls::Error::AlertReceived(expected));
}
