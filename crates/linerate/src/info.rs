//! What is known about the connection that carries a WebSocket.

use std::net::SocketAddr;

use linerate_proto::handshake::HttpVersion;
#[cfg(feature = "rustls")]
use rustls::{
    CipherSuite, ClientConnection, CommonState, ProtocolVersion, ServerConnection,
    pki_types::CertificateDer,
};
#[cfg(unix)]
use tokio::net::unix::UCred;

/// What is known about the connection that carries a WebSocket: its addresses, the HTTP version of
/// the opening handshake, and TLS.
///
/// It is collected when it is asked for, so that connections do not store it. Over HTTP/2 and
/// HTTP/3, it describes the connection that the WebSockets share. Nothing but the HTTP version is
/// known about streams whose type the library does not know.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> linerate::Result<()> {
/// # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// # let server = listener.local_addr()?;
/// # let url = format!("ws://{server}/");
/// # tokio::spawn(linerate::serve(listener, |mut ws, _request| async move {
/// #     ws.recv().await.map(drop)
/// # }, std::future::pending()));
/// let ws = linerate::connect(&url).await?;
/// assert_eq!(ws.peer_addr(), Some(server));
/// let info = ws.info().expect("the connection is open");
/// assert_eq!(info.http_version, linerate::handshake::HttpVersion::Http11);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectionInfo {
    /// The HTTP version of the opening handshake.
    pub http_version: HttpVersion,
    /// Our address; `None` over Unix sockets, and over HTTP/3, whose sockets are shared.
    pub local_addr: Option<SocketAddr>,
    /// The address of the peer; behind a proxy, that of the proxy. `None` over Unix sockets.
    pub peer_addr: Option<SocketAddr>,
    /// The user and the process at the other end of a Unix socket.
    #[cfg(unix)]
    pub peer_credentials: Option<UCred>,
    /// What was negotiated with TLS; `None` without TLS.
    #[cfg(feature = "rustls")]
    pub tls: Option<TlsInfo>,
}

impl Default for ConnectionInfo {
    /// Creates the information about a stream of which nothing is known, over HTTP/1.1.
    fn default() -> Self {
        Self {
            http_version: HttpVersion::Http11,
            local_addr: None,
            peer_addr: None,
            #[cfg(unix)]
            peer_credentials: None,
            #[cfg(feature = "rustls")]
            tls: None,
        }
    }
}

/// What was negotiated in the TLS handshake of a connection.
#[cfg(feature = "rustls")]
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TlsInfo {
    /// The protocol that ALPN selected.
    pub alpn_protocol: Option<Vec<u8>>,
    /// The cipher suite; unknown over HTTP/3.
    pub cipher_suite: Option<CipherSuite>,
    /// The peer's certificate, followed by those that it was issued with. Empty on servers that do
    /// not request certificates.
    pub peer_certificates: Vec<CertificateDer<'static>>,
    /// The version of TLS.
    pub protocol_version: Option<ProtocolVersion>,
    /// The name under which the client looks for the server (SNI); on servers only.
    pub server_name: Option<String>,
}

#[cfg(feature = "rustls")]
impl TlsInfo {
    pub(crate) fn of_client(tls: &ClientConnection) -> Self {
        Self::of_state(tls)
    }

    pub(crate) fn of_server(tls: &ServerConnection) -> Self {
        Self {
            server_name: tls.server_name().map(Into::into),
            ..Self::of_state(tls)
        }
    }

    fn of_state(tls: &CommonState) -> Self {
        Self {
            alpn_protocol: tls.alpn_protocol().map(<[u8]>::to_vec),
            cipher_suite: tls.negotiated_cipher_suite().map(|suite| suite.suite()),
            peer_certificates: tls.peer_certificates().unwrap_or_default().to_vec(),
            protocol_version: tls.protocol_version(),
            server_name: None,
        }
    }

    /// QUIC always uses TLS 1.3 (RFC 9001 §4.2).
    #[cfg(feature = "http3")]
    pub(crate) fn of_quic(connection: &quinn::Connection) -> Self {
        let handshake = connection
            .handshake_data()
            .and_then(|data| data.downcast::<quinn::crypto::rustls::HandshakeData>().ok());
        let (alpn_protocol, server_name) = match handshake {
            Some(handshake) => (handshake.protocol, handshake.server_name),
            None => (None, None),
        };
        let certificates = connection
            .peer_identity()
            .and_then(|identity| identity.downcast::<Vec<CertificateDer<'static>>>().ok());
        Self {
            alpn_protocol,
            cipher_suite: None,
            peer_certificates: certificates.map(|chain| *chain).unwrap_or_default(),
            protocol_version: Some(ProtocolVersion::TLSv1_3),
            server_name,
        }
    }
}
