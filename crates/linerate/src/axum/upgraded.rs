//! Upgraded connections, for servers that continue them elsewhere.

use std::fmt;

use axum::response::{IntoResponse, Response};
use hyper::upgrade::Upgraded;
use hyper_util::{rt::TokioIo, server::conn::auto};
#[cfg(feature = "deflate")]
use linerate_proto::deflate::Agreement;
use linerate_proto::handshake::Request;
use tokio::io::{AsyncRead, AsyncWrite};

use super::{Detachable, HandshakeRejection, PendingTransport, WebSocketUpgrade, accepting};

/// An upgraded connection: everything needed to continue it as a WebSocket without this library,
/// for example by an `Adoption` of linerate-reactor.
#[derive(Debug)]
#[non_exhaustive]
pub struct StreamUpgrade {
    /// The byte stream, whose type the server knows.
    pub stream: UpgradedStream,
    /// The request, which has been answered with 101.
    pub request: Request,
    /// How messages are compressed, if that was negotiated.
    #[cfg(feature = "deflate")]
    pub compression: Option<Agreement>,
}

/// The byte stream of an upgraded connection. Its type is that of the streams that the server
/// passes to hyper, also as [`Detachable`]s; for `axum::serve`, that of the listener's streams.
pub struct UpgradedStream(pub(super) Upgraded);

impl UpgradedStream {
    /// Returns the stream and what was read from it after the request, which are the first frames.
    ///
    /// # Errors
    /// The stream has another type. It is returned unchanged.
    ///
    /// # Panics
    /// The stream was taken away by its [`Detacher`](super::Detacher).
    pub fn downcast<S>(self) -> std::result::Result<(S, Vec<u8>), Self>
    where
        S: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        // `axum::serve` wraps streams in a private type of hyper-util.
        let upgraded = match auto::upgrade::downcast::<TokioIo<S>>(self.0) {
            Ok(parts) => return Ok((parts.io.into_inner(), parts.read_buf.to_vec())),
            Err(upgraded) => upgraded,
        };
        let upgraded = match upgraded.downcast::<TokioIo<S>>() {
            Ok(parts) => return Ok((parts.io.into_inner(), parts.read_buf.to_vec())),
            Err(upgraded) => upgraded,
        };
        let parts = upgraded
            .downcast::<TokioIo<Detachable<S>>>()
            .map_err(Self)?;
        let stream = parts.io.into_inner().into_inner();
        let stream = stream.expect("a connection that is upgraded was not taken away");
        Ok((stream, parts.read_buf.to_vec()))
    }
}

impl fmt::Debug for UpgradedStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpgradedStream").finish_non_exhaustive()
    }
}

impl WebSocketUpgrade {
    /// Answers the request and, once the connection is upgraded, passes its stream to `take`.
    ///
    /// Use this only for requests over HTTP/1.1. A WebSocket on an HTTP/2 stream is closed, and so
    /// is a connection whose upgrade fails; `take` is not called for them. The connection is not
    /// among the [`Connections`](super::Connections). The request is refused with 403 if the page's
    /// origin is not allowed.
    ///
    /// ```
    /// use axum::{Router, response::Response, routing::any};
    /// use linerate::{Request, axum::WebSocketUpgrade};
    /// use tokio::net::TcpStream;
    ///
    /// /// Hands over the sockets of clients that use no TLS.
    /// async fn hand_over(upgrade: WebSocketUpgrade) -> Response {
    ///     upgrade.on_stream_upgrade(|upgrade| {
    ///         if let Ok((socket, input)) = upgrade.stream.downcast::<TcpStream>() {
    ///             continue_elsewhere(socket, upgrade.request, input);
    ///         }
    ///     })
    /// }
    ///
    /// fn continue_elsewhere(socket: TcpStream, request: Request, input: Vec<u8>) {
    ///     // …
    /// # _ = (socket, request, input);
    /// }
    ///
    /// let app: Router = Router::new().route("/elsewhere", any(hand_over));
    /// ```
    pub fn on_stream_upgrade(self, take: impl FnOnce(StreamUpgrade) + Send + 'static) -> Response {
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
            let Some(stream) = transport.into_upgraded().await else {
                return;
            };
            take(StreamUpgrade {
                stream,
                request,
                #[cfg(feature = "deflate")]
                compression,
            });
        });
        response
    }
}

impl PendingTransport {
    /// Waits until the response has upgraded the connection.
    async fn into_upgraded(self) -> Option<UpgradedStream> {
        let Self::Upgrade(upgrade) = self else {
            tracing::debug!("WebSocket on an HTTP/2 stream closed");
            return None;
        };
        match upgrade.await {
            Ok(upgraded) => Some(UpgradedStream(upgraded)),
            Err(error) => {
                tracing::debug!(%error, "upgrade failed");
                None
            }
        }
    }
}
