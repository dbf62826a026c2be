//! Which workers want what is published in a channel.

use std::sync::{
    PoisonError, RwLock, RwLockReadGuard,
    atomic::{AtomicU64, Ordering},
};

use foldhash::fast::RandomState;
use hashbrown::{HashMap, hash_map::Entry};
use linerate_hub::{ChannelName, Publication};

/// The workers with subscribers, for each channel that has any.
///
/// Written when a channel gets its first or loses its last subscriber on a worker, read once a burst by
/// the broker's reader.
#[derive(Debug, Default)]
pub(crate) struct Routes(RwLock<Table>);

/// What [`Routes::read`] lends.
pub(crate) type Table = HashMap<ChannelName, Route, RandomState>;

/// Where publications of a channel go, and how many have gone there.
#[derive(Debug, Default)]
pub(crate) struct Route {
    /// Indices of the workers, each once.
    pub(crate) workers: Vec<u16>,
    publications: AtomicU64,
    bytes: AtomicU64,
}

/// What was published in a channel since it had its first subscriber on this node.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Traffic {
    /// Publications.
    pub publications: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
}

impl Routes {
    /// Lends the table for as long as a burst takes.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Table> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends publications of `channel` to `worker` from now on.
    pub(crate) fn add(&self, channel: &ChannelName, worker: u16) {
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let workers = &mut table.entry(channel.clone()).or_default().workers;
        if !workers.contains(&worker) {
            workers.push(worker);
        }
    }

    /// Sends publications of `channel` to `worker` no more.
    pub(crate) fn remove(&self, channel: &ChannelName, worker: u16) {
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Occupied(mut entry) = table.entry(channel.clone()) {
            let workers = &mut entry.get_mut().workers;
            workers.retain(|other| *other != worker);
            if workers.is_empty() {
                entry.remove();
            }
        }
    }

    /// Returns the channels with subscribers on this node, and what was published in them.
    pub(crate) fn traffic(&self) -> Vec<(ChannelName, Traffic)> {
        let table = self.read();
        let traffic = |(channel, route): (&ChannelName, &Route)| (channel.clone(), route.traffic());
        table.iter().map(traffic).collect()
    }

    /// Returns how many channels have subscribers on this node.
    pub(crate) fn count(&self) -> usize {
        self.read().len()
    }
}

impl Route {
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
    use linerate_hub::ChannelName;

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
    fn removing_what_is_not_there_changes_nothing() {
        let (routes, news) = (Routes::default(), ChannelName::new("news").unwrap());
        routes.remove(&news, 1);
        assert!(routes.traffic().is_empty());
    }
}
