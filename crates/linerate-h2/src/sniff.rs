//! Detects the HTTP version of a connection from its first bytes (RFC 9113 §3.4).

use std::io;

use rustix::net::{RecvFlags, recv};
use tokio::{io::Interest, net::TcpStream};

/// The connection preface: the first bytes from a client that knows that the server supports
/// HTTP/2.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Returns whether the client uses HTTP/2.
///
/// This is for applications that accept connections themselves. It waits until the client has sent
/// enough to decide, and leaves all bytes unread. A client may take arbitrarily long: set a
/// deadline.
///
/// # Errors
/// Returns the error of the socket if it fails.
///
/// # Cancel safety
/// Dropping the future loses nothing.
pub async fn speaks_http2(stream: &TcpStream) -> io::Result<bool> {
    // "Would block" makes tokio wait until more has arrived although there are unread bytes.
    stream
        .async_io(Interest::READABLE, || {
            let mut received = [0; PREFACE.len()];
            let (_, bytes) = recv(stream, &mut received, RecvFlags::PEEK)?;
            is_http2(&received[..bytes]).ok_or_else(|| io::ErrorKind::WouldBlock.into())
        })
        .await
}

/// Returns whether the first bytes of a connection are those of HTTP/2, or `None` if there are too
/// few to decide. No bytes at all mean that the client has closed the connection.
pub fn is_http2(received: &[u8]) -> Option<bool> {
    let start = &received[..received.len().min(PREFACE.len())];
    match PREFACE.strip_prefix(start) {
        Some([]) => Some(true),
        Some(_) if !start.is_empty() => None,
        _ => Some(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preface_and_nothing_else_is_http2() {
        for bytes in 1..PREFACE.len() {
            assert_eq!(is_http2(&PREFACE[..bytes]), None);
            let mut received = PREFACE[..bytes].to_vec();
            received[bytes - 1] ^= 1;
            assert_eq!(is_http2(&received), Some(false));
        }
        assert_eq!(is_http2(PREFACE), Some(true));
        assert_eq!(is_http2(&[PREFACE, b"\0"].concat()), Some(true));
        assert_eq!(is_http2(b""), Some(false));
        assert_eq!(is_http2(b"GET /"), Some(false));
        assert_eq!(is_http2(b"POST"), Some(false));
    }
}
