//! Event streams, except for publications.

use std::time::Duration;

use linerate_hub::Publication;

use super::{encode, position};
use crate::protocol::{event_stream, position};

#[test]
fn an_id_stands_for_a_position() {
    assert_eq!(position::parse("a:b:41"), Some(position("a:b", 41)));
    for id in [
        "",
        "41",
        ":41",
        "e:",
        "e:-1",
        "e:18446744073709551616",
        "ü:1",
        "a b:1",
        "a\0:1",
    ] {
        assert_eq!(position::parse(id), None, "{id:?}");
    }
}

#[test]
fn an_epoch_that_is_no_word_gives_no_id() {
    let builder = Publication::build(b"1"[..].into());
    let publication = builder.with_position(position("a\nb", 1)).finish();
    let out = encode(&event_stream::EVENTS, "c", &[publication]).unwrap();
    assert_eq!(out, b"data: 1\n\n");
}

#[test]
fn notices_are_events_of_their_own() {
    let mut out = Vec::new();
    event_stream::append_retry(Duration::from_millis(1_500), &mut out);
    event_stream::append_disconnect(3001, "shut\"down", &mut out);
    let expected = "retry: 1500\n\n\
                    event: disconnect\ndata: {\"code\":3001,\"reason\":\"shut\\\"down\"}\n\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}
