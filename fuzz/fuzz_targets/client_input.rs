//! Any bytes from a server as input of a client's engine.
#![no_main]

#[path = "connection.rs"]
mod connection;

use libfuzzer_sys::fuzz_target;
use linerate_proto::{ProtocolError, Role};

fuzz_target!(|data: &[u8]| {
    connection::check(Role::Client, data, |error| {
        matches!(error, ProtocolError::MaskedFrame)
    });
});
