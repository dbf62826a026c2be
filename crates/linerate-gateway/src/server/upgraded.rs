//! Upgraded connections, which the reactor continues.

use std::io;

use linerate::{Request, axum::UpgradedStream};
use linerate_reactor::Adoption;
use tokio::net::TcpStream;

use super::{detach::Detachable, tls::TlsStream};

/// Returns everything that the reactor needs to continue a connection over HTTP/1.1, with or
/// without TLS.
///
/// # Errors
/// The socket is not one of the server's, or cannot leave the runtime.
pub(crate) fn adoption(stream: UpgradedStream, request: Request) -> io::Result<Adoption> {
    let unsupported = || io::Error::from(io::ErrorKind::Unsupported);
    let stream = match stream.downcast::<Detachable<TcpStream>>() {
        Ok((stream, input)) => {
            let socket = stream.into_inner().ok_or_else(unsupported)?;
            return Ok(Adoption::new(socket.into_std()?, request).with_input(input));
        }
        Err(stream) => stream,
    };
    let (stream, input) = stream
        .downcast::<Detachable<TlsStream>>()
        .map_err(|_| unsupported())?;
    let stream = stream.into_inner().ok_or_else(unsupported)?;
    let (socket, tls) = stream.into_parts();
    let adoption = Adoption::new(socket.into_std()?, request).with_input(input);
    Ok(adoption.with_tls(tls))
}
