//! A WebSocket client that sends exactly the given bytes and does nothing by itself.

use std::time::Duration;

use linerate_testkit::Frame;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::support::{Gateway, in_time};

/// Maximum time for a server to close a connection, including the closing handshake.
const GIVEN_UP_AFTER_MAX: Duration = Duration::from_secs(30);

/// An open connection whose client does not answer anything.
pub(crate) struct Bare {
    stream: TcpStream,
}

impl Bare {
    /// Opens a WebSocket.
    pub(crate) async fn open(gateway: &Gateway, path: &str) -> Self {
        let mut stream = TcpStream::connect(gateway.address).await.unwrap();
        stream
            .write_all(&gateway.request(path, None))
            .await
            .unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            answer.push(in_time(stream.read_u8()).await.unwrap());
        }
        assert!(answer.starts_with(b"HTTP/1.1 101"));
        Self { stream }
    }

    /// Opens a connection and connects as a Centrifuge client that is subscribed to a channel.
    pub(crate) async fn subscribe(gateway: &Gateway, channel: &str) -> Self {
        let mut bare = Self::open(gateway, "/connection/websocket").await;
        bare.send(r#"{"id":1,"connect":{}}"#).await;
        bare.send(&format!(
            r#"{{"id":2,"subscribe":{{"channel":"{channel}"}}}}"#
        ))
        .await;
        bare
    }

    pub(crate) async fn send(&mut self, text: &str) {
        let frame = Frame::new(1, text.as_bytes()).with_mask(Some(*b"mask"));
        self.write(&frame.to_bytes()).await;
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// Returns everything received until the server closes the connection.
    pub(crate) async fn rest(mut self) -> Vec<u8> {
        let mut said = Vec::new();
        // A reset also ends the connection.
        let end = self.stream.read_to_end(&mut said);
        _ = timeout(GIVEN_UP_AFTER_MAX, end).await.expect("in time");
        said
    }

    /// Sends a byte ten times per second, and returns everything received until the server closes
    /// the connection.
    pub(crate) async fn trickle(self) -> Vec<u8> {
        let (mut reader, mut writer) = self.stream.into_split();
        let mut said = Vec::new();
        let drip = async {
            while writer.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            ended = timeout(GIVEN_UP_AFTER_MAX, reader.read_to_end(&mut said)) => {
                _ = ended.expect("in time");
            }
            () = drip => {}
        }
        said
    }
}

/// Returns whether the received bytes contain a Close frame with this code.
pub(crate) fn is_closed_with(said: &[u8], code: u16) -> bool {
    let code = code.to_be_bytes();
    said.windows(4)
        .any(|bytes| bytes[0] == 0x88 && bytes[2..] == code)
}
