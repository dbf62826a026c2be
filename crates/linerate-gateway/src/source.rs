//! Sources: what is published without a request of the application to the server API.
//!
//! | module | responsibility |
//! | --- | --- |
//! | `setup` | what a section of the configuration says, ready to be used |
//! | `sink` | publishes what sources read, and tells all nodes of gaps |
//! | `socketio` | events that Socket.IO's own server and emitter publish in Redis |
//!
//! Every node runs every source. The sources of a name agree among themselves which of them reads;
//! see [`linerate_postgres`] and [`linerate_kafka`].

mod setup;
mod sink;
pub(crate) mod socketio;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use linerate_postgres::{run_changes, run_notifications};
use linerate_source::Status;
use parking_lot::Mutex;
use tokio::{task::AbortHandle, time::sleep};

use crate::node::Node;
use setup::Reads;
pub(crate) use setup::SourceSetup;
use sink::NodeSink;
use socketio::Feeds;
pub(crate) use socketio::{FeedStatus, RedisSetup};

/// The maximum time for leaving a consumer group, and how often to look whether it is left.
const LEAVE_MAX: Duration = Duration::from_secs(3);
const LEAVE_INTERVAL: Duration = Duration::from_millis(10);

/// The sources of a node, which end when this is dropped.
#[derive(Debug)]
pub(crate) struct Sources {
    node: Arc<Node>,
    running: Mutex<Vec<RunningSource>>,
    feeds: Mutex<Option<Feeds>>,
    /// Shared with what is a member of a consumer group.
    presence: Arc<()>,
}

#[derive(Debug)]
struct RunningSource {
    setup: Arc<SourceSetup>,
    status: Arc<Status>,
    task: AbortHandle,
}

impl Sources {
    /// Creates a node without sources; [`replace`](Self::replace) starts them.
    pub(crate) fn new(node: Arc<Node>) -> Self {
        Self {
            node,
            running: Mutex::default(),
            feeds: Mutex::default(),
            presence: Arc::default(),
        }
    }

    /// Replaces the sources. One whose options stay the same continues to read.
    pub(crate) fn replace(&self, setups: &[Arc<SourceSetup>]) {
        let mut running = self.running.lock();
        let mut previous = std::mem::take(&mut *running);
        for setup in setups {
            let same = previous
                .iter()
                .position(|source| source.setup.is_same(setup));
            running.push(match same {
                Some(same) => previous.swap_remove(same),
                None => self.start(setup),
            });
        }
    }

    /// Replaces what is read for Socket.IO. If it stays the same, reading continues.
    pub(crate) fn replace_feeds(&self, setup: Option<&Arc<RedisSetup>>) {
        let mut feeds = self.feeds.lock();
        match (&*feeds, setup) {
            (Some(feeds), Some(setup)) if feeds.are_of(setup) => {}
            (_, setup) => {
                // The feeds before end first, so that no event arrives twice.
                *feeds = None;
                *feeds = setup.map(|setup| Feeds::start(&self.node, setup.clone()));
            }
        }
    }

    /// Ends all sources. What they have not confirmed is read again by another node.
    pub(crate) fn end(&self) {
        self.running.lock().clear();
        self.feeds.lock().take();
    }

    /// Ends all sources, and waits until they have left their consumer groups, so that other nodes
    /// continue at once.
    pub(crate) async fn leave(&self) {
        self.end();
        let since = Instant::now();
        while Arc::strong_count(&self.presence) > 1 && since.elapsed() < LEAVE_MAX {
            sleep(LEAVE_INTERVAL).await;
        }
    }

    /// Returns the names of the sources and what they have done.
    pub(crate) fn statuses(&self) -> Vec<(String, Arc<Status>)> {
        let running = self.running.lock();
        let status =
            |source: &RunningSource| (source.setup.name().to_owned(), source.status.clone());
        running.iter().map(status).collect()
    }

    /// Returns the names of the feeds for Socket.IO and what they have read.
    pub(crate) fn feed_statuses(&self) -> Vec<(String, Arc<FeedStatus>)> {
        let feeds = self.feeds.lock();
        feeds.iter().flat_map(Feeds::statuses).collect()
    }

    fn start(&self, setup: &Arc<SourceSetup>) -> RunningSource {
        let sink = Arc::new(NodeSink(self.node.clone()));
        let status = Arc::new(Status::default());
        let task = match setup.reads() {
            Reads::Changes(options) => {
                let budget = self.node.budget.clone();
                let source = run_changes(options.clone(), sink, status.clone(), budget);
                self.node.spawn_task(source)
            }
            #[cfg(feature = "kafka")]
            Reads::Records(options) => {
                let (options, status) = (options.clone(), status.clone());
                let (budget, presence) = (self.node.budget.clone(), self.presence.clone());
                let source = linerate_kafka::run(options, sink, status, budget, presence);
                self.node.spawn_task(source)
            }
            Reads::Notifications(options) => {
                let source = run_notifications(options.clone(), sink, status.clone());
                self.node.spawn_task(source)
            }
        };
        RunningSource {
            setup: setup.clone(),
            status,
            task: task.abort_handle(),
        }
    }
}

impl Drop for RunningSource {
    fn drop(&mut self) {
        self.task.abort();
    }
}
