//! Tunnels through HTTP proxies with CONNECT (RFC 9110 §9.3.6).

use linerate_proto::{handshake::TunnelHandshake, url::Credentials};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::{Destination, ProxyError};
use crate::dial::basic;

/// How many bytes of the response to read at once.
const READ_BYTES: usize = 1 << 10;

/// Asks the proxy at the other end of `stream` for a tunnel.
///
/// # Errors
/// The proxy refuses, or its response is malformed.
pub(super) async fn tunnel<S>(
    stream: &mut S,
    destination: &Destination,
    credentials: Option<&Credentials>,
) -> Result<(), ProxyError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut handshake = TunnelHandshake::new(&destination.to_string())?;
    if let Some(credentials) = credentials {
        handshake = handshake.with_header("Proxy-Authorization", &basic(credentials))?;
    }
    let mut request = Vec::new();
    handshake.encode(&mut request);
    stream.write_all(&request).await?;
    stream.flush().await?;
    let mut buffer = [0; READ_BYTES];
    loop {
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            return Err(handshake.handle_eof().into());
        }
        match handshake.handle_input(&buffer[..read])? {
            None => {}
            Some(taken) if taken == read => return Ok(()),
            Some(taken) => {
                let bytes = read - taken;
                return Err(ProxyError::DataUnexpected { bytes });
            }
        }
    }
}
