//! Input that a server sends instead of a valid ServerHello (RFC 8446 §4.1.3, §6.2).

use super::{PROTOCOL_VERSION, UNEXPECTED, hello, raw, record};
use crate::case::Row;

/// Returns a ServerHello with this version and suite, and an empty session id.
fn server_hello(version: u16, suite: u16) -> Vec<u8> {
    let mut body = version.to_be_bytes().to_vec();
    body.extend([7; 32]);
    body.push(0);
    body.extend(suite.to_be_bytes());
    body.push(0);
    record(22, &[&[2, 0, 0, body.len() as u8][..], &body].concat())
}

pub(super) fn answers() -> Row {
    let client_hello = record(22, &hello(0x0303, &[0x13, 0x01], &[0], b""));
    Row {
        id: "T15",
        title: "answers to a hello that cannot continue a handshake",
        section: "RFC 8446 §4.1.3, §5, §6.2; RFC 8996 §4, §5",
        required: "end the connection, with an alert if the input is TLS",
        cases: vec![
            raw("fatal-alert", record(21, &[2, 40]), &[]),
            raw("http", b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), &[]),
            raw("zeros", vec![0; 64], &[]),
            raw("application-data", record(23, b"Spam"), UNEXPECTED),
            raw("client-hello", client_hello, UNEXPECTED),
            raw("tls-1.0", server_hello(0x0301, 0x002F), PROTOCOL_VERSION),
            raw("tls-1.1", server_hello(0x0302, 0x002F), PROTOCOL_VERSION),
            raw("unknown-suite", server_hello(0x0303, 0xFAFA), &[40, 47]),
        ],
    }
}
