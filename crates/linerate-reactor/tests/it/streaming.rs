//! Messages that are passed to the handler in pieces, as they arrive.

use linerate_reactor::{Chunk, Context, Handler, Message, Opened, Options};

use crate::support::{Raw, Running, close, fragment, masked, wait_until};

/// Long enough to be passed to the handler without a copy.
static LONG: [u8; 20_000] = [7; 20_000];

/// Echoes long messages piece by piece and all others as a whole.
#[derive(Clone)]
struct Streaming;

impl Handler for Streaming {
    type Data = ();

    const STREAMED_BYTES_MIN: u64 = 8;

    fn open(&mut self, cx: &mut Context<'_>, _opened: Opened<'_>) {
        cx.subscribe("all").unwrap();
    }

    fn message(&mut self, (): &mut (), cx: &mut Context<'_>, message: Message<'_>) {
        if message == Message::Text("publish") {
            cx.publish("all", Message::Text("news"));
        } else {
            cx.send(message).unwrap();
        }
    }

    fn chunk(&mut self, (): &mut (), cx: &mut Context<'_>, chunk: Chunk<'_>) {
        cx.send_chunk(chunk.kind, chunk.bytes, chunk.ends).unwrap();
    }
}

fn streaming() -> (Running, Raw) {
    let mut options = Options::default();
    options.config.limits.frame_bytes_max = 16 << 20;
    options.config.limits.message_bytes_max = 16 << 20;
    let server = Running::start(Streaming, 1, options);
    let raw = Raw::open(server.address);
    (server, raw)
}

/// Reads the fragments of one message; returns its opcode, its payload, and how many fragments it
/// had.
fn message(raw: &mut Raw) -> (u8, Vec<u8>, usize) {
    let (first, mut payload) = raw.frame();
    let (mut head, mut fragments) = (first, 1);
    while head & 0x80 == 0 {
        let (next, piece) = raw.frame();
        assert_eq!(next & 0x0F, 0, "a fragment of the same message");
        payload.extend(piece);
        (head, fragments) = (next, fragments + 1);
    }
    (first & 0x0F, payload, fragments)
}

#[test]
fn what_arrives_at_once_and_short_messages_come_whole() {
    let (_server, mut raw) = streaming();
    raw.send(&masked(0x1, b"as long as may be"));
    assert_eq!(raw.frame(), (0x81, b"as long as may be".to_vec()));
    let short = masked(0x2, b"1234567");
    raw.send(&short[..9]);
    raw.send(&short[9..]);
    assert_eq!(raw.frame(), (0x82, b"1234567".to_vec()));
}

#[test]
fn a_long_message_goes_back_in_pieces_while_it_arrives() {
    let (_server, mut raw) = streaming();
    let text = "κόσμε ".repeat(3_000);
    let wire = masked(0x1, text.as_bytes());
    let (first, rest) = wire.split_at(8 + 20_000);
    raw.send(first);
    let (head, mut all) = raw.frame();
    assert_eq!(head, 0x01);
    while all.len() < 20_000 {
        let (head, piece) = raw.frame();
        assert_eq!(head, 0x00);
        all.extend(piece);
    }
    for byte in &rest[..100] {
        raw.send(&[*byte]);
    }
    raw.send(&rest[100..]);
    let (head, piece) = raw.frame();
    all.extend(piece);
    assert_eq!((head, all == text.as_bytes()), (0x80, true));
}

#[test]
fn small_pieces_are_put_together_first() {
    let (_server, mut raw) = streaming();
    let payload: Vec<u8> = (0..200_000_u32).map(|n| (n % 251) as u8).collect();
    for piece in masked(0x2, &payload).chunks(1_400) {
        raw.send(piece);
    }
    let (opcode, returned, fragments) = message(&mut raw);
    assert_eq!((opcode, returned == payload), (0x2, true));
    assert!(fragments <= 200_000 / (16 << 10) + 1, "{fragments}");
}

#[test]
fn sixteen_mebibytes_pass_with_nothing_kept() {
    let (_server, mut raw) = streaming();
    let payload: Vec<u8> = (0..16 << 20).map(|n: u32| (n % 251) as u8).collect();
    let wire = masked(0x2, &payload);
    let mut sending = raw.stream.try_clone().unwrap();
    let sender = std::thread::spawn(move || std::io::Write::write_all(&mut sending, &wire));
    let (opcode, returned, fragments) = message(&mut raw);
    assert_eq!((opcode, returned == payload), (0x2, true));
    assert!(fragments > 1);
    sender.join().unwrap().unwrap();
    raw.send(&masked(0x1, b"next"));
    assert_eq!(raw.frame(), (0x81, b"next".to_vec()));
}

#[test]
fn fragments_that_are_no_text_fail_the_connection_between_two_of_ours() {
    let (_server, mut raw) = streaming();
    let mut text = vec![b'x'; 40_000];
    text[30_000] = 0xFF;
    let wire = masked(0x1, &text);
    let (fine, wrong) = wire.split_at(8 + 16_384);
    raw.send(fine);
    assert_eq!(raw.frame().0, 0x01);
    raw.send(wrong);
    let rest = raw.rest();
    assert!(rest.ends_with(&close(1007)), "{rest:02x?}");
}

#[test]
fn a_fragmented_message_is_streamed_if_its_first_frame_is_long() {
    let (_server, mut raw) = streaming();
    raw.send(&fragment(0x2, b"123456789", false));
    raw.send(&fragment(0x0, b"0", true));
    assert_eq!(raw.frame(), (0x82, b"1234567890".to_vec()));
    raw.send(&fragment(0x2, &LONG, false));
    assert_eq!(raw.frame(), (0x02, LONG.to_vec()));
    raw.send(&fragment(0x0, b"0", true));
    assert_eq!(raw.frame(), (0x80, b"0".to_vec()));
    raw.send(&fragment(0x2, b"12", false));
    raw.send(&fragment(0x0, b"3456789", true));
    assert_eq!(raw.frame(), (0x82, b"123456789".to_vec()));
}

#[test]
fn publications_do_not_come_between_the_pieces() {
    let (server, mut raw) = streaming();
    raw.send(&fragment(0x2, &LONG, false));
    assert_eq!(raw.frame(), (0x02, LONG.to_vec()));
    let mut other = Raw::open(server.address);
    other.send(&masked(0x1, b"publish"));
    assert_eq!(other.frame(), (0x81, b"news".to_vec()));
    wait_until(|| server.remote.counters().publications_dropped() == 1);
    raw.send(&fragment(0x0, b"", true));
    assert_eq!(raw.frame(), (0x80, Vec::new()));
    other.send(&masked(0x1, b"publish"));
    assert_eq!(raw.frame(), (0x81, b"news".to_vec()));
}
