//! Messages from other threads to single connections.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread,
};

use linerate_reactor::{
    CloseCode, Closed, ConnectionId, Context, Handler, Message, Opened, Options, RemoteError,
};

use crate::support::{Raw, Running, close, masked, unmasked, wait_until};

/// What happens to the connections of a [`Reporter`].
enum Report {
    Opened(ConnectionId),
    /// The worker is in a callback until the sender is dropped.
    Blocked(Sender<()>),
    Congested,
    Drained,
    Closed(ConnectionId, Closed),
}

/// Reports everything, echoes messages, and blocks when it is told to.
#[derive(Clone)]
struct Reporter(Sender<Report>);

impl Reporter {
    fn new() -> (Self, Receiver<Report>) {
        let (sender, receiver) = channel();
        (Self(sender), receiver)
    }
}

impl Handler for Reporter {
    type Data = ();

    fn open(&mut self, cx: &mut Context<'_>, _opened: Opened<'_>) {
        _ = self.0.send(Report::Opened(cx.id()));
    }

    fn message(&mut self, (): &mut (), cx: &mut Context<'_>, message: Message<'_>) {
        match message {
            Message::Text("block") => {
                let (sender, receiver) = channel();
                _ = self.0.send(Report::Blocked(sender));
                _ = receiver.recv();
            }
            message => _ = cx.send(message),
        }
    }

    fn congested(&mut self, (): &mut (), _cx: &mut Context<'_>) {
        _ = self.0.send(Report::Congested);
    }

    fn drain(&mut self, (): &mut (), _cx: &mut Context<'_>) {
        _ = self.0.send(Report::Drained);
    }

    fn close(&mut self, (): (), cx: &mut Context<'_>, closed: Closed) {
        assert!(!cx.remote().is_open(cx.id()));
        _ = self.0.send(Report::Closed(cx.id(), closed));
    }
}

/// Opens a connection; returns the client's end and the identifier.
fn open(server: &Running, reports: &Receiver<Report>) -> (Raw, ConnectionId) {
    let client = Raw::open(server.address);
    match reports.recv().unwrap() {
        Report::Opened(id) => (client, id),
        _ => panic!("the connection should be open"),
    }
}

/// Has the server's worker wait in a callback until the sender is dropped.
fn block(client: &mut Raw, reports: &Receiver<Report>) -> Sender<()> {
    client.send(&masked(0x1, b"block"));
    match reports.recv().unwrap() {
        Report::Blocked(sender) => sender,
        _ => panic!("the worker should be blocked"),
    }
}

#[test]
fn messages_of_each_thread_arrive_in_order() {
    const THREADS: u32 = 8;
    const MESSAGES: u32 = 2_000;
    let (reporter, reports) = Reporter::new();
    let server = Running::start(reporter, 2, Options::default());
    let mut clients: Vec<_> = (0..4).map(|_| open(&server, &reports)).collect();
    let ids: Vec<_> = clients.iter().map(|(_, id)| *id).collect();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (remote, ids) = (&server.remote, &ids);
            scope.spawn(move || {
                for number in 0..MESSAGES {
                    let text = format!("{thread} {number}");
                    for id in ids {
                        // Both limits may be reached, because the clients read no faster than this
                        // machine allows.
                        while let Err(error) = remote.send(*id, Message::Text(&text)) {
                            assert_ne!(error, RemoteError::Closed);
                            thread::yield_now();
                        }
                    }
                }
            });
        }
        for (client, _) in &mut clients {
            scope.spawn(move || {
                let mut next = HashMap::new();
                for _ in 0..THREADS * MESSAGES {
                    let (first, payload) = client.frame();
                    let text = String::from_utf8(payload).unwrap();
                    let (thread, number) = text.split_once(' ').unwrap();
                    let expected = next.entry(thread.to_owned()).or_insert(0);
                    assert_eq!((first, number.parse()), (0x81, Ok(*expected)));
                    *expected += 1;
                }
            });
        }
    });
    assert_eq!(server.remote.counters().messages_dropped(), 0);
}

#[test]
fn nothing_follows_a_close() {
    let (reporter, reports) = Reporter::new();
    let server = Running::start(reporter, 1, Options::default());
    let (mut client, id) = open(&server, &reports);
    let remote = &server.remote;
    assert!(remote.is_open(id));
    let too_long = RemoteError::ReasonTooLong {
        bytes: 124,
        bytes_max: 123,
    };
    let reason = "x".repeat(124);
    assert_eq!(remote.close(id, CloseCode::NORMAL, &reason), Err(too_long));
    let blocked = block(&mut client, &reports);
    remote.send(id, Message::Text("first")).unwrap();
    remote.send(id, Message::Binary(b"second")).unwrap();
    remote.close(id, CloseCode::GOING_AWAY, "bye").unwrap();
    // The worker knows nothing of this yet.
    assert!(!remote.is_open(id));
    let closed = Err(RemoteError::Closed);
    assert_eq!(remote.send(id, Message::Text("late")), closed);
    assert_eq!(remote.close(id, CloseCode::NORMAL, ""), closed);
    drop(blocked);
    let sent = [
        unmasked(0x1, b"first"),
        unmasked(0x2, b"second"),
        unmasked(0x8, b"\x03\xe9bye"),
    ]
    .concat();
    assert_eq!(client.read(sent.len()), sent);
    client.send(&masked(0x8, &1001_u16.to_be_bytes()));
    assert_eq!(client.rest(), b"");
    match reports.recv().unwrap() {
        Report::Closed(ended, closed) => {
            assert_eq!((ended, closed.code), (id, 1001));
        }
        _ => panic!("the connection should be closed"),
    }
}

#[test]
fn a_stale_identifier_does_not_reach_the_connection_that_has_its_slot() {
    let (reporter, reports) = Reporter::new();
    let server = Running::start(reporter, 1, Options::default());
    let (mut other, _) = open(&server, &reports);
    for round in 0..20 {
        let (client, old) = open(&server, &reports);
        // The message is queued while the connection is open, and handled when another one may have
        // its slot.
        let blocked = block(&mut other, &reports);
        drop(client);
        let mut new = Raw::connect(server.address);
        new.send(crate::support::REQUEST.as_bytes());
        server.remote.send(old, Message::Text("stale")).unwrap();
        drop(blocked);
        new.read(crate::support::ACCEPTED.len());
        let mut newest = None;
        let mut has_ended = false;
        while newest.is_none() || !has_ended {
            match reports.recv().unwrap() {
                Report::Opened(id) => newest = Some(id),
                Report::Closed(id, _) => has_ended = id == old,
                _ => panic!("nothing else should happen"),
            }
        }
        let newest = newest.unwrap();
        assert_ne!(newest, old);
        let closed = Err(RemoteError::Closed);
        assert!(!server.remote.is_open(old), "round {round}");
        assert_eq!(server.remote.send(old, Message::Text("stale")), closed);
        assert_eq!(server.remote.close(old, CloseCode::NORMAL, ""), closed);
        server.remote.send(newest, Message::Text("new")).unwrap();
        assert_eq!(new.frame(), (0x81, b"new".to_vec()));
        server.remote.close(newest, CloseCode::NORMAL, "").unwrap();
        assert_eq!(new.frame().0, 0x88);
        drop(new);
        assert!(matches!(reports.recv(), Ok(Report::Closed(id, _)) if id == newest));
    }
}

#[test]
fn a_message_for_a_connection_that_ends_is_counted() {
    let (reporter, reports) = Reporter::new();
    let server = Running::start(reporter, 1, Options::default());
    let (mut client, id) = open(&server, &reports);
    let blocked = block(&mut client, &reports);
    client.send(&masked(0x8, b""));
    server.remote.send(id, Message::Text("late")).unwrap();
    drop(blocked);
    // The worker may see the message first.
    let sent = [unmasked(0x1, b"late"), unmasked(0x8, b"")].concat();
    if client.rest() != sent {
        wait_until(|| server.remote.counters().messages_dropped() == 1);
    }
}

#[test]
fn threads_are_told_when_too_much_waits_for_the_worker() {
    let mut options = Options::default();
    options.mailbox_bytes_max = 10_000;
    options.backlog_bytes_max = 1 << 20;
    let (reporter, reports) = Reporter::new();
    let server = Running::start(reporter, 1, options);
    let (mut client, id) = open(&server, &reports);
    let blocked = block(&mut client, &reports);
    let mut sent = 0;
    let error = loop {
        match server.remote.send(id, Message::Binary(&[7; 1_000])) {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(
        error,
        RemoteError::Full {
            bytes: 1_001..1_100,
            bytes_max: 10_000
        }
    ));
    assert_eq!(sent, 9);
    // A Close frame always fits, and publications have room of their own.
    server.remote.close(id, CloseCode::NORMAL, "").unwrap();
    drop(blocked);
    for _ in 0..sent {
        assert_eq!(client.frame(), (0x82, vec![7; 1_000]));
    }
    assert_eq!(client.rest_after_close(), close(1000));
    assert_eq!(server.remote.counters().publications_dropped(), 0);
}

impl Raw {
    /// Answers the Close frame that follows, and returns everything up to the end of the stream.
    fn rest_after_close(&mut self) -> Vec<u8> {
        self.send(&masked(0x8, &1000_u16.to_be_bytes()));
        self.rest()
    }
}

#[test]
fn a_flood_to_a_peer_that_does_not_read_is_refused_and_harms_no_other() {
    let mut options = Options::default();
    options.backlog_bytes_max = 64 << 10;
    options.mailbox_bytes_max = 256 << 10;
    let (reporter, reports) = Reporter::new();
    let server = Running::start(reporter, 1, options);
    let (mut slow, id) = open(&server, &reports);
    let (mut other, other_id) = open(&server, &reports);
    let stop = AtomicBool::new(false);
    let (sent, congested) = (Arc::new(Mutex::new(0_u64)), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    match server.remote.send(id, Message::Binary(&[7; 4_000])) {
                        Ok(()) => *sent.lock().unwrap() += 1,
                        Err(RemoteError::Congested { bytes_max }) => {
                            assert_eq!(bytes_max, 64 << 10);
                            congested.store(true, Ordering::Relaxed);
                        }
                        Err(error) => assert!(matches!(error, RemoteError::Full { .. })),
                    }
                }
            });
        }
        wait_until(|| congested.load(Ordering::Relaxed));
        for _ in 0..100 {
            other.round_trip();
            while server.remote.send(other_id, Message::Text("hi")).is_err() {
                thread::yield_now();
            }
            assert_eq!(other.frame(), (0x81, b"hi".to_vec()));
        }
        stop.store(true, Ordering::Relaxed);
    });
    // The flood did not cost the slow peer its connection: it is only late.
    for _ in 0..*sent.lock().unwrap() {
        assert_eq!(slow.frame(), (0x82, vec![7; 4_000]));
    }
    let drained = reports
        .iter()
        .find(|report| matches!(report, Report::Drained));
    assert!(drained.is_some());
    server.remote.send(id, Message::Text("again")).unwrap();
    assert_eq!(slow.frame(), (0x81, b"again".to_vec()));
}

#[test]
fn messages_sent_before_a_shutdown_arrive() {
    let (reporter, reports) = Reporter::new();
    let mut server = Running::start(reporter, 1, Options::default());
    let (mut client, id) = open(&server, &reports);
    let blocked = block(&mut client, &reports);
    for _ in 0..500 {
        server.remote.send(id, Message::Text("Spam")).unwrap();
    }
    server.remote.shut_down();
    drop(blocked);
    for _ in 0..500 {
        assert_eq!(client.frame(), (0x81, b"Spam".to_vec()));
    }
    assert_eq!(client.frame().0, 0x88);
    drop(client);
    server.join();
    let closed = Err(RemoteError::Closed);
    assert_eq!(server.remote.send(id, Message::Text("late")), closed);
}
