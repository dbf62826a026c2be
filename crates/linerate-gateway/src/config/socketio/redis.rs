//! `[socketio.redis]`: the Redis in which Socket.IO's own server and emitter publish.

use std::{collections::HashSet, path::PathBuf};

use serde::Deserialize;

use crate::config::{Secret, check::Check};

/// Maximum length of a key, in bytes.
const KEY_BYTES_MAX: usize = 256;

/// Maximum number of streams: each has its own connection.
const STREAMS_MAX: usize = 16;

/// The Redis in which Socket.IO's own server and emitter publish.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SocketIoRedisOptions {
    /// The URL of the service; nothing is read without one.
    pub url: Option<Secret>,
    /// The prefix of channels: the option `key` of the emitter and the adapter.
    pub key: String,
    /// The streams of `@socket.io/redis-streams-adapter`.
    #[serde(default)]
    pub streams: Vec<String>,
    /// Maximum size of a packet, in bytes.
    pub packet_bytes_max: usize,
    /// Maximum number of rooms that a packet names.
    pub rooms_max: usize,
    /// A PEM file with the certificate authorities to trust, instead of those of the system.
    pub tls_authorities: Option<PathBuf>,
}

impl SocketIoRedisOptions {
    pub(super) fn check(&self, check: &mut Check) {
        let is_key =
            |key: &str| (1..=KEY_BYTES_MAX).contains(&key.len()) && !key.contains(char::is_control);
        let because = "must have 1 to 256 bytes without control characters";
        if !is_key(&self.key) {
            check.refuse("key", &self.key, because);
        }
        check.range("streams", self.streams.len(), 0..=STREAMS_MAX);
        let mut names = HashSet::new();
        for stream in &self.streams {
            if !is_key(stream) {
                check.refuse("streams", stream, because);
            }
            if !names.insert(stream) {
                check.refuse("streams", stream, "is in the list twice");
            }
        }
        check.range("packet_bytes_max", self.packet_bytes_max, 1_024..=64 << 20);
        check.range("rooms_max", self.rooms_max, 1..=100_000);
    }
}
