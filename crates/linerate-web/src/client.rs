//! Opening connections.

use std::time::Duration;

use crate::{Result, WebSocket};

/// Opens a connection to a `ws://` or `wss://` URL with the default settings.
///
/// # Errors
/// The browser accepts no such URL, or the connection can't be opened, or not in time.
pub async fn connect(url: &str) -> Result<WebSocket> {
    Client::new().connect(url).await
}

/// How a connection behaves.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// How long opening may take. Default: 30 s.
    pub connect_timeout: Duration,
    /// How long the closing handshake may take. Default: 5 s.
    pub close_timeout: Duration,
    /// How many bytes of messages may wait to be received, each message counted with 64 more. A browser can't
    /// be told to wait, so with more the connection is closed, with 4009, and receiving fails. Default: 16 MiB.
    pub recv_queue_bytes_max: usize,
    /// How many bytes may wait in the browser to be sent before a send waits too. Default: 1 MiB.
    pub send_queue_bytes_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(30),
            close_timeout: Duration::from_secs(5),
            recv_queue_bytes_max: 16 << 20,
            send_queue_bytes_max: 1 << 20,
        }
    }
}

/// A client, to be configured.
#[derive(Clone, Debug, Default)]
pub struct Client {
    options: Options,
    subprotocols: Vec<String>,
}

impl Client {
    /// Creates a client with the default settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the options of each connection.
    pub fn with_options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Offers a subprotocol; the server chooses at most one of those offered.
    pub fn with_subprotocol(mut self, subprotocol: impl Into<String>) -> Self {
        self.subprotocols.push(subprotocol.into());
        self
    }

    /// Opens a connection; see [`connect`](crate::connect).
    ///
    /// # Errors
    /// The browser accepts no such URL or subprotocol, or the connection can't be opened, or not in time.
    pub async fn connect(&self, url: &str) -> Result<WebSocket> {
        WebSocket::open(url, &self.subprotocols, self.options.clone()).await
    }
}
