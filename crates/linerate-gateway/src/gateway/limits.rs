//! The limits that do not depend on the configuration.

use linerate::{Config, Http2Limits, handshake::HandshakeLimits};

use super::Gateway;
use crate::{
    auth, backend,
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
        limit(
            "request.head_bytes_max",
            server::HEAD_BYTES_MAX as u64,
            "Maximum size of the header section of a request",
        ),
        limit(
            "request.head_s",
            server::HEAD_TIMEOUT.as_secs(),
            "Maximum time to receive the header section of a request",
        ),
        limit(
            "request.body_s",
            server::BODY_TIMEOUT.as_secs(),
            "Maximum time to receive the body of a request",
        ),
        limit(
            "request.connection_s",
            server::REQUESTS_TIMEOUT.as_secs(),
            "Maximum time that a connection serves requests other than WebSockets and streams",
        ),
        limit(
            "request.wrong_keys_max",
            auth::WRONG_KEYS_MAX.into(),
            "Maximum number of wrong keys from one address for the server API, /admin and /logs",
        ),
        limit(
            "request.wrong_keys_s",
            auth::WRONG_KEYS_WINDOW.as_secs(),
            "Time that wrong keys are remembered; beyond the maximum, keys from the address are refused until it ends",
        ),
        limit(
            "connection.handshake_s",
            server::HANDSHAKE_TIMEOUT.as_secs(),
            "Maximum time for the TLS handshake and a PROXY protocol header",
        ),
        limit(
            "handshake.subprotocols_max",
            handshake.subprotocols_max as u64,
            "Maximum number of subprotocols that a client may offer",
        ),
        limit(
            "handshake.extensions_max",
            handshake.extensions_max as u64,
            "Maximum number of extensions that a client may offer",
        ),
    ]
}

fn messages() -> Vec<Limit> {
    let config = Config::default();
    vec![
        limit(
            "message.fragments_max",
            config.limits.fragments_max.into(),
            "Maximum number of frames of a message",
        ),
        limit(
            "close.timeout_s",
            config.close_timeout.as_secs(),
            "Maximum time for the closing handshake",
        ),
        limit(
            "client.data_bytes_max",
            transport::DATA_BYTES_MAX as u64,
            "Maximum size of the publications queued for a socket; the others stay in the rings",
        ),
    ]
}

fn http2() -> Vec<Limit> {
    let limits = Http2Limits::default();
    vec![
        limit(
            "http2.streams_max",
            limits.streams_max.into(),
            "Maximum number of streams that a client may have open",
        ),
        limit(
            "http2.stream_window_bytes_max",
            limits.stream_window_bytes.into(),
            "Maximum size of the unread data on a stream",
        ),
        limit(
            "http2.resets_max",
            limits.resets_max.into(),
            "Maximum number of streams that a client may reset in a burst",
        ),
        limit(
            "http2.resets_per_second_max",
            limits.resets_per_second.into(),
            "Maximum rate at which a client may reset streams in the long run",
        ),
    ]
}

fn commands() -> Vec<Limit> {
    let limits = decode::Limits::default();
    vec![
        limit(
            "commands.frame_max",
            limits.commands_max as u64,
            "Maximum number of commands in a message",
        ),
        limit(
            "commands.depth_max",
            limits.depth_max as u64,
            "Maximum nesting depth of the JSON of a command",
        ),
        limit(
            "commands.waiting_max",
            session::WAITING_MAX as u64,
            "Maximum number of queued commands; beyond it, no input is read",
        ),
        limit(
            "commands.waiting_bytes_max",
            session::WAITING_BYTES_MAX,
            "Maximum memory of commands that are queued or executed; beyond it, no input is read",
        ),
        limit(
            "backend.forwarded_headers_bytes_max",
            backend::HEADERS_BYTES_MAX as u64,
            "Maximum size of the headers of a client that are forwarded to backends",
        ),
        limit(
            "filter.depth_max",
            linerate_filter::DEPTH_MAX as u64,
            "Maximum nesting depth of brackets and comparisons in a filter",
        ),
        limit(
            "filter.json_depth_max",
            linerate_filter::JSON_DEPTH_MAX as u64,
            "Maximum nesting depth of the JSON of a publication; deeper ones match no filter",
        ),
    ]
}

fn limit(key: &str, value: u64, meaning: &str) -> Limit {
    Limit {
        key: key.to_owned(),
        value,
        unit: Unit::of_key(key.rsplit('.').next().unwrap_or(key)),
        meaning: meaning.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::Gateway;

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
}
