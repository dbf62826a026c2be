//! Reads the history of channels.

use linerate_broker::{BrokerError, History, HistoryRequest, StreamOptions};
use linerate_hub::{ChannelName, StreamPosition};

use super::{
    Node,
    accounts::{check_read, counted},
};

impl Node {
    /// Returns a part of a channel's stream.
    ///
    /// In reverse, `since` is the position that the part precedes, as clients of Centrifuge expect.
    /// Brokers can only return what follows a position, so this method converts the request.
    ///
    /// # Errors
    /// The broker is unavailable, the channel has no history, or memory is critical.
    pub(crate) async fn history(
        &self,
        channel: &ChannelName,
        stream: StreamOptions,
        request: HistoryRequest,
    ) -> Result<History, BrokerError> {
        check_read(self.budget(), stream, &request)?;
        match request {
            HistoryRequest {
                since: Some(since),
                limit,
                is_reverse: true,
            } => self.history_before(channel, stream, &since, limit).await,
            request => self.broker.history(channel, stream, request).await,
        }
        .map(|history| counted(history, &self.histories))
    }

    async fn history_before(
        &self,
        channel: &ChannelName,
        stream: StreamOptions,
        before: &StreamPosition,
        limit: Option<usize>,
    ) -> Result<History, BrokerError> {
        let ask = |limit| HistoryRequest {
            since: None,
            limit,
            is_reverse: true,
        };
        let newest = self.broker.history(channel, stream, ask(Some(0))).await?;
        if !is_same_epoch(before, &newest.newest) {
            return Ok(newest);
        }
        // Read from the newest publication down to the position, plus `limit` more.
        let behind = newest.newest.offset.saturating_sub(before.offset);
        let behind = usize::try_from(behind).unwrap_or(usize::MAX);
        let asked = limit.map(|limit| limit.saturating_add(behind).saturating_add(1));
        let mut history = self.broker.history(channel, stream, ask(asked)).await?;
        if !is_same_epoch(before, &history.newest) {
            history.publications.clear();
            return Ok(history);
        }
        history
            .publications
            .retain(|publication| publication.offset() < before.offset);
        history.publications.truncate(limit.unwrap_or(usize::MAX));
        Ok(history)
    }
}

/// Returns whether the epochs match; an empty epoch matches any epoch.
fn is_same_epoch(asked: &StreamPosition, newest: &StreamPosition) -> bool {
    asked.epoch.as_str().is_empty() || asked.epoch == newest.epoch
}
