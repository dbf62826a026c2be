//! Sources: databases whose changes are published without a request of the application.
//!
//! | module | responsibility |
//! | --- | --- |
//! | `setup` | what a section of the configuration says, ready to be used |
//! | `sink` | publishes what sources read, and tells all nodes of gaps |
//!
//! Every node runs every source. The sources of a name agree among themselves which of them reads;
//! see [`linerate_postgres`].

mod setup;
mod sink;
mod socketio;

use std::sync::Arc;

use linerate_postgres::{Status, run_changes, run_notifications};
use parking_lot::Mutex;
use tokio::task::AbortHandle;

use crate::node::Node;
use setup::Reads;
pub(crate) use setup::SourceSetup;
use sink::NodeSink;

/// The sources of a node, which end when this is dropped.
#[derive(Debug)]
pub(crate) struct Sources {
    node: Arc<Node>,
    running: Mutex<Vec<RunningSource>>,
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

    /// Ends all sources. What they have not confirmed is read again by another node.
    pub(crate) fn end(&self) {
        self.running.lock().clear();
    }

    /// Returns the names of the sources and what they have done.
    pub(crate) fn statuses(&self) -> Vec<(String, Arc<Status>)> {
        let running = self.running.lock();
        let status =
            |source: &RunningSource| (source.setup.name().to_owned(), source.status.clone());
        running.iter().map(status).collect()
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
