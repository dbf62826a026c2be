//! The identity of a client, and its registration with the worker.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use linerate_hub::{ClientId, ClientInfo};

use super::deadlines::until;
use crate::{
    auth::{ConnectionClaims, TokenId},
    backend::Admitted,
    node::Worker,
    protocol::command::Connect,
};

/// The identity of a client.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// The client, as others see it outside of channels.
    pub(crate) who: Arc<ClientInfo>,
    /// What was vouched for the client; `None` if it is anonymous.
    pub(crate) credentials: Option<Box<Credentials>>,
}

/// A client that has been authenticated, and is about to connect.
#[derive(Debug)]
pub(crate) struct Authenticated {
    pub(crate) connect: Connect,
    /// What is granted to it; `None` if it is anonymous.
    pub(crate) admitted: Option<Admitted>,
}

/// What a token or a backend has said about a client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Credentials {
    /// How long they were still valid when they were presented; `None` if they never expire.
    pub(crate) ttl: Option<Duration>,
    /// Information about the token; for a backend, when it was asked.
    pub(crate) token: TokenId,
    /// What only servers know about the client, as JSON.
    pub(crate) meta: Option<Bytes>,
}

/// A client's registration with its worker; dropping it disconnects the client.
#[derive(Debug)]
pub(crate) struct Member {
    worker: Arc<Worker>,
    id: ClientId,
}

impl Identity {
    /// Creates an identity from the claims of a token; without claims, the client stays anonymous.
    pub(crate) fn new(anonymous: &Arc<ClientInfo>, claims: Option<&ConnectionClaims>) -> Self {
        let named = |claims: &ConnectionClaims| {
            Arc::new(ClientInfo {
                user: claims.user.as_str().into(),
                client: anonymous.client.clone(),
                connection: claims.info.as_deref().map(Arc::from),
                channel: None,
            })
        };
        Self {
            who: claims.map_or_else(|| anonymous.clone(), named),
            credentials: claims.map(|claims| {
                Box::new(Credentials {
                    ttl: claims.expires_at.map(until),
                    token: claims.token.clone(),
                    meta: claims.meta.clone(),
                })
            }),
        }
    }

    /// Returns how long the credentials were still valid; `None` if they never expire.
    pub(crate) fn ttl(&self) -> Option<Duration> {
        self.credentials.as_ref()?.ttl
    }

    /// Returns information about the token; `None` if there was none.
    pub(crate) fn token(&self) -> Option<&TokenId> {
        Some(&self.credentials.as_ref()?.token)
    }

    /// Returns what only servers know about the client, as JSON.
    pub(crate) fn meta(&self) -> Option<&Bytes> {
        self.credentials.as_ref()?.meta.as_ref()
    }

    /// Returns the user; empty if anonymous.
    pub(crate) fn user(&self) -> &str {
        &self.who.user
    }

    /// Returns whether the client has no user.
    pub(crate) fn is_anonymous(&self) -> bool {
        self.user().is_empty()
    }

    /// Returns the information about this client that others see in a channel.
    pub(crate) fn to_info(&self, channel: Option<Bytes>) -> Arc<ClientInfo> {
        match channel {
            None => self.who.clone(),
            Some(channel) => Arc::new(ClientInfo {
                channel: Some((*channel).into()),
                ..ClientInfo::clone(&self.who)
            }),
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

/// Returns when something valid for `ttl` plus `grace` ends; `None` if it never ends or the time
/// cannot be represented.
pub(crate) fn end_of(now: Instant, ttl: Option<Duration>, grace: Duration) -> Option<Instant> {
    now.checked_add(ttl?)?.checked_add(grace)
}
