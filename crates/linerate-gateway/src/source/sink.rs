//! What a source publishes into: the node.

use std::sync::Arc;

use linerate_broker::{
    Answer, BoxFuture, History, HistoryRequest, Publish, Published, StreamOptions,
};
use linerate_hub::ChannelName;
use linerate_source::Sink;

use crate::node::Node;

/// Publishes in the broker of a node.
#[derive(Debug)]
pub(super) struct NodeSink(pub(super) Arc<Node>);

impl Sink for NodeSink {
    fn options(&self, channel: &ChannelName) -> StreamOptions {
        self.0.namespaces.current().options(channel).stream()
    }

    fn publish<'a>(&'a self, channel: &'a ChannelName, publish: Publish) -> Answer<'a, Published> {
        Box::pin(self.0.publisher.publish(channel, publish))
    }

    fn history<'a>(
        &'a self,
        channel: &'a ChannelName,
        options: StreamOptions,
        request: HistoryRequest,
    ) -> Answer<'a, History> {
        Box::pin(self.0.histories.read(channel, options, request))
    }

    fn probe_write(&self) -> Answer<'_, ()> {
        self.0.broker.probe_write()
    }

    fn report_gap(&self, patterns: Vec<String>) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let channels = self.0.all_nodes.report_gap(patterns).await;
            tracing::debug!(channels, "subscribers told of a gap");
        })
    }
}
