//! Guarantees of the types: they can be sent to other threads, and an idle connection is small.

use linerate_proto::{
    Client, Engine, Event, MaskKey, ProtocolError, SendError, Server,
    engine::{Events, RawEvent, Timeout},
};

type ClientEngine = Engine<Client<fn() -> MaskKey>>;

#[test]
fn types_are_send_and_sync() {
    fn assert_send_and_sync<T: Send + Sync>() {}
    assert_send_and_sync::<Engine<Server>>();
    assert_send_and_sync::<ClientEngine>();
    assert_send_and_sync::<Event<'_>>();
    assert_send_and_sync::<Events<'_, '_, Server>>();
    assert_send_and_sync::<RawEvent<'_>>();
    assert_send_and_sync::<ProtocolError>();
    assert_send_and_sync::<SendError>();
    assert_send_and_sync::<Timeout>();
}

/// An engine holds pointers to the state that only some connections need. The limit is generous; it
/// exists to notice a buffer in the wrong place.
#[test]
fn an_idle_engine_is_small() {
    assert!(size_of::<Engine<Server>>() <= 256);
    assert!(size_of::<ClientEngine>() <= 256 + size_of::<fn() -> MaskKey>());
}

#[test]
fn an_error_contains_numbers_but_no_bytes_of_the_peer() {
    let message = |error: &dyn core::error::Error| error.to_string();
    let too_big = ProtocolError::MessageTooBig {
        bytes: 9,
        bytes_max: 8,
    };
    assert_eq!(
        message(&too_big),
        "message of 9 bytes or more exceeds the limit of 8"
    );
    let utf8 = ProtocolError::InvalidUtf8 { offset: 7 };
    assert_eq!(message(&utf8), "invalid UTF-8 at byte 7");
    let reason = SendError::CloseReasonTooLong { bytes: 124 };
    assert_eq!(
        message(&reason),
        "close reason of 124 bytes exceeds the limit of 123"
    );
}
