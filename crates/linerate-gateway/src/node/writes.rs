//! Tracks whether the broker accepts durable publications, based on those that it has refused.
//!
//! A broker may refuse a publication because of the publication itself. Therefore a refusal only
//! starts a series of test writes. The broker is considered to refuse writes after several test
//! writes in a row were refused, until one is accepted.

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

/// How many test writes in a row must be refused.
const REFUSALS_MIN: u32 = 3;

/// The interval between two test writes.
const INTERVAL: Duration = Duration::from_secs(1);

/// The state of durable writes.
#[derive(Debug)]
pub(crate) struct Writes {
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

    /// Returns whether the broker currently refuses writes.
    pub(crate) fn are_refused(&self) -> bool {
        self.are_refused.load(Ordering::Relaxed)
    }

    /// Returns how many durable publications were refused or not answered in time.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Records the failure of a durable publication.
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

    /// Sends test writes until one is accepted.
    async fn probe(self: Arc<Self>) {
        let (begun, before) = (Instant::now(), self.refused());
        let broker = self.broker.name();
        let mut refusals = 0;
        while let Err(error) = self.broker.probe_write().await {
            refusals += 1;
            if refusals == REFUSALS_MIN {
                self.are_refused.store(true, Ordering::Relaxed);
                tracing::warn!(broker, %error, "broker refuses durable publications");
            }
            sleep(INTERVAL).await;
        }
        if self.are_refused.swap(false, Ordering::Relaxed) {
            let (lasted, publications) = (begun.elapsed(), self.refused() - before + 1);
            tracing::info!(
                broker,
                ?lasted,
                publications,
                "broker accepts durable publications again"
            );
        }
        // Pause before probing can start again: a publication that is refused because of itself
        // must not cause endless test writes.
        sleep(INTERVAL).await;
        self.is_probing.store(false, Ordering::Relaxed);
    }
}
