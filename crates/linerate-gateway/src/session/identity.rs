//! Who a client is, and its place at the worker.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use linerate_hub::{ClientId, ClientInfo};

use super::deadlines::until;
use crate::{
    auth::{ConnectionClaims, Shown},
    node::Worker,
};

/// Who a client is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Identity {
    /// Names the connection, unique in the cluster.
    pub(crate) client: String,
    /// The user; empty if anonymous.
    pub(crate) user: String,
    /// What others are told of the connection, as JSON.
    pub(crate) info: Option<Bytes>,
    /// For how long the token was good when it was shown; `None` for ever.
    pub(crate) ttl: Option<Duration>,
    /// What the token said of itself; `None` if there was none.
    pub(crate) token: Option<Shown>,
}

/// A client's place at its worker, until it is dropped.
#[derive(Debug)]
pub(crate) struct Member {
    worker: Arc<Worker>,
    id: ClientId,
}

impl Identity {
    /// Takes what a token says; without one the client is anonymous.
    pub(crate) fn new(client: &str, claims: Option<&ConnectionClaims>) -> Self {
        Self {
            client: client.to_owned(),
            user: claims.map_or(String::new(), |claims| claims.user.clone()),
            info: claims.and_then(|claims| claims.info.clone()),
            token: claims.map(|claims| claims.token.clone()),
            ttl: claims.and_then(|claims| claims.expires_at).map(until),
        }
    }

    /// Returns whether nobody knows who this is.
    pub(crate) fn is_anonymous(&self) -> bool {
        self.user.is_empty()
    }

    /// Returns what others are told of this client in a channel.
    pub(crate) fn to_info(&self, channel: Option<Bytes>) -> ClientInfo {
        ClientInfo {
            user: self.user.clone(),
            client: self.client.clone(),
            connection: self.info.clone(),
            channel,
        }
    }
}

impl Member {
    pub(crate) fn new(worker: Arc<Worker>, id: ClientId) -> Self {
        Self { worker, id }
    }

    pub(crate) const fn id(&self) -> ClientId {
        self.id
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.worker.disconnect(self.id);
    }
}

/// Returns when something that is good for `ttl` and `grace` ends; `None` if no clock reaches it.
pub(crate) fn end_of(now: Instant, ttl: Option<Duration>, grace: Duration) -> Option<Instant> {
    now.checked_add(ttl?)?.checked_add(grace)
}
