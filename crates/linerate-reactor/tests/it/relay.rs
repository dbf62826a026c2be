//! Connections of one worker that send to each other, with the handler of the example
//! `reactor_relay`.

#[path = "../../examples/reactor_relay/relay.rs"]
mod handler;

use std::{
    io::Write,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use linerate_reactor::{ConnectionId, Context, Destination, Handler, Message, Opened, Options};

use self::handler::Relay;
use crate::{
    support::{Raw, Running, masked, unmasked, wait_until},
    upstream::{accept, listen, masked_frame, take_request},
};

fn relay(upstream: Destination) -> Running {
    Running::start(Relay::new(upstream), 1, Options::default())
}

#[test]
fn messages_go_both_ways_in_order() {
    let echo = Running::echo();
    // The URL contains a name, so that the worker has to look it up.
    let url = format!("ws://localhost:{}/chat", echo.address.port());
    let relay = relay(Destination::parse(&url).unwrap());
    let mut clients: Vec<_> = (0..5).map(|_| Raw::open(relay.address)).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        // Messages sent before the upstream connection is open are not lost.
        for round in 0..200 {
            client.send(&masked(0x1, format!("{number} {round}").as_bytes()));
        }
        client.send(&masked(0x2, &[number as u8; 100_000]));
    }
    for (number, client) in clients.iter_mut().enumerate() {
        for round in 0..200 {
            assert_eq!(client.frame(), (0x81, format!("{number} {round}").into()));
        }
        assert_eq!(client.frame(), (0x82, vec![number as u8; 100_000]));
    }
    drop(clients);
    wait_until(|| relay.remote.counters().connections() == 0);
}

#[test]
fn input_waits_for_the_upstream() {
    let (listener, destination) = listen();
    let relay = relay(destination);
    let mut client = Raw::open(relay.address);
    client.send(&masked(0x1, b"early"));
    let (mut upstream, _) = accept(&listener, &unmasked(0x2, b"greeting"));
    assert_eq!(masked_frame(&mut upstream).2, b"early");
    assert_eq!(client.frame(), (0x82, b"greeting".to_vec()));
}

#[test]
fn the_code_of_either_end_is_passed_on() {
    let (listener, destination) = listen();
    let relay = relay(destination);
    let mut client = Raw::open(relay.address);
    let (mut upstream, _) = accept(&listener, b"");
    client.send(&masked(0x8, &4000_u16.to_be_bytes()));
    let (first, _, payload) = masked_frame(&mut upstream);
    assert_eq!((first, &payload[..]), (0x88, &4000_u16.to_be_bytes()[..]));
    drop(upstream);

    let mut client = Raw::open(relay.address);
    let (mut upstream, _) = accept(&listener, b"");
    upstream.send(&unmasked(0x8, &4001_u16.to_be_bytes()));
    assert_eq!(masked_frame(&mut upstream).0, 0x88);
    drop(upstream);
    assert_eq!(client.frame(), (0x88, 4001_u16.to_be_bytes().to_vec()));
    client.send(&masked(0x8, &4001_u16.to_be_bytes()));
    assert_eq!(client.rest(), b"");
    wait_until(|| relay.remote.counters().connections() == 0);
}

#[test]
fn a_client_without_an_upstream_is_closed() {
    let (listener, destination) = listen();
    let relay = relay(destination);
    let mut refused = Raw::open(relay.address);
    let (mut upstream, _) = take_request(&listener);
    upstream.send(b"HTTP/1.1 503 Service Unavailable\r\n\r\n");
    assert_eq!(refused.frame(), (0x88, b"\x03\xf5no upstream".to_vec()));
    drop(listener);
    let mut unreachable = Raw::open(relay.address);
    assert_eq!(unreachable.frame(), (0x88, b"\x03\xf5no upstream".to_vec()));
}

#[test]
fn an_upstream_whose_client_is_gone_is_closed() {
    let (listener, destination) = listen();
    let relay = relay(destination);
    drop(Raw::open(relay.address));
    let (mut upstream, _) = accept(&listener, b"");
    let (first, _, payload) = masked_frame(&mut upstream);
    assert_eq!((first, &payload[..]), (0x88, &1001_u16.to_be_bytes()[..]));
    drop(upstream);
    wait_until(|| relay.remote.counters().connections() == 0);
}

#[test]
fn an_upstream_that_does_not_read_stops_its_client() {
    const FRAMES: usize = 1_000;
    const BYTES: usize = 100_000;
    let (listener, destination) = listen();
    let relay = relay(destination);
    let mut client = Raw::open(relay.address);
    let (mut upstream, _) = accept(&listener, b"");
    let sent = AtomicUsize::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            let frame = masked(0x2, &[7; BYTES]);
            for _ in 0..FRAMES {
                client.stream.write_all(&frame).unwrap();
                sent.fetch_add(1, Ordering::Relaxed);
            }
            client.send(&masked(0x8, &1000_u16.to_be_bytes()));
        });
        let mut before = usize::MAX;
        wait_until(|| {
            thread::sleep(Duration::from_millis(300));
            let now = sent.load(Ordering::Relaxed);
            std::mem::replace(&mut before, now) == now
        });
        // The socket buffers hold some messages; the relay holds almost none.
        assert!(before < FRAMES / 2, "{before} messages were taken");
        for _ in 0..FRAMES {
            assert!(masked_frame(&mut upstream).2 == [7; BYTES]);
        }
        assert_eq!(masked_frame(&mut upstream).0, 0x88);
    });
}

/// Passes the first connection's messages to the second, even if the second does not keep up.
#[derive(Clone, Default)]
struct Careless {
    connections: Vec<ConnectionId>,
}

impl Handler for Careless {
    type Data = ();

    fn open(&mut self, cx: &mut Context<'_>, _opened: Opened<'_>) {
        self.connections.push(cx.id());
    }

    fn message(&mut self, (): &mut (), cx: &mut Context<'_>, message: Message<'_>) {
        if let Some(mut second) = cx.to(self.connections[1]) {
            second.send(message);
        }
        _ = cx.send_text("done");
    }
}

#[test]
fn a_connection_for_which_too_much_waits_is_dropped() {
    let mut options = Options::default();
    options.relayed_bytes_max = 1 << 20;
    let server = Running::start(Careless::default(), 1, options);
    let mut first = Raw::open(server.address);
    let _second = Raw::open(server.address);
    let mut sent = 0;
    while server.remote.counters().connections() == 2 {
        first.send(&masked(0x2, &[7; 100_000]));
        assert_eq!(first.frame(), (0x81, b"done".to_vec()));
        sent += 1;
        assert!(sent < 1_000, "100 MB are waiting for the second connection");
    }
    // Messages to a connection that no longer exists are ignored.
    first.send(&masked(0x2, b"x"));
    assert_eq!(first.frame(), (0x81, b"done".to_vec()));
}
