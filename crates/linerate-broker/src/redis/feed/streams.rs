//! Reads a stream from its end on. The position survives lost connections.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::time::sleep;

use super::{FeedEvent, FeedSink, Service};
use crate::{backoff::Backoff, broker::BrokerError};

/// The maximum number of entries that are read at once.
const ENTRIES_MAX: usize = 64;

/// The maximum time that Redis waits for an entry.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// The position before all entries.
const START: &str = "0-0";

/// An entry: its ID, and fields and values in turn.
type Entry = (String, Vec<Vec<u8>>);

/// The entries that are added to a stream.
#[derive(Debug)]
pub(super) struct StreamFeed {
    service: Service,
    stream: String,
    sink: Arc<dyn FeedSink>,
    backoff: Backoff,
    /// The ID of the last entry that was read, or that was there when the feed began.
    position: Option<String>,
}

impl StreamFeed {
    pub(super) fn new(
        service: Service,
        backoff: Backoff,
        stream: String,
        sink: Arc<dyn FeedSink>,
    ) -> Self {
        Self {
            service,
            stream,
            sink,
            backoff,
            position: None,
        }
    }

    /// Reads until it is dropped.
    pub(super) async fn run(mut self) {
        loop {
            let reason = match self.serve().await {
                Ok(never) => match never {},
                Err(error) => error.to_string(),
            };
            self.sink.take(vec![FeedEvent::Down { reason }]).await;
            sleep(self.backoff.next()).await;
        }
    }

    /// Passes entries on until Redis does not answer.
    async fn serve(&mut self) -> Result<std::convert::Infallible, BrokerError> {
        let mut position = match self.position.take() {
            None => self.last().await?.unwrap_or_else(|| START.to_owned()),
            Some(position) => {
                self.position = Some(position.clone());
                self.checked(position).await?
            }
        };
        self.backoff.reset();
        let up = FeedEvent::Up { is_complete: true };
        self.sink.take(vec![up]).await;
        self.position = Some(position.clone());
        loop {
            let entries = self.read(&position).await?;
            let is_behind = entries.len() == ENTRIES_MAX;
            if let Some((id, _)) = entries.last() {
                position.clone_from(id);
            }
            let bytes_max = self.service.options.payload_bytes_max;
            let events: Vec<_> = entries
                .into_iter()
                .map(|(_, values)| event(values, bytes_max))
                .collect();
            if !events.is_empty() {
                self.sink.take(events).await;
                self.position = Some(position.clone());
            }
            if is_behind {
                position = self.checked(position).await?;
            }
        }
    }

    /// Waits for entries after a position.
    async fn read(&self, position: &str) -> Result<Vec<Entry>, BrokerError> {
        let wait = (self.service.options.command_timeout / 2).min(WAIT_MAX);
        let mut command = ::redis::cmd("XREAD");
        command.arg("COUNT").arg(ENTRIES_MAX);
        command.arg("BLOCK").arg(wait.as_millis().max(1) as u64);
        command.arg("STREAMS").arg(&self.stream).arg(position);
        let streams: Option<Vec<(String, Vec<Entry>)>> =
            self.service.commands.query(&command).await?;
        let streams = streams.into_iter().flatten();
        Ok(streams.flat_map(|(_, entries)| entries).collect())
    }

    /// Returns the ID of the last entry, if there is one.
    async fn last(&self) -> Result<Option<String>, BrokerError> {
        self.first_of("XREVRANGE", "+", "-").await
    }

    /// Returns where to continue after a position, and reports a gap if entries after it have been
    /// removed.
    async fn checked(&self, position: String) -> Result<String, BrokerError> {
        if position == START {
            return Ok(position);
        }
        if self
            .first_of("XRANGE", &position, &position)
            .await?
            .is_some()
        {
            return Ok(position);
        }
        self.sink.take(vec![FeedEvent::Gap]).await;
        // A new stream of the same name may have smaller IDs.
        let has_later = self.first_of("XRANGE", &position, "+").await?.is_some();
        Ok(if has_later {
            position
        } else {
            START.to_owned()
        })
    }

    async fn first_of(
        &self,
        command: &'static str,
        from: &str,
        to: &str,
    ) -> Result<Option<String>, BrokerError> {
        let mut command = ::redis::cmd(command);
        command.arg(&self.stream).arg(from).arg(to);
        command.arg("COUNT").arg(1);
        let entries: Vec<Entry> = self.service.commands.query(&command).await?;
        Ok(entries.into_iter().next().map(|(id, _)| id))
    }
}

fn event(values: Vec<Vec<u8>>, bytes_max: usize) -> FeedEvent {
    let bytes = values.iter().map(Vec::len).sum();
    if bytes > bytes_max {
        return FeedEvent::Oversized { bytes };
    }
    let mut values = values.into_iter();
    let mut fields = Vec::new();
    while let (Some(name), Some(value)) = (values.next(), values.next()) {
        fields.push((
            String::from_utf8_lossy(&name).into_owned(),
            Bytes::from(value),
        ));
    }
    FeedEvent::Entry { fields }
}
