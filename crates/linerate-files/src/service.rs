//! What a server embeds.

use std::{fmt, sync::Arc};

use linerate::{Incoming, Result, WebSocket};

use crate::{
    Limits, Store, conversation::Conversation, message::SUBPROTOCOL, registry::Registry,
    shared::Shared,
};

/// Receives the uploads of all connections. Clones share the uploads.
///
/// See the [crate](crate) for an example.
pub struct Uploads<S: Store> {
    shared: Arc<Shared<S>>,
}

impl<S: Store> Uploads<S> {
    /// Creates the service. Nothing is received until a connection is served.
    ///
    /// # Panics
    /// Panics outside a tokio runtime, in which it starts a task that ends idle uploads.
    pub fn new(store: S, limits: Limits) -> Self {
        let registry = Registry::start(&limits);
        Self {
            shared: Arc::new(Shared {
                store,
                limits,
                registry,
            }),
        }
    }

    /// Accepts a connection with the subprotocol of uploads, and serves it until it ends.
    ///
    /// The application decides beforehand who may upload, from the
    /// [request](Incoming::request).
    ///
    /// # Errors
    /// The opening handshake fails, or the connection is lost. Its uploads are kept for
    /// [`Limits::idle_max`].
    pub async fn accept(&self, incoming: Incoming) -> Result<()> {
        let incoming = incoming.with_subprotocols(&[SUBPROTOCOL]);
        self.serve(incoming.accept().await?).await
    }

    /// Serves a connection that was accepted, for example by axum, until it ends.
    ///
    /// # Errors
    /// The connection is lost. Its uploads are kept for [`Limits::idle_max`].
    pub async fn serve(&self, ws: WebSocket) -> Result<()> {
        let (sender, mut receiver) = ws.split();
        Conversation::new(&self.shared, &sender)
            .hold(&mut receiver)
            .await
    }

    /// Returns how many uploads are kept, with or without a connection. Complete ones count until
    /// their results expire.
    pub fn kept(&self) -> usize {
        self.shared.registry.len()
    }
}

impl<S: Store> Clone for Uploads<S> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<S: Store> fmt::Debug for Uploads<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Uploads")
            .field("kept", &self.kept())
            .finish_non_exhaustive()
    }
}
