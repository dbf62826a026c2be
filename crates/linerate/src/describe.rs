//! Collects what is known about a connection from the types of its streams.

use std::any::Any;

#[cfg(any(feature = "http2", feature = "http3"))]
use linerate_proto::handshake::HttpVersion;
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
#[cfg(feature = "rustls")]
use tokio_rustls::{client, server};

#[cfg(feature = "rustls")]
use crate::info::TlsInfo;
#[cfg(feature = "rustls")]
use crate::tls::HelloInspector;
use crate::{
    info::ConnectionInfo,
    parts::RawStream,
    transport::{Rewound, Transport},
};

/// Returns what is known about a connection.
pub(crate) fn describe(io: &Transport) -> ConnectionInfo {
    match io {
        #[cfg(feature = "http2")]
        Transport::Http2(stream) => {
            let connection = stream.connection.as_deref().cloned();
            ConnectionInfo {
                http_version: HttpVersion::Http2,
                ..connection.unwrap_or_default()
            }
        }
        Transport::Other(io) => describe_stream(io.as_ref().as_any()),
        Transport::Tcp(stream) => describe_stream(stream),
    }
}

/// Returns what is known about a connection of HTTP/3.
#[cfg(feature = "http3")]
pub(crate) fn describe_quic(connection: &quinn::Connection) -> ConnectionInfo {
    ConnectionInfo {
        http_version: HttpVersion::Http3,
        peer_addr: Some(connection.remote_address()),
        tls: Some(TlsInfo::of_quic(connection)),
        ..ConnectionInfo::default()
    }
}

/// Returns what is known about a stream of any type.
fn describe_stream(stream: &dyn Any) -> ConnectionInfo {
    if let Some(tcp) = stream.downcast_ref::<TcpStream>() {
        return ConnectionInfo {
            local_addr: tcp.local_addr().ok(),
            peer_addr: tcp.peer_addr().ok(),
            ..ConnectionInfo::default()
        };
    }
    #[cfg(unix)]
    if let Some(unix) = stream.downcast_ref::<UnixStream>() {
        return ConnectionInfo {
            peer_credentials: unix.peer_cred().ok(),
            ..ConnectionInfo::default()
        };
    }
    if let Some(rewound) = stream.downcast_ref::<Rewound>() {
        return describe(rewound.io());
    }
    if let Some(raw) = stream.downcast_ref::<RawStream>() {
        return describe(&raw.0);
    }
    #[cfg(feature = "http3")]
    if let Some(stream) = stream.downcast_ref::<linerate_h3::Stream>() {
        return describe_quic(stream.connection());
    }
    #[cfg(feature = "rustls")]
    if let Some(secured) = describe_tls(stream) {
        return secured;
    }
    ConnectionInfo::default()
}

#[cfg(feature = "rustls")]
fn describe_tls(stream: &dyn Any) -> Option<ConnectionInfo> {
    let (mut info, tls) = if let Some(stream) =
        stream.downcast_ref::<server::TlsStream<HelloInspector<Transport>>>()
    {
        let (inspector, tls) = stream.get_ref();
        (describe(inspector.get_ref()), TlsInfo::of_server(tls))
    } else if let Some(stream) = stream.downcast_ref::<client::TlsStream<Transport>>() {
        let (io, tls) = stream.get_ref();
        (describe(io), TlsInfo::of_client(tls))
    } else if let Some(stream) = stream.downcast_ref::<server::TlsStream<TcpStream>>() {
        let (tcp, tls) = stream.get_ref();
        (describe_stream(tcp), TlsInfo::of_server(tls))
    } else {
        let stream = stream.downcast_ref::<client::TlsStream<TcpStream>>()?;
        let (tcp, tls) = stream.get_ref();
        (describe_stream(tcp), TlsInfo::of_client(tls))
    };
    info.tls = Some(tls);
    Some(info)
}
