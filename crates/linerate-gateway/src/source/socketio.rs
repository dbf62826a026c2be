//! Events from Redis, as Socket.IO's own server and emitter publish them.
//!
//! | module | responsibility |
//! | --- | --- |
//! | `fuzzing` | an entry point for fuzzers |
//! | `intake` | carries out what arrives from a feed, in order |
//! | `json` | values of MessagePack as JSON |
//! | `packet` | the packets of the emitter and the adapters |
//! | `setup` | what the configuration says, ready to be used |
//! | `status` | what a feed has read |
//!
//! Redis passes on to all nodes what an application publishes, so each node reads it and delivers
//! it to its own clients. Publishing it again through the broker, from one node, would have to be
//! agreed upon, and lose or repeat events when that node changes. The events have no positions.

#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod intake;
mod json;
mod packet;
mod setup;
mod status;

use std::sync::Arc;

use tokio::task::AbortHandle;

use crate::node::Node;
use intake::Intake;
pub(crate) use setup::RedisSetup;
pub(crate) use status::FeedStatus;

/// The feeds of a node, which end when this is dropped.
#[derive(Debug)]
pub(super) struct Feeds {
    setup: Arc<RedisSetup>,
    running: Vec<Feed>,
}

#[derive(Debug)]
struct Feed {
    name: String,
    status: Arc<FeedStatus>,
    task: AbortHandle,
}

impl Feeds {
    /// Starts to read the channels and the streams of a configuration.
    pub(super) fn start(node: &Arc<Node>, setup: Arc<RedisSetup>) -> Self {
        let mut running = Vec::new();
        let mut begin = |name: &str, stream: Option<&str>| {
            let status = Arc::new(FeedStatus::default());
            let sink = Arc::new(Intake::new(node.clone(), setup.clone(), status.clone()));
            let server = setup.server().clone();
            let task = match stream {
                None => node.spawn_task(server.read_channels(setup.patterns(), sink)),
                Some(stream) => node.spawn_task(server.read_stream(stream.to_owned(), sink)),
            };
            running.push(Feed {
                name: name.to_owned(),
                status,
                task: task.abort_handle(),
            });
        };
        begin("channels", None);
        for stream in setup.streams() {
            begin(&format!("stream {stream}"), Some(stream));
        }
        Self { setup, running }
    }

    /// Returns whether they read what this configuration says.
    pub(super) fn are_of(&self, setup: &RedisSetup) -> bool {
        self.setup.is_same(setup)
    }

    /// Returns the names of the feeds and what they have read.
    pub(super) fn statuses(&self) -> impl Iterator<Item = (String, Arc<FeedStatus>)> {
        let feeds = self.running.iter();
        feeds.map(|feed| (feed.name.clone(), feed.status.clone()))
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.task.abort();
    }
}
