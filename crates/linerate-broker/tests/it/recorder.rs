//! A node that records the events of its broker.

use std::{
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use linerate_broker::{BoxFuture, Event, Gap, Ingest, LinkState};
use linerate_hub::Publication;
use linerate_testkit::PATIENCE;
use tokio::{
    sync::Notify,
    time::{Instant, timeout},
};

/// Events and the times at which they arrived.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    events: Mutex<Vec<(Instant, Event)>>,
    changed: Notify,
    is_blocked: AtomicBool,
    unblocked: Notify,
    /// In milliseconds.
    patience: AtomicU64,
}

impl Recorder {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Accepts no more events until [`unblock`](Self::unblock).
    pub(crate) fn block(&self) {
        self.is_blocked.store(true, Ordering::SeqCst);
    }

    /// Sets how long publications may be delayed from now on.
    pub(crate) fn set_patience(&self, patience: Duration) {
        let millis = patience.as_millis() as u64;
        self.patience.store(millis, Ordering::SeqCst);
    }

    pub(crate) fn unblock(&self) {
        self.is_blocked.store(false, Ordering::SeqCst);
        self.unblocked.notify_waiters();
    }

    /// Waits until `find` returns something for the events so far.
    pub(crate) async fn wait<T>(
        &self,
        what: &str,
        find: impl Fn(&[(Instant, Event)]) -> Option<T>,
    ) -> T {
        let found = timeout(PATIENCE, async {
            loop {
                let changed = self.changed.notified();
                let found = find(&self.events());
                match found {
                    Some(found) => return found,
                    None => changed.await,
                }
            }
        });
        match found.await {
            Ok(found) => found,
            Err(_) => panic!("{what} did not arrive; recorded: {:?}", self.summary()),
        }
    }

    /// Waits until `count` publications of a channel have arrived, and returns all that have.
    pub(crate) async fn publications(&self, channel: &str, count: usize) -> Vec<Publication> {
        let what = format!("{count} publications in {channel}");
        self.wait(&what, |events| {
            let found = publications(events, channel);
            (found.len() >= count).then_some(found)
        })
        .await
    }

    /// Waits until a certain payload has arrived, and returns everything in its channel up to it.
    pub(crate) async fn until(&self, channel: &str, payload: &str) -> Vec<Publication> {
        self.wait(payload, |events| {
            let mut found = publications(events, channel);
            let at = found.iter().position(|found| found.payload() == payload)?;
            found.truncate(at + 1);
            Some(found)
        })
        .await
    }

    /// Waits until `count` payloads of a channel have arrived, and returns all that have.
    pub(crate) async fn payloads(&self, channel: &str, count: usize) -> Vec<Bytes> {
        let publications = self.publications(channel, count).await;
        let payloads = publications.iter().map(|found| found.payload().clone());
        payloads.collect()
    }

    /// Waits until `count` publications of a channel have arrived, and returns the times of all
    /// that have.
    pub(crate) async fn times(&self, channel: &str, count: usize) -> Vec<Instant> {
        let what = format!("{count} publications in {channel}");
        self.wait(&what, |events| {
            let is_wanted = |event: &Event| matches!(event, Event::Publication { channel: found, .. } if found.as_str() == channel);
            let found = events.iter().filter(|(_, event)| is_wanted(event));
            let found: Vec<_> = found.map(|(at, _)| *at).collect();
            (found.len() >= count).then_some(found)
        })
        .await
    }

    /// Waits until `count` control messages have arrived, and returns all that have.
    pub(crate) async fn control(&self, count: usize) -> Vec<Bytes> {
        self.wait("control messages", |events| {
            let found = events.iter().filter_map(|(_, event)| match event {
                Event::Control(message) => Some(message.clone()),
                _ => None,
            });
            let found: Vec<_> = found.collect();
            (found.len() >= count).then_some(found)
        })
        .await
    }

    pub(crate) fn gaps(&self) -> Vec<Gap> {
        let events = self.events();
        let gaps = events.iter().filter_map(|(_, event)| match event {
            Event::Gap(gap) => Some(gap.clone()),
            _ => None,
        });
        gaps.collect()
    }

    /// Waits for a gap and returns the first one.
    pub(crate) async fn gap(&self) -> Gap {
        self.wait("gap", |events| {
            events.iter().find_map(|(_, event)| match event {
                Event::Gap(gap) => Some(gap.clone()),
                _ => None,
            })
        })
        .await
    }

    /// Waits until the newest event of the link is that it is up, or that it is deaf. Returns when
    /// that arrived.
    pub(crate) async fn link(&self, is_up: bool) -> Instant {
        let what = if is_up { "link up" } else { "deaf link" };
        self.wait(what, |events| {
            let links = events.iter().rev().find_map(|(at, event)| match event {
                Event::Link(link) => Some((*at, matches!(link, LinkState::Up { .. }))),
                _ => None,
            });
            links.filter(|(_, found)| *found == is_up).map(|(at, _)| at)
        })
        .await
    }

    fn events(&self) -> MutexGuard<'_, Vec<(Instant, Event)>> {
        self.events.lock().unwrap()
    }

    fn summary(&self) -> Vec<String> {
        let events = self.events();
        let newest = events.iter().rev().take(20);
        newest
            .map(|(_, event)| {
                let mut text = format!("{event:?}");
                text.truncate(200);
                text
            })
            .collect()
    }
}

impl Ingest for Recorder {
    fn ingest(&self, events: Vec<Event>) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            loop {
                let unblocked = self.unblocked.notified();
                if !self.is_blocked.load(Ordering::SeqCst) {
                    break;
                }
                unblocked.await;
            }
            let now = Instant::now();
            let events = events.into_iter().map(|event| (now, event));
            self.events().extend(events);
            self.changed.notify_waiters();
        })
    }

    fn patience(&self) -> Duration {
        Duration::from_millis(self.patience.load(Ordering::SeqCst))
    }
}

fn publications(events: &[(Instant, Event)], wanted: &str) -> Vec<Publication> {
    let found = events.iter().filter_map(|(_, event)| match event {
        Event::Publication {
            channel,
            publication,
        } if channel.as_str() == wanted => Some(publication.clone()),
        _ => None,
    });
    found.collect()
}
