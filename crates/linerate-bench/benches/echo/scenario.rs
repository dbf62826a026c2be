//! The loads: number of connections, kind and size of messages, messages in flight.

/// A kind of load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) payload_bytes: usize,
    pub(crate) connections: usize,
    /// Number of messages that each connection sends in one write before it waits for their echoes.
    pub(crate) window: usize,
}

/// The kind of the messages, which determines whether servers validate them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Binary,
    Text,
}

pub(crate) const SCENARIOS: [Scenario; 7] = [
    Scenario {
        name: "8 B text, 64 connections, 1 in flight",
        kind: Kind::Text,
        payload_bytes: 8,
        connections: 64,
        window: 1,
    },
    Scenario {
        name: "1 KiB text, 64 connections, 1 in flight",
        kind: Kind::Text,
        payload_bytes: 1 << 10,
        connections: 64,
        window: 1,
    },
    Scenario {
        name: "20 B text, 1 connection, 1 in flight",
        kind: Kind::Text,
        payload_bytes: 20,
        connections: 1,
        window: 1,
    },
    Scenario {
        name: "20 B text, 8 connections, 128 in flight",
        kind: Kind::Text,
        payload_bytes: 20,
        connections: 8,
        window: 128,
    },
    Scenario {
        name: "125 B text, 8 connections, 64 in flight",
        kind: Kind::Text,
        payload_bytes: 125,
        connections: 8,
        window: 64,
    },
    Scenario {
        name: "16 KiB binary, 8 connections, 4 in flight",
        kind: Kind::Binary,
        payload_bytes: 16 << 10,
        connections: 8,
        window: 4,
    },
    Scenario {
        name: "1 MiB text, 2 connections, 1 in flight",
        kind: Kind::Text,
        payload_bytes: 1 << 20,
        connections: 2,
        window: 1,
    },
];
