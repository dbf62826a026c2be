//! The limits that do not depend on the configuration.

use std::time::Duration;

use linerate::{Config, Http2Limits, handshake::HandshakeLimits};

use super::Gateway;
use crate::{
    auth,
    limits::{Limit, Unit},
    protocol::decode,
    server, session, transport,
};

impl Gateway {
    /// Returns the limits that do not depend on the configuration: those of the opening handshake,
    /// messages, HTTP/2, and the commands of a session.
    pub fn fixed_limits() -> Vec<Limit> {
        let groups = [requests(), messages(), http2(), commands()];
        groups.into_iter().flatten().collect()
    }
}

fn requests() -> Vec<Limit> {
    let handshake = HandshakeLimits::default();
    vec![
        bytes(
            "request.head_bytes_max",
            server::HEAD_BYTES_MAX,
            "Maximum size of the header section of a request",
        ),
        seconds(
            "request.head_s",
            server::HEAD_TIMEOUT,
            "Maximum time to receive the header section of a request",
        ),
        seconds(
            "request.body_s",
            server::BODY_TIMEOUT,
            "Maximum time to receive the body of a request",
        ),
        seconds(
            "request.connection_s",
            server::REQUESTS_TIMEOUT,
            "Maximum time that a connection serves requests other than WebSockets and streams",
        ),
        count(
            "request.wrong_keys_max",
            auth::WRONG_KEYS_MAX.into(),
            "Maximum number of wrong keys from one address for the server API, /admin and /logs",
        ),
        seconds(
            "request.wrong_keys_s",
            auth::WRONG_KEYS_WINDOW,
            "Time that wrong keys are remembered; beyond the maximum, keys from the address are refused until it ends",
        ),
        seconds(
            "connection.handshake_s",
            server::HANDSHAKE_TIMEOUT,
            "Maximum time for the TLS handshake and a PROXY protocol header",
        ),
        seconds(
            "connection.dead_peer_s",
            server::DEAD_PEER_TIMEOUT,
            "Maximum time that sent data may remain unacknowledged by the peer",
        ),
        count(
            "handshake.subprotocols_max",
            handshake.subprotocols_max as u64,
            "Maximum number of subprotocols that a client may offer",
        ),
        count(
            "handshake.extensions_max",
            handshake.extensions_max as u64,
            "Maximum number of extensions that a client may offer",
        ),
    ]
}

fn messages() -> Vec<Limit> {
    let config = Config::default();
    vec![
        count(
            "message.fragments_max",
            config.limits.fragments_max.into(),
            "Maximum number of frames of a message",
        ),
        seconds(
            "close.timeout_s",
            config.close_timeout,
            "Maximum time for the closing handshake",
        ),
        bytes(
            "client.data_bytes_max",
            transport::DATA_BYTES_MAX,
            "Maximum size of the publications queued for a socket; the others stay in the rings",
        ),
    ]
}

fn http2() -> Vec<Limit> {
    let limits = Http2Limits::default();
    vec![
        count(
            "http2.streams_max",
            limits.streams_max.into(),
            "Maximum number of streams that a client may have open",
        ),
        bytes(
            "http2.stream_window_bytes_max",
            limits.stream_window_bytes as usize,
            "Maximum size of the unread data on a stream",
        ),
        count(
            "http2.resets_max",
            limits.resets_max.into(),
            "Maximum number of streams that a client may reset in a burst",
        ),
        Limit {
            unit: Unit::PerSecond,
            ..count(
                "http2.resets_per_second_max",
                limits.resets_per_second.into(),
                "Maximum rate at which a client may reset streams in the long run",
            )
        },
    ]
}

fn commands() -> Vec<Limit> {
    let limits = decode::Limits::default();
    vec![
        count(
            "commands.frame_max",
            limits.commands_max as u64,
            "Maximum number of commands in a message",
        ),
        count(
            "commands.depth_max",
            limits.depth_max as u64,
            "Maximum nesting depth of the JSON of a command",
        ),
        count(
            "commands.waiting_max",
            session::WAITING_MAX as u64,
            "Maximum number of queued commands; beyond it, no input is read",
        ),
        count(
            "filter.depth_max",
            linerate_filter::DEPTH_MAX as u64,
            "Maximum nesting depth of brackets and comparisons in a filter",
        ),
        count(
            "filter.json_depth_max",
            linerate_filter::JSON_DEPTH_MAX as u64,
            "Maximum nesting depth of the JSON of a publication; deeper ones match no filter",
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
    use super::{Gateway, Unit};

    #[test]
    fn no_fixed_limit_is_zero_or_without_end() {
        let limits = Gateway::fixed_limits();
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
        for limit in Gateway::fixed_limits() {
            let (_, name) = limit.key.split_once('.').unwrap();
            assert_eq!(Unit::of_key(name), limit.unit, "{}", limit.key);
        }
    }
}
