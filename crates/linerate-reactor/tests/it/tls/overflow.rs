//! Subscribers over TLS that do not keep up.

use linerate_reactor::{Options, Overflow, TopicOptions};

use super::{Client, Encrypted};
use crate::support::masked;

/// Starts a server on which all topics have this policy, and publishes until `done`. Returns the
/// server, a subscriber that has not read anything, and how many messages were published.
fn publish(overflow: Overflow, done: impl Fn(&Encrypted) -> bool) -> (Encrypted, Client, usize) {
    let mut options = Options::default();
    options.topic = TopicOptions::default().with_overflow(overflow);
    let server = Encrypted::start(options, |_| {});
    let (slow, mut publisher) = (server.open(), server.open());
    let mut published = 0;
    while !done(&server) {
        publisher.send(&masked(0x1, b"publish to one"));
        assert!(publisher.frame() == (0x82, vec![1; 40_000]));
        published += 1;
        assert!(published < 10_000, "no publication overflowed");
    }
    (server, slow, published)
}

#[test]
fn what_is_encrypted_is_not_taken_back() {
    for overflow in [Overflow::DropNewest, Overflow::DropOldest] {
        let (server, mut slow, published) = publish(overflow, |server| {
            server.running.remote.counters().publications_dropped() > 10
        });
        let counters = server.running.remote.counters();
        assert_eq!(counters.publications_dropped_oldest(), 0);
        let dropped = counters.publications_dropped_newest() as usize;
        for _ in 0..published - dropped {
            assert!(slow.frame() == (0x82, vec![1; 40_000]));
        }
        slow.send(&masked(0x1, b"still here"));
        assert_eq!(slow.frame(), (0x81, b"still here".to_vec()));
    }
}

#[test]
fn the_close_frame_comes_behind_what_is_encrypted() {
    let (_server, mut slow, published) = publish(Overflow::Close, |server| {
        server.running.remote.counters().subscribers_closed() == 1
    });
    let mut received = 0;
    let close = loop {
        match slow.frame() {
            (0x82, payload) => assert!(payload == [1; 40_000]),
            frame => break frame,
        }
        received += 1;
    };
    assert!(received < published);
    assert_eq!(close, (0x88, b"\x03\xf0too slow".to_vec()));
}
