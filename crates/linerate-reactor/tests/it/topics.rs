//! Publishing, within a worker and across workers.

use linerate_reactor::{Closed, Context, Handler, Message, Opened, Options};

use crate::support::{Raw, Running, masked, wait_until};

/// Subscribes each connection to `room`, publishes messages there, and announces when a client
/// leaves.
#[derive(Clone)]
struct Room;

impl Handler for Room {
    type Data = ();

    fn open(&mut self, cx: &mut Context<'_>, _opened: Opened<'_>) {
        assert_eq!(cx.subscribe("room"), Ok(true));
        cx.send_text("hello").unwrap();
    }

    fn message(&mut self, (): &mut (), cx: &mut Context<'_>, message: Message<'_>) {
        match message {
            Message::Text("leave") => {
                assert!(cx.unsubscribe("room"));
                cx.send_text("left").unwrap();
            }
            Message::Text("two topics") => {
                cx.subscribe("other").unwrap();
                for number in ["1", "2", "3"] {
                    cx.publish("room", Message::Text(number));
                    cx.publish("other", Message::Text(number));
                }
            }
            message => cx.publish("room", message),
        }
    }

    fn close(&mut self, (): (), cx: &mut Context<'_>, _closed: Closed) {
        cx.publish("room", Message::Text("gone"));
    }
}

fn join(server: &Running) -> Raw {
    let mut raw = Raw::open(server.address);
    assert_eq!(raw.frame(), (0x81, b"hello".to_vec()));
    raw
}

#[test]
fn publications_reach_all_subscribers_of_all_workers_in_order() {
    let server = Running::start(Room, 4, Options::default());
    // Enough connections for each worker to have some.
    let mut clients: Vec<_> = (0..40).map(|_| join(&server)).collect();
    for number in 0..200_u32 {
        clients[0].send(&masked(0x2, &number.to_be_bytes()));
    }
    for client in &mut clients {
        for number in 0..200_u32 {
            assert_eq!(client.frame(), (0x82, number.to_be_bytes().to_vec()));
        }
    }
    server.remote.publish("room", Message::Text("from outside"));
    server.remote.publish("nowhere", Message::Text("nobody"));
    for client in &mut clients {
        assert_eq!(client.frame(), (0x81, b"from outside".to_vec()));
    }
    assert_eq!(server.remote.counters().publications_dropped(), 0);
}

#[test]
fn who_left_gets_nothing_and_the_others_learn_who_is_gone() {
    let server = Running::start(Room, 1, Options::default());
    let (mut one, mut two, three) = (join(&server), join(&server), join(&server));
    two.send(&masked(0x1, b"leave"));
    assert_eq!(two.frame(), (0x81, b"left".to_vec()));
    drop(three);
    assert_eq!(one.frame(), (0x81, b"gone".to_vec()));
    one.send(&masked(0x1, b"still here?"));
    assert_eq!(one.frame(), (0x81, b"still here?".to_vec()));
    two.send(&masked(0x8, b""));
    assert_eq!(two.rest(), b"\x88\x00");
    assert_eq!(one.frame(), (0x81, b"gone".to_vec()));
}

#[test]
fn topics_that_alternate_keep_their_order() {
    let server = Running::start(Room, 1, Options::default());
    let (mut both, mut one) = (join(&server), join(&server));
    both.send(&masked(0x1, b"two topics"));
    for number in [b"1", b"2", b"3"] {
        assert_eq!(both.frame(), (0x81, number.to_vec()));
        assert_eq!(both.frame(), (0x81, number.to_vec()));
        assert_eq!(one.frame(), (0x81, number.to_vec()));
    }
}

#[test]
fn a_subscriber_that_does_not_read_loses_publications_and_nobody_waits() {
    let server = Running::start(Room, 1, Options::default());
    let (mut slow, mut publisher) = (join(&server), join(&server));
    let large = vec![7; 500_000];
    let mut sent = 0;
    while server.remote.counters().publications_dropped() == 0 {
        publisher.send(&masked(0x2, &large));
        assert_eq!(publisher.frame(), (0x82, large.clone()));
        sent += 1;
        assert!(sent < 1_000, "nothing is dropped");
    }
    // Publications that were queued arrive whole, followed by new ones.
    let mut received = 0;
    server.remote.publish("room", Message::Text("now"));
    while received < sent {
        match slow.frame() {
            (0x82, payload) => assert_eq!(payload, large),
            frame => assert_eq!(frame, (0x81, b"now".to_vec())),
        }
        received += 1;
        if received as u64 + server.remote.counters().publications_dropped() > sent as u64 {
            break;
        }
    }
    wait_until(|| {
        publisher.send(&masked(0x1, b"again"));
        let mut frame = publisher.frame();
        while frame.1 != b"again" {
            frame = publisher.frame();
        }
        true
    });
    while slow.frame().1 != b"again" {}
}
