//! Opening connections.

use crate::{Options, Result, WebSocket};

/// Opens a connection to a `ws://` or `wss://` URL with the default settings.
///
/// # Errors
/// Returns an error if the browser rejects the URL, or if the connection cannot be opened in time.
pub async fn connect(url: &str) -> Result<WebSocket> {
    Client::new().connect(url).await
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
