//! Tests of NATS with a real server.

use std::sync::Arc;

use linerate_broker::{Broker, BrokerOptions, Nats};

use crate::{
    contract::{Service, contract},
    recorder::Recorder,
};

mod access;
mod cluster;
mod durable;
mod outage;
mod server;
mod subjects;

pub(crate) use server::NatsServer;

contract!(NatsServer::start());

impl Service for NatsServer {
    const IS_SHARED: bool = true;
    const PATTERN: (&'static str, &'static str, &'static str) =
        ("ticks.*", "ticks.AAPL", "ticks.AAPL.1m");

    async fn node(&self, options: BrokerOptions, recorder: Arc<Recorder>) -> Arc<dyn Broker> {
        Arc::new(Nats::new(&self.url(), options, recorder).unwrap())
    }
}
