//! Whether the broker takes durable publications, as far as that is known from those that it has refused.
//!
//! A publication may be refused for its own sake. So a refusal only begins a series of probing writes, and the broker
//! refuses once several of them were refused in a row, until one is taken.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use linerate_broker::{Broker, BrokerError};
use tokio::{
    runtime::Handle,
    time::{Instant, sleep},
};

/// How many probing writes must be refused in a row.
const REFUSALS_MIN: u32 = 3;

/// How long it is from one probing write to the next.
const INTERVAL: Duration = Duration::from_secs(1);

/// What is known of durable publications.
#[derive(Debug)]
pub struct Writes {
    broker: Arc<dyn Broker>,
    runtime: Handle,
    is_probing: AtomicBool,
    are_refused: AtomicBool,
    refused: AtomicU64,
}

impl Writes {
    pub(super) fn new(broker: Arc<dyn Broker>, runtime: Handle) -> Arc<Self> {
        Arc::new(Self {
            broker,
            runtime,
            is_probing: AtomicBool::new(false),
            are_refused: AtomicBool::new(false),
            refused: AtomicU64::new(0),
        })
    }

    /// Returns whether the broker refuses what is written to it.
    pub fn are_refused(&self) -> bool {
        self.are_refused.load(Ordering::Relaxed)
    }

    /// Returns how many durable publications were refused, or got no answer in time.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Takes note of what came of a durable publication that was not taken.
    pub(super) fn failed(self: &Arc<Self>, error: &BrokerError) {
        if matches!(
            error,
            BrokerError::NoHistory | BrokerError::PayloadTooLarge { .. }
        ) {
            return;
        }
        self.refused.fetch_add(1, Ordering::Relaxed);
        if !self.is_probing.swap(true, Ordering::Relaxed) {
            self.runtime.spawn(Arc::clone(self).probe());
        }
    }

    /// Writes until a write is taken.
    async fn probe(self: Arc<Self>) {
        let (begun, before) = (Instant::now(), self.refused());
        let broker = self.broker.name();
        let mut refusals = 0;
        while let Err(error) = self.broker.probe_write().await {
            refusals += 1;
            if refusals == REFUSALS_MIN {
                self.are_refused.store(true, Ordering::Relaxed);
                tracing::warn!(broker, %error, "durable publications are refused");
            }
            sleep(INTERVAL).await;
        }
        if self.are_refused.swap(false, Ordering::Relaxed) {
            let (lasted, publications) = (begun.elapsed(), self.refused() - before + 1);
            tracing::info!(
                broker,
                ?lasted,
                publications,
                "durable publications are taken again"
            );
        }
        // One that is refused for its own sake is no reason to write without end.
        sleep(INTERVAL).await;
        self.is_probing.store(false, Ordering::Relaxed);
    }
}
