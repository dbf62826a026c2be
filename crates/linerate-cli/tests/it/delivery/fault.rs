//! The faults: what breaks, for how long, and which publications may be missing afterwards.

use std::time::Duration;

use super::{backend::Behavior, servers::Kind, stage::CHANNELS};

/// A fault. [`Stage::inflict`](super::stage::Stage::inflict) inflicts it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Fault {
    BackendDeaf,
    BackendSlow,
    BackendWrong,
    BrokerDiskFull,
    BrokerEvicting,
    BrokerFull,
    BrokerKilled,
    BrokerReplaced,
    BrokerRestarted,
    BrokerStopped,
    CertificateRotated,
    ClientsCut,
    ClientsSilent,
    ClockStepped,
    DatabaseCrashed,
    DatabaseReplaced,
    DatabaseSlotDropped,
    KafkaCrashed,
    KafkaRebalanced,
    KafkaWrittenCrashed,
    LinkCut,
    LinkFlapping,
    LinkHalfClosed,
    LinkSilent,
    LinkSlow,
    NodeDrained,
    NodeKilled,
    NodeReloaded,
    NodeRestarted,
    NodeStopped,
    ReadersSlow,
    ReadersStopped,
    WebhookDown,
}

/// The properties of a fault.
pub(crate) struct Row {
    /// Its name in the record.
    pub(crate) name: &'static str,
    /// Duration of the fault in seconds, in `make test` and in `make chaos`.
    seconds: [u64; 2],
    /// Size of each publication in bytes, without its number.
    pub(crate) padding: usize,
    /// True if nothing may be missing in the durable channel, with Redis and with NATS.
    survived_by_durable: [bool; 2],
    /// True if nothing may be missing in the channel whose history the node keeps.
    survived_by_remembered: bool,
    /// True if `/ready` of a node must fail within five seconds.
    is_red: bool,
}

/// The default row: no channel survives the fault, and `/ready` need not fail.
const PLAIN: Row = Row {
    name: "",
    seconds: [2, 15],
    padding: 0,
    survived_by_durable: [true; 2],
    survived_by_remembered: false,
    is_red: false,
};

/// Size of messages that fill ring buffers and socket buffers within seconds.
const LARGE: usize = 48 << 10;

impl Fault {
    /// Returns the properties of this fault.
    pub(crate) fn row(self) -> Row {
        match self {
            // The node leaves a channel in which it has had no subscriber for a while.
            Self::BackendDeaf => Row {
                name: "backend deaf, while clients reconnect",
                seconds: [4, 15],
                ..PLAIN
            },
            Self::BackendSlow => Row {
                name: "backend slow, while clients reconnect",
                seconds: [4, 15],
                survived_by_remembered: true,
                ..PLAIN
            },
            Self::BackendWrong => Row {
                name: "backend wrong, while clients reconnect",
                seconds: [4, 15],
                ..PLAIN
            },
            Self::BrokerDiskFull => Row {
                name: "disk of the broker full",
                survived_by_durable: [true, false],
                is_red: true,
                seconds: [4, 15],
                ..PLAIN
            },
            Self::BrokerEvicting => Row {
                name: "broker evicts",
                padding: 1 << 10,
                survived_by_durable: [false; 2],
                ..PLAIN
            },
            Self::BrokerFull => Row {
                name: "broker full",
                is_red: true,
                seconds: [4, 15],
                ..PLAIN
            },
            Self::BrokerKilled => Row {
                name: "broker killed (`kill -9`)",
                // Redis may have lost what it accepted within its last second, so its streams start
                // again.
                survived_by_durable: [false, true],
                is_red: true,
                ..PLAIN
            },
            Self::BrokerReplaced => Row {
                name: "broker replaced by another",
                survived_by_durable: [false; 2],
                is_red: true,
                ..PLAIN
            },
            Self::BrokerRestarted => Row {
                name: "broker restarted (SIGTERM)",
                survived_by_durable: [false, true],
                is_red: true,
                ..PLAIN
            },
            Self::BrokerStopped => Row {
                name: "broker stopped (SIGSTOP)",
                seconds: [6, 15],
                is_red: true,
                ..PLAIN
            },
            Self::CertificateRotated => Row {
                name: "certificate rotated",
                seconds: [6, 12],
                survived_by_remembered: true,
                ..PLAIN
            },
            Self::ClientsCut => Row {
                name: "connections of clients cut",
                survived_by_remembered: true,
                ..PLAIN
            },
            Self::ClientsSilent => Row {
                name: "connections of clients silent, then cut",
                seconds: [4, 15],
                survived_by_remembered: true,
                ..PLAIN
            },
            Self::ClockStepped => Row {
                name: "clocks of nodes and Redis stepped by an hour",
                seconds: [6, 15],
                // For Redis the clock jumps ahead, so that data kept for minutes has expired.
                survived_by_durable: [false, true],
                ..PLAIN
            },
            Self::DatabaseCrashed => Row {
                name: "database crashed, repeatedly",
                seconds: [4, 15],
                survived_by_remembered: true,
                ..PLAIN
            },
            // The replica has no replication slot.
            Self::DatabaseReplaced => Row {
                name: "database replaced by its replica",
                survived_by_durable: [false; 2],
                ..PLAIN
            },
            Self::DatabaseSlotDropped => Row {
                name: "replication slot dropped, repeatedly",
                survived_by_durable: [false; 2],
                ..PLAIN
            },
            Self::KafkaCrashed => Row {
                name: "Kafka crashed (`kill -9`), repeatedly",
                seconds: [4, 15],
                survived_by_remembered: true,
                ..PLAIN
            },
            Self::KafkaRebalanced => Row {
                name: "Kafka gives partitions to other nodes, repeatedly",
                seconds: [4, 15],
                survived_by_remembered: true,
                ..PLAIN
            },
            Self::KafkaWrittenCrashed => Row {
                name: "Kafka crashed (`kill -9`) while publications are written to it, repeatedly",
                seconds: [4, 15],
                survived_by_remembered: true,
                ..PLAIN
            },
            Self::LinkCut => Row {
                name: "link of node and broker cut",
                is_red: true,
                ..PLAIN
            },
            Self::LinkFlapping => Row {
                name: "link flapping",
                seconds: [4, 15],
                ..PLAIN
            },
            Self::LinkHalfClosed => Row {
                name: "link half-closed by the broker",
                ..PLAIN
            },
            Self::LinkSilent => Row {
                name: "link silent",
                seconds: [6, 15],
                is_red: true,
                ..PLAIN
            },
            Self::LinkSlow => Row {
                name: "link slow (8 KiB/s)",
                seconds: [6, 15],
                ..PLAIN
            },
            Self::NodeDrained => Row {
                name: "node drained, clients go to another",
                ..PLAIN
            },
            Self::NodeKilled => Row {
                name: "node killed (`kill -9`), repeatedly",
                seconds: [2, 12],
                ..PLAIN
            },
            Self::NodeReloaded => Row {
                name: "node reloaded (SIGHUP), repeatedly",
                survived_by_remembered: true,
                ..PLAIN
            },
            Self::NodeRestarted => Row {
                name: "node restarted (SIGTERM), repeatedly",
                seconds: [2, 12],
                ..PLAIN
            },
            Self::NodeStopped => Row {
                name: "node stopped (SIGSTOP)",
                seconds: [6, 15],
                ..PLAIN
            },
            Self::ReadersSlow => Row {
                name: "readers slow (64 KiB/s)",
                seconds: [6, 15],
                padding: LARGE,
                // An event stream that falls behind the ring buffer continues after a gap, as it
                // does if it was stopped.
                survived_by_durable: [false; 2],
                ..PLAIN
            },
            Self::ReadersStopped => Row {
                name: "readers stopped",
                seconds: [6, 15],
                padding: LARGE,
                survived_by_durable: [false; 2],
                ..PLAIN
            },
            Self::WebhookDown => Row {
                name: "webhook down, while clients reconnect",
                seconds: [4, 15],
                ..PLAIN
            },
        }
    }

    /// Returns how the backend of the node behaves, if the node has one.
    pub(crate) fn behavior(self) -> Option<Behavior> {
        match self {
            Self::BackendDeaf => Some(Behavior::Deaf),
            Self::BackendSlow => Some(Behavior::Slow),
            Self::BackendWrong => Some(Behavior::Wrong),
            _ => None,
        }
    }

    /// Returns whether publications come from a database.
    pub(crate) fn needs_database(self) -> bool {
        matches!(
            self,
            Self::DatabaseCrashed | Self::DatabaseReplaced | Self::DatabaseSlotDropped
        )
    }

    /// Returns whether publications come from Kafka.
    pub(crate) fn needs_kafka(self) -> bool {
        matches!(self, Self::KafkaCrashed | Self::KafkaRebalanced)
    }

    /// Returns whether publications are written to Kafka.
    pub(crate) fn writes_kafka(self) -> bool {
        self == Self::KafkaWrittenCrashed
    }

    /// Returns whether the fault affects only clients, so that subscribers that connect directly to
    /// the node must not notice it.
    pub(crate) fn harms_clients_only(self) -> bool {
        matches!(
            self,
            Self::ClientsCut | Self::ClientsSilent | Self::ReadersSlow | Self::ReadersStopped
        )
    }
}

impl Row {
    /// Returns the duration of the fault.
    pub(crate) fn outage(&self, is_long: bool) -> Duration {
        Duration::from_secs(self.seconds[usize::from(is_long)])
    }

    /// Returns whether all publications in this channel must arrive.
    pub(crate) fn is_survived(&self, kind: Kind, channel: &str) -> bool {
        let [_, remembered, durable, _] = CHANNELS;
        match kind {
            _ if channel == remembered => self.survived_by_remembered,
            Kind::Redis if channel == durable => self.survived_by_durable[0],
            Kind::Nats if channel == durable => self.survived_by_durable[1],
            _ => false,
        }
    }

    /// Returns whether `/ready` of a node must fail.
    pub(crate) fn is_red(&self) -> bool {
        self.is_red
    }
}
