//! Sends the events of a webhook in batches, one at a time and in order, until each is accepted.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use linerate_budget::Lease;
use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    sync::Notify,
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{
    endpoint::Endpoint,
    event::{Event, Happened},
    queue::{Batch, Queue},
};
use crate::{clock::now, config::WebhookOptions, log_limiter::LogLimiter};

/// The first pause after a failed attempt; it doubles with each further one.
const PAUSE_MIN: Duration = Duration::from_millis(200);

/// A webhook with its queue. Dropping it ends delivery.
#[derive(Debug)]
pub(crate) struct Webhook {
    shared: Arc<Shared>,
    _task: JoinSet<()>,
}

#[derive(Debug)]
struct Shared {
    node: Arc<str>,
    options: WebhookOptions,
    /// What a reload may replace, because files were changed.
    endpoint: ArcSwap<Endpoint>,
    queue: Mutex<Queue>,
    arrived: Notify,
    emptied: Notify,
    /// The number of events that are being sent.
    in_flight: AtomicUsize,
    delivered: AtomicU64,
    retries: AtomicU64,
    failures: LogLimiter,
}

/// The numbers of a webhook, for metrics.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WebhookCounts {
    /// Events that were delivered since the start.
    pub(crate) delivered: u64,
    /// Events that were dropped since the start.
    pub(crate) dropped: u64,
    /// Attempts that failed since the start.
    pub(crate) retries: u64,
    /// Events that wait or are being sent.
    pub(crate) waiting: usize,
    /// The memory of those that wait, in bytes.
    pub(crate) bytes: usize,
}

impl Webhook {
    /// Starts to deliver, on `runtime`.
    pub(super) fn start(
        node: Arc<str>,
        endpoint: Arc<Endpoint>,
        lease: Lease,
        runtime: &Handle,
    ) -> Self {
        let options = &endpoint.options;
        let queue = Queue::new(options.queue_max, options.queue_bytes_max, lease);
        let shared = Arc::new(Shared {
            node,
            queue: Mutex::new(queue),
            options: options.clone(),
            endpoint: endpoint.into(),
            arrived: Notify::new(),
            emptied: Notify::new(),
            in_flight: AtomicUsize::new(0),
            delivered: AtomicU64::new(0),
            retries: AtomicU64::new(0),
            failures: LogLimiter::new(),
        });
        let mut task = JoinSet::new();
        task.spawn_on(shared.clone().run(), runtime);
        Self {
            shared,
            _task: task,
        }
    }

    /// Returns the name in the configuration.
    pub(crate) fn name(&self) -> &str {
        &self.shared.options.name
    }

    /// Returns whether the webhook has the options of this endpoint.
    pub(super) fn is_of(&self, endpoint: &Endpoint) -> bool {
        self.shared.options == endpoint.options
    }

    /// Returns the options.
    pub(super) fn options(&self) -> &WebhookOptions {
        &self.shared.options
    }

    /// Replaces what was read from files. What waits is sent with it.
    pub(super) fn set_endpoint(&self, endpoint: Arc<Endpoint>) {
        self.shared.endpoint.store(endpoint);
    }

    /// Returns whether this is to be sent.
    pub(super) fn wants(&self, happened: &Happened) -> bool {
        self.shared.endpoint.load().wants(happened)
    }

    /// Queues an event.
    pub(super) fn push(&self, event: Event) {
        self.shared.queue.lock().push(event);
        self.shared.arrived.notify_one();
    }

    /// Returns the numbers for metrics.
    pub(crate) fn counts(&self) -> WebhookCounts {
        let shared = &self.shared;
        let queue = shared.queue.lock();
        WebhookCounts {
            delivered: shared.delivered.load(Ordering::Relaxed),
            dropped: queue.dropped_total(),
            retries: shared.retries.load(Ordering::Relaxed),
            waiting: queue.len() + shared.in_flight.load(Ordering::Relaxed),
            bytes: queue.bytes(),
        }
    }

    /// Waits until everything is delivered.
    pub(super) async fn flushed(&self) {
        loop {
            let emptied = self.shared.emptied.notified();
            if self.counts().waiting == 0 {
                return;
            }
            emptied.await;
        }
    }
}

impl Shared {
    async fn run(self: Arc<Self>) {
        let options = &self.options;
        loop {
            while self.queue.lock().len() == 0 {
                self.arrived.notified().await;
            }
            if self.queue.lock().len() < options.batch_max {
                sleep(options.batch_delay).await;
            }
            let batch = {
                let mut queue = self.queue.lock();
                let batch = queue.take(options.batch_max, options.batch_bytes_max);
                self.in_flight.store(batch.events.len(), Ordering::Relaxed);
                batch
            };
            self.deliver(&batch).await;
            let count = batch.events.len() as u64;
            self.delivered.fetch_add(count, Ordering::Relaxed);
            self.in_flight.store(0, Ordering::Relaxed);
            self.emptied.notify_waiters();
        }
    }

    /// Sends a batch until it is accepted.
    async fn deliver(&self, batch: &Batch) {
        let options = &self.options;
        let mut pause = PAUSE_MIN;
        loop {
            let endpoint = self.endpoint.load_full();
            let sent = endpoint.destination.send(&self.node, batch);
            let error = match timeout(options.timeout, sent).await {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("no response within {:?}", options.timeout),
            };
            self.retries.fetch_add(1, Ordering::Relaxed);
            if let Some(count) = self.failures.ask(now()) {
                let webhook = &options.name;
                tracing::warn!(webhook, count, %error, "webhook did not accept a batch");
            }
            sleep(pause.mul_f32(rand::random_range(0.5..1.0))).await;
            pause = (pause * 2).min(options.retry_pause_max);
        }
    }
}
