//! Reads the history of channels.

use std::sync::Arc;

use linerate_broker::{Broker, BrokerError, History, HistoryRequest, StreamOptions};
use linerate_budget::{Account, Budget, Consumer, State};
use linerate_hub::{ChannelName, StreamPosition};
use tokio::runtime::Handle;

use super::reads::Reads;

/// The histories of channels, as the broker keeps them.
#[derive(Debug)]
pub(crate) struct Histories {
    source: Source,
    /// Reads for subscribers, which share them.
    pub(super) reads: Arc<Reads>,
}

/// Reads from the broker, within the memory budget.
#[derive(Clone, Debug)]
struct Source {
    broker: Arc<dyn Broker>,
    budget: Budget,
    /// The account for publications read from streams.
    account: Account,
}

impl Histories {
    /// Reads for subscribers are made on `runtime`.
    pub(super) fn new(broker: Arc<dyn Broker>, budget: Budget, runtime: Handle) -> Self {
        let source = Source {
            broker,
            account: budget.account(Consumer::Histories),
            budget,
        };
        let reads = Reads::new(runtime, {
            let source = source.clone();
            move |channel, stream, request| {
                let source = source.clone();
                let checked = source.check(stream, &request);
                Box::pin(async move {
                    checked?;
                    let history = source.broker.history(&channel, stream, request).await?;
                    Ok(source.charged(history))
                })
            }
        });
        Self { source, reads }
    }

    /// Returns a part of a channel's stream.
    ///
    /// In reverse, `since` is the position that the part precedes, as clients of Centrifuge expect.
    /// Brokers can only return what follows a position, so this method converts the request.
    ///
    /// # Errors
    /// The broker is unavailable, the channel has no history, or memory is critical.
    pub(crate) async fn read(
        &self,
        channel: &ChannelName,
        stream: StreamOptions,
        request: HistoryRequest,
    ) -> Result<History, BrokerError> {
        let source = &self.source;
        source.check(stream, &request)?;
        match request {
            HistoryRequest {
                since: Some(since),
                limit,
                is_reverse: true,
            } => source.read_before(channel, stream, &since, limit).await,
            request => source.broker.history(channel, stream, request).await,
        }
        .map(|history| source.charged(history))
    }
}

impl Source {
    /// Refuses a read that would load publications into memory while memory is critical. Streams
    /// that the node stores itself are in memory already.
    fn check(&self, stream: StreamOptions, request: &HistoryRequest) -> Result<(), BrokerError> {
        let is_large = stream.is_durable && request.limit != Some(0);
        match is_large && self.budget.state() == State::Critical {
            true => Err(BrokerError::Overloaded),
            false => Ok(()),
        }
    }

    /// Charges publications to the account until they are dropped.
    fn charged(&self, history: History) -> History {
        for publication in &history.publications {
            publication.charge(&self.account);
        }
        history
    }

    async fn read_before(
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
