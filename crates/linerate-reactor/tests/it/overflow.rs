//! Subscribers that do not keep up: what happens to publications, depending on the topic's options.

use linerate_reactor::{
    Closed, Context, Handler, Message, Opened, Options, Overflow, Server, TopicOptions,
};

use crate::support::{Raw, Running, driver, masked, wait_until};

/// Subscribes each client to the topics that it names in text messages. Publishes its binary
/// messages to the first of these topics and, converted to digits, as text to the second.
#[derive(Clone)]
struct Feed;

impl Handler for Feed {
    type Data = Vec<String>;

    fn open(&mut self, _cx: &mut Context<'_>, _opened: Opened<'_>) -> Vec<String> {
        Vec::new()
    }

    fn message(&mut self, topics: &mut Vec<String>, cx: &mut Context<'_>, message: Message<'_>) {
        match message {
            Message::Text(topic) => {
                cx.subscribe(topic).unwrap();
                topics.push(topic.to_owned());
                cx.send_text("joined").unwrap();
            }
            Message::Binary(payload) => {
                cx.publish(&topics[0], message);
                if let Some(second) = topics.get(1) {
                    let text: String = payload
                        .iter()
                        .map(|byte| char::from(byte % 10 + b'0'))
                        .collect();
                    cx.publish(second, Message::Text(&text));
                }
            }
        }
    }

    fn close(&mut self, _topics: Vec<String>, _cx: &mut Context<'_>, _closed: Closed) {}
}

fn start() -> Running {
    let mut options = Options::default();
    options.driver = driver();
    let server = Server::new()
        .with_workers(1)
        .with_options(options)
        .with_topic(
            "prices/*",
            TopicOptions::default().with_overflow(Overflow::DropOldest),
        )
        .with_topic(
            "trades",
            TopicOptions::default().with_overflow(Overflow::Close),
        )
        .with_route("/chat", Feed);
    Running::serve(server)
}

fn join(server: &Running, topics: &[&str]) -> Raw {
    let mut raw = Raw::open(server.address);
    for topic in topics {
        raw.send(&masked(0x1, topic.as_bytes()));
        assert_eq!(raw.frame(), (0x81, b"joined".to_vec()));
    }
    raw
}

/// Returns a payload that begins with `number`.
fn payload(number: u32, bytes: usize) -> Vec<u8> {
    let mut payload = vec![number as u8; bytes];
    payload[..4].copy_from_slice(&number.to_be_bytes());
    payload
}

fn number(payload: &[u8]) -> u32 {
    u32::from_be_bytes(payload[..4].try_into().unwrap())
}

/// Publishes `count` messages at a time until `done`; returns how many messages were published.
fn publish(publisher: &mut Raw, bytes: usize, count: u32, done: impl Fn() -> bool) -> u32 {
    let mut published = 0;
    while !done() {
        let numbers = published..published + count;
        let wire: Vec<u8> = numbers
            .clone()
            .flat_map(|number| masked(0x2, &payload(number, bytes)))
            .collect();
        publisher.send(&wire);
        for number in numbers {
            assert_eq!(publisher.frame(), (0x82, payload(number, bytes)));
        }
        published += count;
        assert!(published < 1_000_000, "no publication overflowed");
    }
    published
}

/// Reads numbered messages of `bytes` bytes up to the number `last`, and checks their content.
fn numbers(slow: &mut Raw, bytes: usize, last: u32) -> Vec<u32> {
    let mut numbers = Vec::new();
    while numbers.last() != Some(&last) {
        let (first_byte, received) = slow.frame();
        assert_eq!(first_byte, 0x82);
        let number = number(&received);
        assert!(
            received == payload(number, bytes),
            "message {number} is corrupted"
        );
        numbers.push(number);
    }
    numbers
}

#[test]
fn the_oldest_publications_give_way_to_the_newest() {
    for (bytes, count) in [(60_000, 1), (700, 90), (100_000, 3)] {
        let server = start();
        let mut slow = join(&server, &["prices/EUR"]);
        let mut publisher = join(&server, &["prices/EUR"]);
        let counters = server.remote.counters();
        let dropped = || counters.publications_dropped_oldest();
        let sent = publish(&mut publisher, bytes, count, || dropped() > 50);
        let received = numbers(&mut slow, bytes, sent - 1);
        assert!(received.is_sorted_by(|one, next| one < next));
        assert_eq!(received.len() as u64 + dropped(), u64::from(sent));
        assert_eq!(counters.publications_dropped(), dropped());
    }
}

#[test]
fn the_newest_publications_are_dropped_by_default() {
    for (bytes, count) in [(60_000, 1), (700, 90)] {
        let server = start();
        let mut slow = join(&server, &["news"]);
        let mut publisher = join(&server, &["news"]);
        let counters = server.remote.counters();
        let dropped = || counters.publications_dropped_newest();
        let sent = publish(&mut publisher, bytes, count, || dropped() > 50);
        let kept = sent - dropped() as u32;
        assert!(numbers(&mut slow, bytes, kept - 1).into_iter().eq(0..kept));
        assert_eq!(counters.publications_dropped(), dropped());
    }
}

#[test]
fn a_subscriber_that_must_not_miss_anything_is_closed_with_1008() {
    let server = start();
    let mut slow = join(&server, &["trades"]);
    let mut publisher = join(&server, &["trades"]);
    let counters = server.remote.counters();
    let sent = publish(&mut publisher, 60_000, 1, || {
        counters.subscribers_closed() == 1
    });
    // Earlier publications arrive completely, and none is missing before the Close frame.
    let mut expected = 0;
    let close = loop {
        match slow.frame() {
            (0x82, received) => assert!(received == payload(expected, 60_000)),
            frame => break frame,
        }
        expected += 1;
    };
    assert!(expected < sent);
    assert_eq!(close, (0x88, b"\x03\xf0too slow".to_vec()));
    slow.send(&masked(0x8, b"\x03\xf0"));
    assert_eq!(slow.rest(), b"");
    wait_until(|| counters.connections() == 1);
    publisher.send(&masked(0x2, b"further"));
    assert_eq!(publisher.frame(), (0x82, b"further".to_vec()));
    assert_eq!(counters.publications_dropped(), 0);
    assert_eq!(counters.subscribers_closed(), 1);
}

#[test]
fn topics_with_different_options_share_a_connection() {
    let server = start();
    let mut slow = join(&server, &["prices/EUR", "news"]);
    let mut publisher = join(&server, &["prices/EUR", "news"]);
    let counters = server.remote.counters();
    let mut sent = 0_u32;
    while counters.publications_dropped_oldest() < 30 || counters.publications_dropped_newest() < 30
    {
        publisher.send(&masked(0x2, &payload(sent, 20_000)));
        assert_eq!(publisher.frame(), (0x82, payload(sent, 20_000)));
        assert_eq!(publisher.frame().0, 0x81);
        sent += 1;
    }
    let (mut prices, mut news) = (Vec::new(), 0_u64);
    while prices.last() != Some(&(sent - 1)) {
        match slow.frame() {
            (0x82, received) => prices.push(number(&received)),
            (first_byte, _) => {
                assert_eq!(first_byte, 0x81);
                news += 1;
            }
        }
    }
    assert!(prices.is_sorted_by(|one, next| one < next));
    let sent = u64::from(sent);
    assert_eq!(
        prices.len() as u64 + counters.publications_dropped_oldest(),
        sent
    );
    assert!(news + counters.publications_dropped_newest() <= sent);
}
