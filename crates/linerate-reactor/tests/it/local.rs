//! A reactor that is a part of the event loop of tokio.

use std::{
    os::{
        fd::{AsRawFd, RawFd},
        unix::net::UnixStream,
    },
    sync::Arc,
    thread,
    time::Duration,
};

use bytes::Bytes;
use linerate_reactor::{
    Adoption, CloseCode, Config, ConnectionId, DriverKind, LocalEvent, LocalMessages, LocalReactor,
    Message, MessageKind, Options,
    handshake::{HandshakeLimits, RequestReader},
};
use tokio::{
    io::{Interest, unix::AsyncFd},
    runtime::{Builder, Runtime},
    time::timeout,
};

use crate::support::{PATIENCE, REQUEST, Raw, masked, unmasked};

macro_rules! on_each_driver {
    ($($(#[$attribute:meta])* $test:ident,)*) => {
        mod by_default {
            use linerate_reactor::DriverKind;

            $($(#[$attribute])* #[test] fn $test() { super::$test(DriverKind::default()); })*
        }

        mod portable {
            use linerate_reactor::DriverKind;

            $($(#[$attribute])* #[test] fn $test() { super::$test(DriverKind::Portable); })*
        }
    };
}

mod export;
mod stream;

/// A thread with a runtime, of which a reactor is a part.
struct Owner {
    fd: AsyncFd<Descriptor>,
    reactor: LocalReactor,
    runtime: Runtime,
}

struct Descriptor(RawFd);

impl AsRawFd for Descriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.0
    }
}

impl Owner {
    fn new(options: Options) -> Self {
        let reactor = LocalReactor::new(options).unwrap();
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let fd = Descriptor(reactor.descriptor());
        let entered = runtime.enter();
        #[expect(deprecated, reason = "the reactor is dropped after it")]
        let fd = AsyncFd::with_interest(fd, Interest::READABLE).unwrap();
        drop(entered);
        Self {
            reactor,
            fd,
            runtime,
        }
    }

    fn quiet(driver: DriverKind) -> Self {
        let mut options = Options::default();
        options.driver = driver;
        options.config.ping_interval = None;
        Self::new(options)
    }

    /// Adopts a socket whose request has been answered, with `behind` read after it.
    fn adopt(&mut self, behind: &[u8], messages: LocalMessages) -> (ConnectionId, Raw<UnixStream>) {
        self.adopt_with(behind, messages, |adoption| adoption)
    }

    fn adopt_with(
        &mut self,
        behind: &[u8],
        messages: LocalMessages,
        prepare: impl FnOnce(Adoption) -> Adoption,
    ) -> (ConnectionId, Raw<UnixStream>) {
        let (socket, stream) = UnixStream::pair().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut reader = RequestReader::new(HandshakeLimits::default());
        let (request, _) = reader.handle_input(REQUEST.as_bytes()).unwrap().unwrap();
        let adoption = Adoption::new(socket, request).with_input(behind.to_vec());
        let id = self.reactor.adopt(prepare(adoption), messages).unwrap();
        (id, Raw { stream })
    }

    fn collected(&mut self, behind: &[u8]) -> (ConnectionId, Raw<UnixStream>) {
        self.adopt(behind, LocalMessages::Collected)
    }

    /// Runs the loop until an event satisfies `is_last`; returns all events up to that one.
    fn until(&mut self, mut is_last: impl FnMut(&LocalEvent) -> bool) -> Vec<LocalEvent> {
        let mut events = Vec::new();
        let Self {
            reactor,
            fd,
            runtime,
        } = self;
        let waited = runtime.block_on(async {
            timeout(PATIENCE, async {
                loop {
                    while let Some(event) = reactor.poll_event() {
                        events.push(event);
                        if is_last(&events[events.len() - 1]) {
                            return;
                        }
                    }
                    let ready = async { fd.readable().await.unwrap().clear_ready() };
                    match reactor.poll_timeout() {
                        None => ready.await,
                        Some(Duration::ZERO) => tokio::task::yield_now().await,
                        // An error means that a deadline may have passed.
                        Some(time) => _ = timeout(time, ready).await,
                    }
                    reactor.turn().unwrap();
                }
            })
            .await
        });
        waited.expect("the event does not happen");
        events
    }

    fn next(&mut self) -> LocalEvent {
        self.until(|_| true).remove(0)
    }
}

fn message(connection: ConnectionId, text: &str) -> LocalEvent {
    LocalEvent::Message {
        connection,
        kind: MessageKind::Text,
        payload: text.into(),
    }
}

/// Returns whole binary frames, each of 1,000 bytes, with its number as payload.
fn numbered(numbers: std::ops::Range<u8>) -> Bytes {
    let frames = numbers.map(|number| unmasked(0x2, &[number; 996]));
    frames.collect::<Vec<_>>().concat().into()
}

fn messages_are_collected_and_answered(driver: DriverKind) {
    let mut owner = Owner::quiet(driver);
    let frames = [masked(0x1, b"one"), masked(0x1, b"two")].concat();
    for cut in 0..frames.len() {
        let (now, later) = frames.split_at(cut);
        let (id, mut client) = owner.collected(now);
        client.send(later);
        for text in ["one", "two"] {
            assert_eq!(owner.next(), message(id, text), "cut at {cut}");
            let mut connection = owner.reactor.connection(id).unwrap();
            connection.send(Message::Text(text)).unwrap();
            connection.flush();
        }
        drop(owner.reactor.turn());
        assert_eq!(client.frame(), (0x81, b"one".to_vec()));
        assert_eq!(client.frame(), (0x81, b"two".to_vec()));
        drop(client);
        let closed = owner.next();
        assert!(matches!(closed, LocalEvent::Closed { connection, .. } if connection == id));
        assert!(owner.reactor.connection(id).is_none());
    }
    assert_eq!(owner.reactor.connections(), 0);
    let traffic = owner.reactor.take_traffic();
    let rounds = frames.len() as u64;
    assert_eq!(traffic.messages_received, 2 * rounds);
    assert_eq!(traffic.bytes_received, rounds * rounds);
    assert_eq!(traffic.bytes_sent, 10 * rounds);
}

fn output_without_a_flush_is_written_before_another_connection_is_used(driver: DriverKind) {
    let mut owner = Owner::quiet(driver);
    let (first, mut client) = owner.collected(b"");
    let (second, _other) = owner.collected(b"");
    let mut connection = owner.reactor.connection(first).unwrap();
    connection.send(Message::Text("Spam")).unwrap();
    connection
        .send_frames(&unmasked(0x1, b"Eggs").into())
        .unwrap();
    assert_eq!(owner.reactor.poll_timeout(), Some(Duration::ZERO));
    owner.reactor.connection(second).unwrap().flush();
    owner.reactor.turn().unwrap();
    assert_eq!(client.frame(), (0x81, b"Spam".to_vec()));
    assert_eq!(client.frame(), (0x81, b"Eggs".to_vec()));
}

fn a_backlog_waits_in_shared_memory_and_its_end_is_reported(driver: DriverKind) {
    let mut owner = Owner::quiet(driver);
    let (id, mut client) = owner.collected(b"");
    let frames = numbered(0..200);
    let mut sent = 0;
    while owner.reactor.status(id).unwrap().backlog_bytes == 0 {
        let mut connection = owner.reactor.connection(id).unwrap();
        connection.send_frames(&frames).unwrap();
        connection.flush();
        sent += 1;
        owner.reactor.turn().unwrap();
    }
    assert_eq!(owner.reactor.memory().backlog_bytes, 0);
    let bytes = sent * frames.len();
    let reader = thread::spawn(move || client.read(bytes));
    assert_eq!(owner.next(), LocalEvent::Drained { connection: id });
    assert_eq!(reader.join().unwrap(), frames.repeat(sent));
    assert_eq!(owner.reactor.status(id).unwrap().backlog_bytes, 0);
}

fn frames_that_have_not_begun_are_discarded(driver: DriverKind) {
    let mut owner = Owner::quiet(driver);
    let (id, mut client) = owner.collected(b"");
    let frames = numbered(0..200);
    while owner.reactor.status(id).unwrap().backlog_bytes < 2 * frames.len() {
        let mut connection = owner.reactor.connection(id).unwrap();
        connection.send_frames(&frames).unwrap();
        connection.flush();
    }
    let mut connection = owner.reactor.connection(id).unwrap();
    connection.discard_unsent();
    connection.flush();
    assert!(owner.reactor.status(id).unwrap().backlog_bytes < 1_000);
    let mut connection = owner.reactor.connection(id).unwrap();
    let code = CloseCode::TRY_AGAIN_LATER;
    connection.close(code, "busy").unwrap();
    connection.flush();
    let reader = thread::spawn(move || {
        let mut last = (0x82, Vec::new());
        while last.0 == 0x82 {
            last = client.frame();
        }
        client.send(&masked(0x8, &1_013_u16.to_be_bytes()));
        last
    });
    let events = owner.until(|event| matches!(event, LocalEvent::Closed { .. }));
    assert_eq!(reader.join().unwrap(), (0x88, b"\x03\xf5busy".to_vec()));
    let Some(LocalEvent::Closed { closed, .. }) = events.last() else {
        panic!("expected the end of the connection");
    };
    assert_eq!(closed.code, 1_013);
}

fn messages_can_be_discarded_and_may_not_take_long(driver: DriverKind) {
    let mut options = Options::default();
    options.driver = driver;
    options.config.ping_interval = None;
    options.message_timeout = Some(Duration::from_millis(200));
    let mut owner = Owner::new(options);
    let (id, mut client) = owner.adopt(&masked(0x1, b"Spam"), LocalMessages::Discarded);
    let long = masked(0x2, &[7; 900_000]);
    let writer = thread::spawn(move || {
        client.send(&long);
        client.send(&masked(0x2, &[7; 300])[..200]);
        client
    });
    assert_eq!(owner.next(), LocalEvent::MessageLate { connection: id });
    assert_eq!(owner.reactor.take_traffic().messages_received, 2);
    assert!(owner.reactor.memory().input_bytes < 200_000);
    // It is reported again.
    assert_eq!(owner.next(), LocalEvent::MessageLate { connection: id });
    drop(writer.join());
    assert!(matches!(owner.next(), LocalEvent::Closed { .. }));
    assert_eq!(owner.reactor.memory().input_bytes, 0);
}

fn input_waits_while_the_owner_does_not_take_messages(driver: DriverKind) {
    const COUNT: usize = 400;
    let mut owner = Owner::quiet(driver);
    let clients: Vec<_> = (0..4).map(|_| owner.collected(b"")).collect();
    let frame = masked(0x2, &[b'x'; 65_000]);
    let writers = clients.into_iter().map(|(_, mut client)| {
        let frame = frame.clone();
        thread::spawn(move || {
            (0..COUNT).for_each(|_| client.send(&frame));
            client
        })
    });
    let writers: Vec<_> = writers.collect();
    let mut seen = 0;
    while seen < 4 * COUNT {
        for _ in 0..20 {
            owner.reactor.turn().unwrap();
            thread::yield_now();
        }
        let bytes = owner.reactor.memory().input_bytes;
        assert!(bytes < 8 << 20, "{bytes}");
        // An event that comes while others wait would have to be waited for.
        while owner.reactor.poll_event().is_some() {
            seen += 1;
        }
    }
    drop(writers);
}

fn a_paused_connection_is_not_read(driver: DriverKind) {
    let mut owner = Owner::quiet(driver);
    let (id, mut client) = owner.collected(b"");
    let mut connection = owner.reactor.connection(id).unwrap();
    connection.pause();
    connection.flush();
    client.send(&masked(0x1, b"Spam"));
    thread::sleep(Duration::from_millis(20));
    owner.reactor.turn().unwrap();
    assert_eq!(owner.reactor.poll_event(), None);
    let mut connection = owner.reactor.connection(id).unwrap();
    connection.resume();
    connection.flush();
    assert_eq!(owner.next(), message(id, "Spam"));
}

fn connections_have_their_own_limits(driver: DriverKind) {
    let mut owner = Owner::quiet(driver);
    let mut config = Config::default();
    config.limits.message_bytes_max = 3;
    let config = Arc::new(config);
    let (id, mut client) = owner.adopt_with(b"", LocalMessages::Collected, |adoption| {
        adoption.with_config(config)
    });
    client.send(&masked(0x1, b"one"));
    assert_eq!(owner.next(), message(id, "one"));
    client.send(&masked(0x1, b"four"));
    let reader = thread::spawn(move || client.frame());
    let closed = owner.next();
    assert!(matches!(closed, LocalEvent::Closed { .. }), "{closed:?}");
    let (first, reason) = reader.join().unwrap();
    assert_eq!((first, &reason[..2]), (0x88, &b"\x03\xf1"[..]));
}

#[cfg(feature = "deflate")]
fn messages_are_compressed_as_agreed(driver: DriverKind) {
    use linerate_proto::deflate::{Agreement, Prepared, ThreadPool};
    use linerate_reactor::Deflate;

    let mut owner = Owner::quiet(driver);
    let options = Deflate::default();
    let mut reader = RequestReader::new(HandshakeLimits::default());
    let offer = "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n";
    let request = REQUEST.trim_end().to_owned() + "\r\n" + offer;
    let (request, _) = reader.handle_input(request.as_bytes()).unwrap().unwrap();
    let upgrade = request.websocket().unwrap();
    let agreement: Agreement = upgrade.accept().with_deflate(&options).deflate().unwrap();
    let (id, mut client) = owner.adopt_with(b"", LocalMessages::Collected, |adoption| {
        adoption.with_deflate(agreement, &options)
    });
    let mut connection = owner.reactor.connection(id).unwrap();
    assert!(connection.compression().is_some());
    let text = "Spam ".repeat(100);
    connection.send(Message::Text(&text)).unwrap();
    let prepared = Prepared::new(MessageKind::Text, text.as_bytes(), &options, &ThreadPool);
    connection.send_prepared(&prepared).unwrap();
    connection.flush();
    owner.reactor.turn().unwrap();
    for _ in 0..2 {
        let (first, payload) = client.frame();
        assert_eq!(first, 0xc1);
        assert!(payload.len() < 50, "{}", payload.len());
    }
}

on_each_driver! {
    messages_are_collected_and_answered,
    output_without_a_flush_is_written_before_another_connection_is_used,
    a_backlog_waits_in_shared_memory_and_its_end_is_reported,
    frames_that_have_not_begun_are_discarded,
    messages_can_be_discarded_and_may_not_take_long,
    input_waits_while_the_owner_does_not_take_messages,
    a_paused_connection_is_not_read,
    connections_have_their_own_limits,
    #[cfg(feature = "deflate")]
    messages_are_compressed_as_agreed,
}
