//! Opening connections.

use std::time::Duration;

use crate::{Result, WebSocket};

/// Opens a connection to a `ws://` or `wss://` URL with the default settings.
///
/// # Errors
/// Returns an error if the browser rejects the URL, or if the connection cannot be opened in time.
pub async fn connect(url: &str) -> Result<WebSocket> {
    Client::new().connect(url).await
}

/// The settings of a connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The most time that opening may take. Default: 30 s.
    pub connect_timeout: Duration,
    /// The most time that the closing handshake may take. Default: 5 s.
    pub close_timeout: Duration,
    /// The most bytes of messages that may wait to be received, with 64 bytes added for each
    /// message. A browser cannot be told to pause, so if more arrives, the connection is closed
    /// with code 4009, and receiving fails. Default: 16 MiB.
    pub recv_queue_bytes_max: usize,
    /// The most bytes that may wait in the browser to be sent before sending blocks. Default: 1
    /// MiB.
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

/// A builder for connections.
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

    /// Offers a subprotocol. The server chooses at most one of those offered.
    pub fn with_subprotocol(mut self, subprotocol: impl Into<String>) -> Self {
        self.subprotocols.push(subprotocol.into());
        self
    }

    /// Opens a connection; see [`connect`](crate::connect).
    ///
    /// # Errors
    /// Returns an error if the browser rejects the URL or a subprotocol, or if the connection
    /// cannot be opened in time.
    pub async fn connect(&self, url: &str) -> Result<WebSocket> {
        WebSocket::open(url, &self.subprotocols, self.options.clone()).await
    }
}
