//! Tests of Redis: the contract, and the behaviour when a server fails.

use std::sync::Arc;

use linerate_broker::{Broker, BrokerOptions, Redis};
use linerate_testkit::server::RedisServer;

use crate::{
    contract::{Service, contract},
    recorder::Recorder,
};

mod cluster;
mod failure;
mod names;
mod plain;
mod sentinel;
mod tls;

contract!(Standalone::start());

/// A single server.
pub(crate) struct Standalone {
    pub(crate) server: RedisServer,
}

impl Standalone {
    pub(crate) fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    pub(crate) fn start_with(arguments: &[&str]) -> Option<Self> {
        let server = RedisServer::start_with(arguments)?;
        Some(Self { server })
    }
}

impl Service for Standalone {
    const IS_SHARED: bool = true;
    const PATTERN: (&'static str, &'static str, &'static str) =
        ("ticks:*", "ticks:AAPL", "news:AAPL");

    async fn node(&self, options: BrokerOptions, recorder: Arc<Recorder>) -> Arc<dyn Broker> {
        Arc::new(Redis::new(&self.server.url(), options, recorder).unwrap())
    }
}
