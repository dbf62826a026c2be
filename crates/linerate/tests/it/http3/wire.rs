//! A peer made of QUIC and raw bytes that does not use the library.

use std::{net::UdpSocket, sync::Arc};

use linerate_proto::{Header, Role};
use linerate_testkit::Frame as WebSocketFrame;
use quinn::{
    ClientConfig, Connection, Endpoint, RecvStream, SendStream, ServerConfig, TransportConfig,
    VarInt,
    crypto::rustls::{QuicClientConfig, QuicServerConfig},
};

use super::Running;
use crate::{raw::in_time, tls::certificate};

pub(super) const DATA: u8 = 0x0;
pub(super) const HEADERS: u8 = 0x1;

/// A control stream with empty settings.
pub(super) const CONTROL: &[u8] = b"\x00\x04\x00";

/// The fields of a request that opens a WebSocket.
pub(super) const CONNECT: [(&str, &str); 6] = [
    (":method", "CONNECT"),
    (":protocol", "websocket"),
    (":scheme", "https"),
    (":authority", "localhost"),
    (":path", "/"),
    ("sec-websocket-version", "13"),
];

/// Returns [`CONNECT`] with the field of this name replaced or left out.
pub(super) fn connect_with<'a>(name: &str, value: Option<&'a str>) -> Vec<(&'a str, &'a str)> {
    CONNECT
        .into_iter()
        .filter_map(|field| match field.0 == name {
            true => value.map(|value| (field.0, value)),
            false => Some(field),
        })
        .collect()
}

/// A client.
pub(super) struct Wire {
    pub(super) connection: Connection,
    _control: SendStream,
}

impl Wire {
    pub(super) async fn open(server: &Running) -> Self {
        Self::open_with(server, CONTROL, TransportConfig::default()).await
    }

    /// Connects, and sends `first` on its first stream.
    pub(super) async fn open_with(
        server: &Running,
        first: &[u8],
        transport: TransportConfig,
    ) -> Self {
        let mut tls = (*server.trusting).clone();
        tls.alpn_protocols = vec![b"h3".to_vec()];
        let crypto = QuicClientConfig::try_from(tls).unwrap();
        let mut config = ClientConfig::new(Arc::new(crypto));
        config.transport_config(Arc::new(transport));
        let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        let connecting = endpoint.connect_with(config, server.address, "localhost");
        let connection = in_time(connecting.unwrap()).await.unwrap();
        let mut control = in_time(connection.open_uni()).await.unwrap();
        control.write_all(first).await.unwrap();
        Self {
            connection,
            _control: control,
        }
    }

    /// Opens a stream and sends bytes on it.
    pub(super) async fn send(&self, bytes: &[u8]) -> Exchange {
        let (mut send, recv) = in_time(self.connection.open_bi()).await.unwrap();
        in_time(send.write_all(bytes)).await.unwrap();
        Exchange { send, recv }
    }

    /// Opens a stream with a request.
    pub(super) async fn request(&self, fields: &[(&str, &str)]) -> Exchange {
        self.send(&frame(HEADERS, &section(fields))).await
    }

    /// Opens a WebSocket.
    pub(super) async fn connect(&self) -> Exchange {
        let mut exchange = self.request(&CONNECT).await;
        let (kind, section) = exchange.next().await.unwrap();
        assert_eq!((kind, status(&section)), (HEADERS, 200));
        exchange
    }

    /// Sends bytes on a new stream, which stays open.
    pub(super) async fn send_uni(&self, bytes: &[u8]) -> SendStream {
        let mut send = in_time(self.connection.open_uni()).await.unwrap();
        in_time(send.write_all(bytes)).await.unwrap();
        send
    }

    /// Waits until the peer closes the connection; returns the code.
    pub(super) async fn closed(&self) -> u64 {
        closed(&self.connection).await
    }
}

/// Waits until the peer closes the connection; returns the code.
pub(super) async fn closed(connection: &Connection) -> u64 {
    match in_time(connection.closed()).await {
        quinn::ConnectionError::ApplicationClosed(close) => close.error_code.into_inner(),
        error => panic!("{error}"),
    }
}

/// One stream.
pub(super) struct Exchange {
    pub(super) send: SendStream,
    pub(super) recv: RecvStream,
}

impl Exchange {
    pub(super) async fn data(&mut self, payload: &[u8]) {
        in_time(self.send.write_all(&frame(DATA, payload)))
            .await
            .unwrap();
    }

    /// Reads the next frame, whose header must be short, or returns `None` at the end.
    pub(super) async fn next(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut kind = [0];
        in_time(self.recv.read(&mut kind)).await.unwrap()?;
        let mut length = [0];
        in_time(self.recv.read_exact(&mut length)).await.unwrap();
        let more = (1 << (length[0] >> 6)) - 1;
        let mut rest = vec![0; more];
        in_time(self.recv.read_exact(&mut rest)).await.unwrap();
        let length = rest
            .iter()
            .fold(usize::from(length[0] & 0x3f), |value, byte| {
                value << 8 | usize::from(*byte)
            });
        let mut payload = vec![0; length];
        in_time(self.recv.read_exact(&mut payload)).await.unwrap();
        Some((kind[0], payload))
    }

    /// Reads DATA frames until a WebSocket frame is complete.
    pub(super) async fn message(&mut self) -> (u8, Vec<u8>) {
        let mut bytes = Vec::new();
        loop {
            if let Ok(Some((header, head_bytes))) = Header::decode(&bytes)
                && bytes.len() >= head_bytes + header.payload_bytes as usize
            {
                assert_eq!(bytes.len(), head_bytes + header.payload_bytes as usize);
                return (bytes[0], bytes.split_off(head_bytes));
            }
            let (kind, payload) = self.next().await.expect("a message arrives");
            assert_eq!(kind, DATA);
            bytes.extend(payload);
        }
    }

    pub(super) async fn echo(&mut self, text: &str) {
        self.data(&masked(WebSocketFrame::new(0x1, text.as_bytes())))
            .await;
        assert_eq!(self.message().await, (0x81, text.as_bytes().to_vec()));
    }

    /// Waits until the peer resets its half of the stream; returns the code.
    pub(super) async fn reset(&mut self) -> u64 {
        let mut buffer = [0; 1_000];
        loop {
            match in_time(self.recv.read(&mut buffer)).await {
                Ok(Some(_)) => {}
                Err(quinn::ReadError::Reset(code)) => return code.into_inner(),
                end => panic!("{end:?}"),
            }
        }
    }

    /// Reads the response to a request that is refused: its status and its text.
    pub(super) async fn refusal(&mut self) -> (u16, String) {
        let (kind, section) = self.next().await.unwrap();
        assert_eq!(kind, HEADERS);
        let mut text = Vec::new();
        while let Some((kind, payload)) = self.next().await {
            assert_eq!(kind, DATA);
            text.extend(payload);
        }
        (status(&section), String::from_utf8(text).unwrap())
    }
}

/// Masks a frame as clients must.
pub(super) fn masked(frame: WebSocketFrame) -> Vec<u8> {
    frame.to_role(Role::Server).to_bytes()
}

/// Encodes a frame of less than 2^14 bytes.
pub(super) fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    match u8::try_from(payload.len()) {
        Ok(length @ 0..64) => bytes.push(length),
        _ => bytes.extend((0x4000 | payload.len() as u16).to_be_bytes()),
    }
    bytes.extend_from_slice(payload);
    bytes
}

/// Encodes fields as literals, with names of less than 134 bytes and values of less than 16,000
/// bytes.
pub(super) fn section(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = vec![0, 0];
    for (name, value) in fields {
        match name.len() as u8 {
            length @ 0..7 => bytes.push(0x20 | length),
            length => bytes.extend([0x27, length - 7]),
        }
        bytes.extend_from_slice(name.as_bytes());
        match value.len() {
            length @ 0..127 => bytes.push(length as u8),
            length => {
                let rest = length - 127;
                bytes.extend([0x7f, rest as u8 | 0x80, (rest >> 7) as u8]);
            }
        }
        bytes.extend_from_slice(value.as_bytes());
    }
    bytes
}

/// Returns the status at the beginning of a field section.
pub(super) fn status(section: &[u8]) -> u16 {
    match &section[2..] {
        [0xd9, ..] => 200,
        [0xdc, ..] => 503,
        [0xff, 0x04, ..] => 400,
        [0xff, 0x05, ..] => 403,
        [0x5f, 0x09, 3, digits @ ..] => std::str::from_utf8(&digits[..3]).unwrap().parse().unwrap(),
        other => panic!("{other:?}"),
    }
}

/// A server that is controlled by the test, and the configuration of a client that trusts it.
pub(super) struct WireServer {
    endpoint: Endpoint,
    pub(super) trusting: linerate::Client,
    pub(super) url: String,
}

impl WireServer {
    pub(super) fn start() -> Self {
        let (mut tls, roots) = certificate("localhost");
        tls.alpn_protocols = vec![b"h3".to_vec()];
        let crypto = QuicServerConfig::try_from(tls).unwrap();
        let config = ServerConfig::with_crypto(Arc::new(crypto));
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let endpoint = Endpoint::new(
            quinn::EndpointConfig::default(),
            Some(config),
            socket,
            Arc::new(quinn::TokioRuntime),
        );
        let tls = linerate::tls::client_config(roots);
        Self {
            endpoint: endpoint.unwrap(),
            trusting: linerate::Client::new()
                .with_tls(Arc::new(tls))
                .without_proxy()
                .with_http3(),
            url: format!("wss://localhost:{port}/"),
        }
    }

    /// Accepts a connection, and sends `first` on its first stream, which is returned.
    pub(super) async fn accept(&self, first: &[u8]) -> (Connection, SendStream) {
        let incoming = in_time(self.endpoint.accept()).await.unwrap();
        let connection = in_time(incoming.into_future()).await.unwrap();
        let mut control = in_time(connection.open_uni()).await.unwrap();
        control.write_all(first).await.unwrap();
        (connection, control)
    }

    /// Accepts a connection that may open WebSockets, and reads the request on its first stream.
    pub(super) async fn accept_request(&self) -> (Connection, SendStream, Exchange) {
        let (connection, control) = self.accept(b"\x00\x04\x02\x08\x01").await;
        let (send, recv) = in_time(connection.accept_bi()).await.unwrap();
        let mut exchange = Exchange { send, recv };
        let (kind, _) = exchange.next().await.unwrap();
        assert_eq!(kind, HEADERS);
        (connection, control, exchange)
    }
}

/// Converts a code to a QUIC integer.
pub(super) fn code(code: u32) -> VarInt {
    VarInt::from_u32(code)
}
