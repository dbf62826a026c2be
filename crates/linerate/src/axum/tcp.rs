//! Upgraded TCP connections, for servers that continue them elsewhere.

use axum::response::{IntoResponse, Response};
#[cfg(feature = "deflate")]
use linerate_proto::deflate::Agreement;
use linerate_proto::handshake::Request;
use tokio::net::TcpStream;

use super::{HandshakeRejection, WebSocketUpgrade, accepting};
use crate::transport::Transport;

/// An upgraded connection: everything needed to continue it as a WebSocket without this library,
/// for example by an `Adoption` of linerate-reactor.
#[derive(Debug)]
#[non_exhaustive]
pub struct TcpUpgrade {
    /// The socket, from which `input` has been read after the request.
    pub stream: TcpStream,
    /// The request, which has been answered with 101.
    pub request: Request,
    /// The first frames.
    pub input: Vec<u8>,
    /// How messages are compressed, if that was negotiated.
    #[cfg(feature = "deflate")]
    pub compression: Option<Agreement>,
}

impl WebSocketUpgrade {
    /// Answers the request and, once the connection is upgraded, passes its socket to `take`.
    ///
    /// Use this only for requests that arrived on a TCP socket over HTTP/1.1 without TLS. Other
    /// connections are closed, and so are those whose upgrade fails; `take` is not called for them.
    /// The connection is not among the [`Connections`](super::Connections). The request is refused
    /// with 403 if the page's origin is not allowed.
    pub fn on_tcp_upgrade(self, take: impl FnOnce(TcpUpgrade) + Send + 'static) -> Response {
        if let Err(rejection) = self.check_origin() {
            return rejection.into_response();
        }
        let Self {
            request,
            transport,
            settings,
            subprotocol,
            ..
        } = self;
        let answered = accepting(&request, subprotocol.as_deref(), &settings);
        let (response, agreed) = match answered {
            Ok(answered) => answered,
            Err(error) => return HandshakeRejection(error).into_response(),
        };
        #[cfg(feature = "deflate")]
        let compression = agreed.deflate;
        #[cfg(not(feature = "deflate"))]
        drop(agreed);
        tokio::spawn(async move {
            let Some((Transport::Tcp(stream), input)) = transport.into_io().await else {
                return tracing::debug!("connection is not upgraded to a TCP socket");
            };
            take(TcpUpgrade {
                stream,
                request,
                input,
                #[cfg(feature = "deflate")]
                compression,
            });
        });
        response
    }
}
