//! Routes channels to the workers that have subscribers.

use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::fast::RandomState;
use hashbrown::{HashMap, hash_map::Entry};
use linerate_hub::{ChannelName, Publication};

use parking_lot::{Mutex, RwLock, RwLockReadGuard};

use super::traffic::{PastTraffic, Traffic};

/// The workers with subscribers, for each channel that has any.
///
/// The table is written when a channel gets its first or loses its last subscriber on a worker, and
/// read once per burst by the broker's reader.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    table: RwLock<Table>,
    past: Mutex<PastTraffic>,
}

/// The table behind [`Routes::read`].
pub(crate) type Table = HashMap<ChannelName, Route, RandomState>;

/// The workers that receive a channel's publications, and counters of these publications.
#[derive(Debug)]
pub(crate) struct Route {
    /// The indices of the workers, without duplicates.
    pub(crate) workers: Vec<u16>,
    publications: AtomicU64,
    bytes: AtomicU64,
}

impl Routes {
    /// Locks the table for reading, for the duration of a burst.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Table> {
        self.table.read()
    }

    /// Starts sending publications of `channel` to `worker`.
    pub(crate) fn add(&self, channel: &ChannelName, worker: u16) {
        let mut table = self.table.write();
        let route = table
            .entry(channel.clone())
            .or_insert_with(|| Route::with(self.past.lock().take(channel)));
        let workers = &mut route.workers;
        if !workers.contains(&worker) {
            workers.push(worker);
        }
    }

    /// Stops sending publications of `channel` to `worker`.
    pub(crate) fn remove(&self, channel: &ChannelName, worker: u16) {
        let mut table = self.table.write();
        if let Entry::Occupied(mut entry) = table.entry(channel.clone()) {
            let workers = &mut entry.get_mut().workers;
            workers.retain(|other| *other != worker);
            if workers.is_empty() {
                let route = entry.remove();
                self.past.lock().keep(channel.clone(), route.traffic());
            }
        }
    }

    /// Returns the channels with subscribers on this node, and their traffic.
    pub(crate) fn traffic(&self) -> Vec<(ChannelName, Traffic)> {
        let table = self.read();
        let traffic = |(channel, route): (&ChannelName, &Route)| (channel.clone(), route.traffic());
        table.iter().map(traffic).collect()
    }

    /// Returns the number of channels with subscribers on this node.
    pub(crate) fn count(&self) -> usize {
        self.read().len()
    }
}

impl Route {
    /// Returns a route to no worker, whose counters continue from `traffic`.
    fn with(traffic: Traffic) -> Self {
        Self {
            workers: Vec::new(),
            publications: traffic.publications.into(),
            bytes: traffic.bytes.into(),
        }
    }

    /// Counts `publication`, once for all workers.
    pub(crate) fn count(&self, publication: &Publication) {
        let bytes = publication.payload().len() as u64;
        self.publications.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn traffic(&self) -> Traffic {
        Traffic {
            publications: self.publications.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_hub::{ChannelName, Publication};

    use super::Routes;

    fn workers(routes: &Routes) -> Vec<u16> {
        let table = routes.read();
        table
            .get("news")
            .map_or(Vec::new(), |route| route.workers.clone())
    }

    #[test]
    fn a_channel_is_routed_to_the_workers_that_want_it() {
        let (routes, news) = (Routes::default(), ChannelName::new("news").unwrap());
        for worker in [3, 1, 3] {
            routes.add(&news, worker);
        }
        assert_eq!(workers(&routes), [3, 1]);
        routes.remove(&news, 3);
        assert_eq!(workers(&routes), [1]);
        routes.remove(&news, 1);
        assert_eq!(routes.count(), 0);
    }

    #[test]
    fn counters_continue_when_the_last_subscriber_comes_back() {
        let (routes, news) = (Routes::default(), ChannelName::new("news").unwrap());
        routes.add(&news, 1);
        routes.read()["news"].count(&Publication::new("four".into()));
        routes.remove(&news, 1);
        assert!(routes.traffic().is_empty());
        routes.add(&news, 2);
        let (_, traffic) = routes.traffic().remove(0);
        assert_eq!((traffic.publications, traffic.bytes), (1, 4));
    }

    #[test]
    fn removing_what_is_not_there_changes_nothing() {
        let (routes, news) = (Routes::default(), ChannelName::new("news").unwrap());
        routes.remove(&news, 1);
        assert!(routes.traffic().is_empty());
    }
}
