//! What is noted of a client while it is connected, for webhooks.

use std::sync::{
    OnceLock,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use serde::Serialize;

use crate::protocol::codes::Disconnect;

/// A client of which webhooks are told.
#[derive(Debug, Default)]
pub(crate) struct Tracked {
    /// True from the admission of the client until another process continues with it.
    is_reported: AtomicBool,
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
    closed: OnceLock<Closed>,
}

/// How a connection has ended, and what it has transferred.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Parting {
    /// Bytes of the commands that were received, without framing and encryption.
    received_bytes: u64,
    /// Bytes of replies and publications that were handed to the socket, before compression and
    /// without framing and encryption.
    sent_bytes: u64,
    /// `None` if the client has left.
    #[serde(flatten)]
    closed: Option<Closed>,
}

/// Why the server closes a connection.
#[derive(Clone, Debug, Serialize)]
struct Closed {
    code: u16,
    reason: String,
}

impl Tracked {
    /// Sets whether this process tells webhooks what happens to the client.
    pub(crate) fn set_reported(&self, is_reported: bool) {
        self.is_reported.store(is_reported, Ordering::Relaxed);
    }

    /// Returns whether this process tells webhooks what happens to the client.
    pub(crate) fn is_reported(&self) -> bool {
        self.is_reported.load(Ordering::Relaxed)
    }

    pub(crate) fn count_received(&self, bytes: usize) {
        self.received_bytes
            .fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn count_sent(&self, bytes: usize) {
        self.sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Notes why the server closes the connection. The first reason counts.
    pub(crate) fn close(&self, disconnect: &Disconnect) {
        self.closed.get_or_init(|| Closed {
            code: disconnect.code,
            reason: disconnect.reason.to_string(),
        });
    }

    pub(crate) fn parting(&self) -> Parting {
        Parting {
            closed: self.closed.get().cloned(),
            received_bytes: self.received_bytes.load(Ordering::Relaxed),
            sent_bytes: self.sent_bytes.load(Ordering::Relaxed),
        }
    }
}

impl Parting {
    /// Returns the length of the reason in bytes.
    pub(super) fn reason_bytes(&self) -> usize {
        self.closed.as_ref().map_or(0, |closed| closed.reason.len())
    }
}
