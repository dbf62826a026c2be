//! Webhooks: the application is told what happens to clients and channels.
//!
//! | module | responsibility |
//! | --- | --- |
//! | `channel_json` | names of channels in JSON |
//! | `delivery` | sends the events of a queue in batches, and tries again |
//! | `destination` | sends a batch over HTTP, signed, or to a Redis Stream or a NATS subject |
//! | `encode` | batches as bytes |
//! | `endpoint` | a webhook as configured |
//! | `event` | what happened, and its JSON |
//! | `fuzzing` | an entry point for fuzzers |
//! | `interest` | of which channels and members webhooks want to be told |
//! | `published` | publications of clients |
//! | `queue` | the bounded queue of a webhook |
//! | `tracked` | what is noted of a client while it is connected |
//!
//! Workers only append to queues. Delivery is at least once while a queue has room; beyond its
//! limits, the oldest events are dropped, counted, and reported in the next batch.

mod channel_json;
mod delivery;
mod destination;
mod encode;
mod endpoint;
mod event;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod interest;
mod published;
mod queue;
mod tracked;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use linerate_budget::{Budget, Consumer};
use linerate_hub::ClientInfo;
use tokio::{runtime::Handle, time::timeout};

use crate::config::WebhookEvent;
use delivery::Webhook;
pub(crate) use delivery::WebhookCounts;
pub(crate) use endpoint::Endpoint;
use event::Event;
pub(crate) use event::Happened;
pub(crate) use interest::Interest;
pub(crate) use published::Publication;
pub(crate) use tracked::Tracked;

/// The webhooks of a node.
#[derive(Debug)]
pub(crate) struct Webhooks {
    node: Arc<str>,
    budget: Budget,
    runtime: Handle,
    all: ArcSwap<Vec<Arc<Webhook>>>,
    /// True if any webhook wants to be told of publications.
    wants_published: AtomicBool,
}

impl Webhooks {
    /// Creates a node without webhooks; [`replace`](Self::replace) adds them.
    pub(crate) fn new(node: &str, budget: Budget, runtime: Handle) -> Self {
        Self {
            node: node.into(),
            budget,
            runtime,
            all: ArcSwap::default(),
            wants_published: AtomicBool::new(false),
        }
    }

    /// Replaces the webhooks. One whose options stay the same keeps its queue; the queues of the
    /// others end, and what they hold is dropped.
    pub(crate) fn replace(&self, endpoints: &[Arc<Endpoint>]) {
        let known = self.all();
        let webhook = |endpoint: &Arc<Endpoint>| {
            if let Some(same) = known.iter().find(|webhook| webhook.is_of(endpoint)) {
                same.set_endpoint(endpoint.clone());
                return same.clone();
            }
            let lease = self.budget.lease(Consumer::Messages);
            let (node, endpoint) = (self.node.clone(), endpoint.clone());
            Arc::new(Webhook::start(node, endpoint, lease, &self.runtime))
        };
        let all = endpoints.iter().map(webhook).collect();
        self.all.store(Arc::new(all));
        let wants_published = |endpoint: &Arc<Endpoint>| {
            let events = endpoint.options.events();
            events.contains(&WebhookEvent::Published)
        };
        let wants_published = endpoints.iter().any(wants_published);
        self.wants_published
            .store(wants_published, Ordering::Relaxed);
    }

    /// Returns all webhooks.
    pub(crate) fn all(&self) -> Arc<Vec<Arc<Webhook>>> {
        self.all.load_full()
    }

    /// Returns which places the webhooks want to be told of.
    pub(crate) fn interest(&self) -> Interest {
        let all = self.all.load();
        Interest::of(all.iter().map(|webhook| webhook.options()))
    }

    /// Returns whether any webhook wants to be told of publications.
    pub(crate) fn wants_published(&self) -> bool {
        self.wants_published.load(Ordering::Relaxed)
    }

    /// Returns what is noted of a new client; `None` if no webhook is configured.
    pub(crate) fn track(&self) -> Option<Box<Tracked>> {
        (!self.all.load().is_empty()).then(Box::default)
    }

    /// Queues an event, of a client if there is one, for the webhooks that want it. Never waits for
    /// them.
    pub(crate) fn record(&self, who: Option<&Arc<ClientInfo>>, happened: &Happened) {
        let all = self.all.load();
        for webhook in all.iter().filter(|webhook| webhook.wants(happened)) {
            webhook.push(Event::now(who.cloned(), happened.clone()));
        }
    }

    /// Waits, but not longer than `wait_max`, until all queues are empty, and logs what was not
    /// delivered.
    pub(crate) async fn flush(&self, wait_max: Duration) {
        let all = self.all();
        let flushed = async {
            for webhook in all.iter() {
                webhook.flushed().await;
            }
        };
        if timeout(wait_max, flushed).await.is_ok() {
            return;
        }
        for webhook in all.iter() {
            let (events, name) = (webhook.counts().waiting, webhook.name());
            if events > 0 {
                tracing::warn!(webhook = name, events, "webhook events not delivered");
            }
        }
    }
}

#[cfg(test)]
mod tests;
