//! Limits: values at the maximum and one beyond it.

use std::{net::TcpStream, time::Duration};

use linerate_proto::Role;
use linerate_reactor::{Context, Handler, Message, Opened, Options, SubscribeError};
use linerate_testkit::Frame;

use crate::support::{
    ACCEPTED, Echo, PATIENCE, REQUEST, Raw, Running, close, fragment, masked, unmasked, wait_until,
};

#[test]
fn a_message_of_the_limit_passes_and_one_byte_more_fails_with_1009() {
    let mut options = Options::default();
    options.config.limits.message_bytes_max = 5_000;
    let server = Running::start(Echo, 1, options);
    let mut raw = Raw::open(server.address);
    raw.send(&masked(0x2, &[7; 5_000]));
    assert_eq!(raw.frame(), (0x82, vec![7; 5_000]));
    // The header already exceeds the limit.
    let claimed = Frame::new(0x2, b"").with_claimed_bytes(5_001);
    raw.send(&claimed.to_role(Role::Server).to_bytes());
    assert_eq!(raw.rest(), close(1009));

    let mut raw = Raw::open(server.address);
    raw.send(&fragment(0x2, &[7; 5_000], false));
    raw.send(&fragment(0x0, &[7; 1], true));
    assert_eq!(raw.rest(), close(1009));
}

#[test]
fn connections_beyond_the_limit_are_refused_with_503_until_one_ends() {
    let mut options = Options::default();
    options.connections_max = 2;

    let server = Running::start(Echo, 1, options);
    let (first, mut second) = (Raw::open(server.address), Raw::open(server.address));
    let mut third = Raw::connect(server.address);
    assert!(third.rest().starts_with(b"HTTP/1.1 503 "));
    second.round_trip();
    drop(first);
    wait_until(|| server.remote.counters().connections() == 1);
    Raw::open(server.address).round_trip();
}

#[test]
fn a_handshake_that_takes_too_long_is_refused_with_408() {
    let mut options = Options::default();
    options.handshake.time_max = Duration::from_millis(100);
    let server = Running::start(Echo, 1, options);
    let mut raw = Raw::connect(server.address);
    raw.send(&REQUEST.as_bytes()[..20]);
    assert!(raw.rest().starts_with(b"HTTP/1.1 408 "));
    wait_until(|| server.remote.counters().connections() == 0);
}

#[test]
fn a_head_of_the_limit_passes_and_one_byte_more_is_refused_with_431() {
    let mut options = Options::default();
    options.handshake.head_bytes_max = REQUEST.len();
    let server = Running::start(Echo, 1, options);
    Raw::open(server.address).round_trip();
    let mut raw = Raw::connect(server.address);
    raw.send(REQUEST.replacen("/chat", "/chat?", 1).as_bytes());
    assert!(raw.rest().starts_with(b"HTTP/1.1 431 "));
}

#[test]
fn a_peer_that_answers_no_ping_is_closed() {
    let mut options = Options::default();
    options.config.ping_interval = Some(Duration::from_millis(50));
    options.config.ping_timeout = Duration::from_millis(50);
    options.config.close_timeout = Duration::from_millis(50);
    let server = Running::start(Echo, 1, options);
    let mut raw = Raw::open(server.address);
    let (first, payload) = raw.frame();
    assert_eq!((first, payload.len()), (0x89, 8));
    assert_eq!(raw.rest(), close(1011));
    wait_until(|| server.remote.counters().connections() == 0);
}

#[test]
fn a_peer_that_does_not_end_the_closing_handshake_is_dropped() {
    let mut options = Options::default();
    options.config.close_timeout = Duration::from_millis(50);
    let server = Running::start(Echo, 1, options);
    let mut raw = Raw::open(server.address);
    raw.send(&Frame::new(0x1, b"not masked").to_bytes());
    let expected = close(1002);
    assert_eq!(raw.read(expected.len()), expected);
    // The client keeps its end open.
    wait_until(|| server.remote.counters().connections() == 0);
}

#[test]
fn a_flood_of_pings_is_answered_within_bounds_and_in_order() {
    let server = Running::echo();
    let mut raw = Raw::open(server.address);
    let pings: Vec<u8> = (0..2_000_u32)
        .flat_map(|number| masked(0x9, &number.to_be_bytes()))
        .collect();
    raw.send(&pings);
    raw.send(&masked(0x1, b"end"));
    let mut last = None;
    loop {
        let (first, payload) = raw.frame();
        if first == 0x81 {
            break;
        }
        assert_eq!(first, 0x8A);
        let number = u32::from_be_bytes(payload.try_into().unwrap());
        assert!(last < Some(number));
        last = Some(number);
    }
    // The newest Ping may be answered before or after the message, but it must be answered.
    if last != Some(1_999) {
        assert_eq!(raw.frame(), (0x8A, 1_999_u32.to_be_bytes().to_vec()));
    }
}

/// Subscribes to the topic named in each message, and reports the result.
#[derive(Clone)]
struct Subscriber;

impl Handler for Subscriber {
    type Data = ();

    fn open(&mut self, _cx: &mut Context<'_>, _opened: Opened<'_>) {}

    fn message(&mut self, (): &mut (), cx: &mut Context<'_>, message: Message<'_>) {
        let Message::Text(topic) = message else {
            return;
        };
        let answer = match cx.subscribe(topic) {
            Ok(new) => format!("new: {new}"),
            Err(error @ SubscribeError::NameTooLong { .. }) => format!("name: {error}"),
            Err(error) => error.to_string(),
        };
        cx.send_text(&answer).unwrap();
    }
}

#[test]
fn subscriptions_are_limited_in_number_and_length() {
    let mut options = Options::default();
    options.subscriptions_max = 2;
    options.topic_bytes_max = 3;

    let server = Running::start(Subscriber, 1, options);
    let mut raw = Raw::open(server.address);
    for (topic, answer) in [
        ("abc", "new: true"),
        ("abcd", "name: topic name of 4 bytes exceeds the limit of 3"),
        ("b", "new: true"),
        ("c", "subscription limit of 2 reached"),
        ("b", "new: false"),
    ] {
        raw.send(&masked(0x1, topic.as_bytes()));
        assert_eq!(raw.read(answer.len() + 2), unmasked(0x1, answer.as_bytes()));
    }
}

/// Returns the CPU time that this process has used.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[test]
fn a_shortage_of_files_passes() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    // The limit applies to the process, so the test runs in a process of its own.
    if std::env::var_os("LINERATE_FILES_SHORT").is_none() {
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "limits::a_shortage_of_files_passes"])
            .env("LINERATE_FILES_SHORT", "1")
            .status();
        assert!(status.unwrap().success());
        return;
    }
    // Set before the server starts, because io_uring uses the limit in effect when it starts to
    // accept.
    let maximum = getrlimit(Resource::Nofile).maximum;
    let current = Some(64);
    setrlimit(Resource::Nofile, Rlimit { current, maximum }).unwrap();
    let server = Running::echo();
    let mut open = Raw::open(server.address);
    let mut files = Vec::new();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        files.push(file);
    }
    // Leaves one file for the client's end of a connection, and none for the server's.
    files.pop();
    let stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut late = Raw { stream };
    late.send(REQUEST.as_bytes());
    for _ in 0..100 {
        open.round_trip();
    }
    assert_eq!(server.remote.counters().connections(), 1);
    // The server must be idle meanwhile. Retrying in a loop would use all of a core.
    let before = cpu_time();
    std::thread::sleep(Duration::from_secs(1));
    let taken = cpu_time() - before;
    assert!(taken < Duration::from_millis(200), "{taken:?} in a second");
    // The server notices without further input that files have become available.
    drop(files);
    assert_eq!(late.read(ACCEPTED.len()), ACCEPTED.as_bytes());
    late.round_trip();
}
