use proptest::prelude::*;

use super::{BUFFER_BYTES, BUFFER_KEPT_MAX, Input, Item};
use crate::redis::resp::{Message, Reply};

const BYTES_MAX: usize = 40;

fn message(channel: &str, payload: &[u8]) -> Vec<u8> {
    let head = format!(
        "*3\r\n$7\r\nmessage\r\n${}\r\n{channel}\r\n${}\r\n",
        channel.len(),
        payload.len()
    );
    [head.as_bytes(), payload, b"\r\n"].concat()
}

fn stream() -> Vec<u8> {
    [
        &b"+OK\r\n"[..],
        b"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n",
        &message("a", b"hello"),
        &message("a", &[b'x'; BYTES_MAX]),
        &message("a", &[b'\r'; BYTES_MAX + 1]),
        &message("a", b""),
        b"*4\r\n$8\r\npmessage\r\n$1\r\n*\r\n",
        format!("$41\r\n{}\r\n$3\r\nabc\r\n", "n".repeat(41)).as_bytes(),
        b"*2\r\n$4\r\npong\r\n$0\r\n\r\n",
        &message("a", b"\r\n+PONG\r\n"),
    ]
    .concat()
}

/// Returns the items found, as text, when the input arrives in these pieces.
fn found<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    let mut input = Input::new(BYTES_MAX);
    let mut found = Vec::new();
    for mut piece in pieces {
        while !piece.is_empty() {
            let space = input.space();
            let count = space.len().min(piece.len());
            space[..count].copy_from_slice(&piece[..count]);
            input.filled(count);
            piece = &piece[count..];
            loop {
                match input.next() {
                    Ok(Some(item)) => found.push(format!("{item:?}")),
                    Ok(None) => break,
                    Err(error) => {
                        found.push(error.to_string());
                        return found;
                    }
                }
            }
        }
    }
    found
}

#[test]
fn oversized_messages_are_skipped_and_later_ones_found() {
    let stream = stream();
    let found = found([&stream[..]]);
    assert_eq!(found.len(), 9);
    let oversized = |subscription: &'static [u8], bytes| {
        let subscription = Some(subscription);
        let item = Item::Oversized {
            subscription,
            bytes,
        };
        format!("{item:?}")
    };
    assert_eq!(found[4], oversized(b"a", BYTES_MAX + 1));
    assert_eq!(found[6], oversized(b"*", BYTES_MAX + 1));
    let last = Item::Reply(Reply::Message(Message {
        subscription: b"a",
        channel: b"a",
        payload: b"\r\n+PONG\r\n",
    }));
    assert_eq!(found[8], format!("{last:?}"));
}

#[test]
fn pieces_of_any_size_give_the_same_messages() {
    let stream = stream();
    let whole = found([&stream[..]]);
    assert_eq!(found(stream.chunks(1)), whole);
    for first in 0..stream.len() {
        let (head, tail) = stream.split_at(first);
        assert_eq!(found([head, tail]), whole, "{first}");
        for second in (0..tail.len()).step_by(7) {
            let (middle, tail) = tail.split_at(second);
            assert_eq!(found([head, middle, tail]), whole, "{first} {second}");
        }
    }
}

#[test]
fn the_buffer_grows_by_what_arrives_and_is_given_back() {
    let mut input = Input::new(usize::MAX);
    let announced = b"*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$536870912\r\n";
    input.space()[..announced.len()].copy_from_slice(announced);
    input.filled(announced.len());
    assert_eq!(input.next(), Ok(None));
    assert_eq!(input.space().len(), BUFFER_BYTES - announced.len());
    let mut input = Input::new(4 * BUFFER_KEPT_MAX);
    let long = message("a", &vec![b'x'; 2 * BUFFER_KEPT_MAX]);
    let mut rest = &long[..];
    while !rest.is_empty() {
        assert_eq!(input.next(), Ok(None));
        let space = input.space();
        let count = space.len().min(rest.len());
        space[..count].copy_from_slice(&rest[..count]);
        input.filled(count);
        rest = &rest[count..];
    }
    assert!(matches!(input.next(), Ok(Some(Item::Reply(_)))));
    assert_eq!(input.space().len(), BUFFER_BYTES);
}

proptest! {
    #[test]
    fn no_input_panics_and_splits_do_not_matter(
        bytes in proptest::collection::vec(
            prop_oneof![
                4 => proptest::sample::select(b"*>$:+-_\r\n0123456789".to_vec()),
                1 => any::<u8>(),
            ],
            0..200,
        ),
        size in 1_usize..20,
    ) {
        prop_assert_eq!(found(bytes.chunks(size)), found([&bytes[..]]));
    }

    #[test]
    fn messages_with_any_payload_survive_the_round_trip(
        payloads in proptest::collection::vec(
            proptest::collection::vec(any::<u8>(), 0..=BYTES_MAX),
            0..20,
        ),
        size in 1_usize..100,
    ) {
        let stream: Vec<u8> = payloads.iter().flat_map(|payload| message("a", payload)).collect();
        let expected: Vec<String> = payloads
            .iter()
            .map(|payload| {
                let message = Message { subscription: b"a", channel: b"a", payload };
                format!("{:?}", Item::Reply(Reply::Message(message)))
            })
            .collect();
        prop_assert_eq!(found(stream.chunks(size)), expected);
    }
}
