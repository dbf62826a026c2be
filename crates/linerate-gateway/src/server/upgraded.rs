//! Upgraded connections, which the reactor continues.

use std::io;

use linerate::{Request, axum::UpgradedStream};
use linerate_reactor::Adoption;
use tokio::net::TcpStream;

use super::tls::TlsStream;

/// Returns everything that the reactor needs to continue a connection over HTTP/1.1, with or
/// without TLS.
///
/// # Errors
/// The socket is not one of the server's, or cannot leave the runtime.
pub(crate) fn adoption(stream: UpgradedStream, request: Request) -> io::Result<Adoption> {
    let stream = match stream.downcast::<TcpStream>() {
        Ok((socket, input)) => {
            return Ok(Adoption::new(socket.into_std()?, request).with_input(input));
        }
        Err(stream) => stream,
    };
    let (stream, input) = stream
        .downcast::<TlsStream>()
        .map_err(|_| io::Error::from(io::ErrorKind::Unsupported))?;
    let (socket, tls) = stream.into_parts();
    let adoption = Adoption::new(socket.into_std()?, request).with_input(input);
    Ok(adoption.with_tls(tls))
}
