//! What a source publishes into.

use linerate_broker::{
    Answer, BoxFuture, History, HistoryRequest, Publish, Published, StreamOptions,
};
use linerate_hub::ChannelName;

/// The broker of a node, as sources use it.
///
/// The methods are called on the runtime on which the source runs.
pub trait Sink: Send + Sync + 'static {
    /// Returns the options of a channel.
    fn options(&self, channel: &ChannelName) -> StreamOptions;

    /// Publishes in a channel. Completes when the broker has accepted the publication.
    ///
    /// # Errors
    /// The same as for [`Broker::publish`](linerate_broker::Broker::publish).
    fn publish<'a>(&'a self, channel: &'a ChannelName, publish: Publish) -> Answer<'a, Published>;

    /// Returns publications that the channel's stream holds.
    ///
    /// # Errors
    /// The same as for [`Broker::history`](linerate_broker::Broker::history).
    fn history<'a>(
        &'a self,
        channel: &'a ChannelName,
        options: StreamOptions,
        request: HistoryRequest,
    ) -> Answer<'a, History>;

    /// Checks whether the broker currently accepts writes.
    ///
    /// # Errors
    /// The same as for [`Broker::probe_write`](linerate_broker::Broker::probe_write).
    fn probe_write(&self) -> Answer<'_, ()>;

    /// Tells the subscribers of all nodes that publications may have been missed in the channels
    /// that match one of `patterns`, in which `*` stands for any text. Completes when the other
    /// nodes have been told.
    fn report_gap(&self, patterns: Vec<String>) -> BoxFuture<'_, ()>;
}
