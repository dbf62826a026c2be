//! Tests of the embedded broker.

use std::sync::Arc;

use linerate_broker::{Broker, BrokerOptions, Memory};

use crate::{
    contract::{Service, contract},
    recorder::Recorder,
};

contract!(Embedded::new());

/// The one node that an embedded broker serves.
struct Embedded;

impl Embedded {
    fn new() -> Option<Self> {
        Some(Self)
    }
}

impl Service for Embedded {
    const IS_SHARED: bool = false;
    const PATTERN: (&'static str, &'static str, &'static str) =
        ("ticks:*", "ticks:AAPL", "news:AAPL");

    async fn node(&self, options: BrokerOptions, recorder: Arc<Recorder>) -> Arc<dyn Broker> {
        Arc::new(Memory::new(&options, recorder).unwrap())
    }
}
