//! Every limit by name, for those who want to know them: the configured ones and those that are fixed.

use std::{fmt, time::Duration};

use linerate::{Config, HandshakeLimits, Http2Limits};

use crate::{api::attempts, protocol::centrifuge, server, session, transport};

/// A limit with its value in force.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Limit {
    /// The path of its key in the configuration; of a fixed one a name of the same form.
    pub key: String,
    /// How much is allowed.
    pub value: u64,
    /// Of what.
    pub unit: Unit,
    /// What is limited.
    pub meaning: String,
}

/// What is counted.
///
/// Complete: keys of the configuration end in one of these.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Things, as the key names them.
    Count,
    /// Milliseconds.
    Milliseconds,
    /// Things in a second.
    PerSecond,
    /// Seconds.
    Seconds,
}

impl Unit {
    /// Returns the unit that the name of a key ends in.
    pub(crate) fn of_key(name: &str) -> Self {
        let ends = |end: &str| name.ends_with(end);
        match () {
            () if ends("_bytes_max") || name == "bytes_max" => Self::Bytes,
            () if ends("_per_second_max") || ends("_per_second_min") => Self::PerSecond,
            () if ends("_ms") => Self::Milliseconds,
            () if ends("_s") => Self::Seconds,
            () => Self::Count,
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Bytes => "bytes",
            Self::Count => "",
            Self::Milliseconds => "ms",
            Self::PerSecond => "per second",
            Self::Seconds => "s",
        })
    }
}

/// Returns the limits that hold whatever is configured: those of the opening handshake, of messages, of HTTP/2, and
/// of what a client may make a session do.
pub fn fixed() -> Vec<Limit> {
    let groups = [requests(), messages(), http2(), commands()];
    groups.into_iter().flatten().collect()
}

fn requests() -> Vec<Limit> {
    let handshake = HandshakeLimits::default();
    vec![
        bytes(
            "request.head_bytes_max",
            server::HEAD_BYTES_MAX,
            "Bytes of the head of a request",
        ),
        seconds(
            "request.head_s",
            server::HEAD_TIMEOUT,
            "How long the head of a request may take",
        ),
        seconds(
            "request.body_s",
            server::BODY_TIMEOUT,
            "How long the body of a request may take",
        ),
        seconds(
            "request.connection_s",
            server::REQUESTS_TIMEOUT,
            "How long a connection serves requests that are no WebSockets or streams",
        ),
        count(
            "request.wrong_keys_max",
            attempts::WRONG_KEYS_MAX.into(),
            "Wrong keys of the server API, /admin and /logs from one address",
        ),
        seconds(
            "request.wrong_keys_s",
            attempts::WRONG_KEYS_WINDOW,
            "How long they are remembered; beyond the maximum, keys from the address are refused that long",
        ),
        seconds(
            "connection.handshake_s",
            server::HANDSHAKE_TIMEOUT,
            "How long TLS and a proxy header may take",
        ),
        seconds(
            "connection.dead_peer_s",
            server::DEAD_PEER_TIMEOUT,
            "How long a peer may acknowledge nothing that was sent",
        ),
        count(
            "handshake.subprotocols_max",
            handshake.subprotocols_max as u64,
            "Subprotocols that a client offers",
        ),
        count(
            "handshake.extensions_max",
            handshake.extensions_max as u64,
            "Extensions that a client offers",
        ),
    ]
}

fn messages() -> Vec<Limit> {
    let config = Config::default();
    vec![
        count(
            "message.fragments_max",
            config.limits.fragments_max.into(),
            "Frames of a message",
        ),
        seconds(
            "close.timeout_s",
            config.close_timeout,
            "How long the closing handshake may take",
        ),
        bytes(
            "client.data_bytes_max",
            transport::DATA_BYTES_MAX,
            "Bytes of publications that wait for a socket; the rest stays in the rings",
        ),
    ]
}

fn http2() -> Vec<Limit> {
    let limits = Http2Limits::default();
    vec![
        count(
            "http2.streams_max",
            limits.streams_max.into(),
            "Streams that a client has open",
        ),
        bytes(
            "http2.stream_window_bytes_max",
            limits.stream_window_bytes as usize,
            "Bytes on a stream ahead of what was taken",
        ),
        count(
            "http2.resets_max",
            limits.resets_max.into(),
            "Streams given up at once",
        ),
        Limit {
            unit: Unit::PerSecond,
            ..count(
                "http2.resets_per_second_max",
                limits.resets_per_second.into(),
                "Streams given up in the long run",
            )
        },
    ]
}

fn commands() -> Vec<Limit> {
    let limits = centrifuge::Limits::default();
    vec![
        count(
            "commands.frame_max",
            limits.commands_max as u64,
            "Commands in a message",
        ),
        count(
            "commands.depth_max",
            limits.depth_max as u64,
            "Levels of JSON in a command",
        ),
        count(
            "commands.waiting_max",
            session::WAITING_MAX as u64,
            "Commands that wait; while there are more, no input is taken",
        ),
        count(
            "filter.depth_max",
            linerate_filter::DEPTH_MAX as u64,
            "Levels of brackets and comparisons in a filter",
        ),
        count(
            "filter.json_depth_max",
            linerate_filter::JSON_DEPTH_MAX as u64,
            "Levels of JSON in a publication; deeper ones match no filter",
        ),
    ]
}

fn count(key: &str, value: u64, meaning: &str) -> Limit {
    Limit {
        key: key.to_owned(),
        value,
        unit: Unit::Count,
        meaning: meaning.to_owned(),
    }
}

fn bytes(key: &str, value: usize, meaning: &str) -> Limit {
    Limit {
        unit: Unit::Bytes,
        ..count(key, value as u64, meaning)
    }
}

fn seconds(key: &str, value: Duration, meaning: &str) -> Limit {
    Limit {
        unit: Unit::Seconds,
        ..count(key, value.as_secs(), meaning)
    }
}

#[cfg(test)]
mod tests {
    use super::{Unit, fixed};

    #[test]
    fn no_fixed_limit_is_zero_or_without_end() {
        let limits = fixed();
        assert!(limits.len() > 15);
        for limit in &limits {
            assert!((1..1 << 30).contains(&limit.value), "{limit:?}");
        }
        let mut keys: Vec<_> = limits.iter().map(|limit| &limit.key).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), limits.len());
    }

    #[test]
    fn keys_end_in_their_units() {
        for (key, unit) in [
            ("message_bytes_max", Unit::Bytes),
            ("bytes_max", Unit::Bytes),
            ("accepts_per_second_max", Unit::PerSecond),
            ("request_timeout_ms", Unit::Milliseconds),
            ("window_s", Unit::Seconds),
            ("channels_max", Unit::Count),
            ("history_size", Unit::Count),
        ] {
            assert_eq!(Unit::of_key(key), unit, "{key}");
        }
        for limit in fixed() {
            let (_, name) = limit.key.split_once('.').unwrap();
            assert_eq!(Unit::of_key(name), limit.unit, "{}", limit.key);
        }
    }
}
