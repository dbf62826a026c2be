//! Any bytes from a client as input of a server's engine.
#![no_main]

#[path = "connection.rs"]
mod connection;

use libfuzzer_sys::fuzz_target;
use linerate_proto::{ProtocolError, Role};

fuzz_target!(|data: &[u8]| {
    connection::check(Role::Server, data, |error| {
        matches!(error, ProtocolError::UnmaskedFrame)
    });
});
