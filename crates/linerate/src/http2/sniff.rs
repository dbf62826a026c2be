//! Which HTTP a connection speaks, by its first bytes (RFC 9113 §3.4).

use std::io;

use rustix::net::{RecvFlags, recv};
use tokio::{io::Interest, net::TcpStream};

/// What a client says first if it knows that the server speaks HTTP/2.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Waits until the client has said which HTTP it speaks, for those who accept connections themselves;
/// nothing is read. A client may be slow to say so: give it a deadline.
///
/// # Errors
/// The socket failed.
///
/// # Cancel safety
/// Dropping the future loses nothing.
#[cfg_attr(
    not(feature = "axum"),
    expect(
        unreachable_pub,
        reason = "applications need it with `serve_http2` only"
    )
)]
pub async fn speaks_http2(stream: &TcpStream) -> io::Result<bool> {
    // "Would block" makes tokio wait until more has come, although bytes lie there unread.
    stream
        .async_io(Interest::READABLE, || {
            let mut said = [0; PREFACE.len()];
            let (_, bytes) = recv(stream, &mut said, RecvFlags::PEEK)?;
            verdict(&said[..bytes]).ok_or_else(|| io::ErrorKind::WouldBlock.into())
        })
        .await
}

/// Tells what the first bytes say; `None` if that is nothing yet. No bytes are the end.
fn verdict(said: &[u8]) -> Option<bool> {
    match PREFACE.strip_prefix(said) {
        Some([]) => Some(true),
        Some(_) if !said.is_empty() => None,
        _ => Some(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preface_and_nothing_else_is_http2() {
        for bytes in 1..PREFACE.len() {
            assert_eq!(verdict(&PREFACE[..bytes]), None);
            let mut said = PREFACE[..bytes].to_vec();
            said[bytes - 1] ^= 1;
            assert_eq!(verdict(&said), Some(false));
        }
        assert_eq!(verdict(PREFACE), Some(true));
        assert_eq!(verdict(b""), Some(false));
        assert_eq!(verdict(b"GET /"), Some(false));
        assert_eq!(verdict(b"POST"), Some(false));
    }
}
