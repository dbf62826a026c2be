//! The table of client protocols.

use std::collections::HashSet;

use linerate_hub::EncodingId;

use crate::protocol::{
    PROTOCOLS,
    dialect::{SessionKind, Transport, WEBSOCKET},
    dialects, encoders, encoding_id,
};

#[test]
fn every_dialect_has_its_own_name_and_encoding() {
    let names: HashSet<_> = dialects().map(|dialect| dialect.name).collect();
    assert_eq!(names.len(), dialects().count());
    for (index, dialect) in (0..).zip(dialects()) {
        let is_websocket = matches!(dialect.transport, Transport::WebSocket(_));
        assert_eq!(dialect.name.1 == WEBSOCKET, is_websocket);
        assert_eq!(
            encoding_id(dialect),
            EncodingId(index),
            "{:?}",
            dialect.name
        );
    }
    assert_eq!(encoders().len(), dialects().count());
}

#[test]
fn every_path_has_one_transport() {
    let is_websocket = |transport: &Transport| matches!(transport, Transport::WebSocket(_));
    for one in dialects() {
        for other in dialects().filter(|other| other.path == one.path) {
            assert_eq!(is_websocket(&one.transport), is_websocket(&other.transport));
        }
        for protocol in PROTOCOLS {
            let emulation = protocol.emulation.as_ref();
            assert!(emulation.is_none_or(|endpoint| endpoint.path != one.path));
        }
    }
}

#[test]
fn clients_that_poll_have_sessions_on_websockets_and_another_name() {
    for endpoint in PROTOCOLS.iter().filter_map(|protocol| protocol.polling) {
        let dialect = endpoint.dialect;
        assert!(dialect.has_commands());
        assert!(matches!(dialect.transport, Transport::WebSocket(_)));
        assert_eq!(endpoint.name.0, dialect.name.0);
        assert!(dialects().all(|dialect| dialect.name != endpoint.name));
    }
}

#[test]
fn every_stream_can_be_requested() {
    for dialect in dialects() {
        if let (SessionKind::Commands(commands), Transport::Stream(_)) =
            (&dialect.session, &dialect.transport)
        {
            assert!(commands.first_in_body || commands.first_in_query.is_some());
        }
    }
}

#[test]
fn the_documentation_names_every_path_and_subprotocol() {
    let text = include_str!("../../../../../docs/gateway/protocols.md");
    for endpoint in PROTOCOLS.iter().filter_map(|protocol| protocol.polling) {
        assert!(text.contains(endpoint.path), "{}", endpoint.path);
    }
    for dialect in dialects().filter(|dialect| dialect.name.0 != "lines") {
        assert!(text.contains(dialect.path), "{}", dialect.path);
        if let Transport::WebSocket(websocket) = &dialect.transport
            && let Some(subprotocol) = websocket.subprotocol
        {
            assert!(text.contains(subprotocol), "{subprotocol}");
        }
    }
}
