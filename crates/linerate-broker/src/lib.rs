//! Message brokers: the [`Broker`] that the nodes of a service share.
//!
//! A broker carries publications, keeps history for recovery, and reports when it no longer
//! receives anything. It does not depend on WebSockets.
#![forbid(unsafe_code)]

pub mod awake;
mod backoff;
pub mod broker;
pub mod connect;
mod deposits;
pub mod event;
pub mod idempotency;
pub mod incarnation;
pub mod ingest;
pub mod kind;
mod lock;
pub mod memory;
pub mod nats;
pub mod occupancy;
pub mod options;
pub mod presence;
pub mod redis;
pub mod registry;
pub mod request;
pub mod runtime;
pub mod sequencer;

pub use broker::{Answer, BoxFuture, Broker, BrokerError, PUT_TTL_MAX};
pub use connect::{BROKERS, connect};
pub use event::{Event, Gap, GapReason, LinkState};
pub use ingest::Ingest;
pub use kind::{BrokerKind, ConnectError, SetupError};
pub use memory::Memory;
pub use nats::Nats;
pub use occupancy::OccupancyChange;
pub use options::BrokerOptions;
pub use presence::PresenceChange;
pub use redis::Redis;
pub use registry::Beat;
pub use request::{History, HistoryRequest, Publish, Published, StreamOptions};
