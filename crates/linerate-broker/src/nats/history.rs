//! Reads and removes what streams store for a durable channel.

use std::{ops::RangeInclusive, time::Duration};

use async_nats::{
    HeaderMap,
    header::NATS_EXPECTED_LAST_SUBJECT_SEQUENCE,
    jetstream::{
        consumer::{AckPolicy, PullConsumer, pull},
        stream::Stream,
    },
};
use bytes::Bytes;
use futures_util::StreamExt;
use linerate_hub::{Publication, StreamPosition};

use super::{
    catch_up::{Progress, StreamContents},
    errors::unavailable,
    home::DurableChannel,
    place::{ATTEMPTS_MAX, Place, contended},
    streams::{Last, Streams},
    subject,
    wire::{self, Head},
};
use crate::{
    broker::BrokerError,
    request::{History, HistoryRequest},
};

/// The maximum number of payload bytes that are read from a stream for one history, or to catch up.
const READ_BYTES_MAX: usize = 64 << 20;

/// The number of messages that are requested from a stream at once.
const MESSAGES_AT_ONCE: usize = 1_000;

/// The maximum number of messages that are read one by one, which is faster than a reader.
const NEWEST_MAX: usize = 8;

/// How long the server keeps a reader that this node does not end.
const READER_TTL: Duration = Duration::from_secs(5);

impl Streams {
    /// Returns the publications that are stored for a channel.
    pub(super) async fn history(
        &self,
        durable: &DurableChannel,
        request: HistoryRequest,
    ) -> Result<History, BrokerError> {
        let place = self.place(durable).await?;
        let newest = place.position.offset;
        let oldest = first_offset(durable, newest);
        let limit = request.limit.unwrap_or(usize::MAX);
        let (after, mut is_contiguous) = match &request.since {
            None if request.is_reverse => {
                let limit = u64::try_from(limit).unwrap_or(u64::MAX);
                (newest.saturating_sub(limit).max(oldest - 1), true)
            }
            None => (oldest - 1, true),
            Some(since) if since.epoch != place.position.epoch => (newest, false),
            Some(since) if since.offset > newest => (newest, false),
            Some(since) => {
                let after = since.offset.max(oldest - 1);
                (after, after == since.offset)
            }
        };
        let is_empty = after == newest || limit == 0;
        let mut publications = match is_empty {
            true => Vec::new(),
            false => {
                let read = self.read(durable, &place, after + 1..=newest).await?;
                read.ok_or_else(|| {
                    BrokerError::refused(format!(
                        "history is larger than {READ_BYTES_MAX} bytes; request a newer part"
                    ))
                })?
            }
        };
        if request.since.is_some() && !is_empty {
            let first = publications.first().map(Publication::offset);
            is_contiguous &= first == Some(after + 1);
        }
        if request.is_reverse {
            publications.reverse();
        }
        publications.truncate(limit);
        Ok(History {
            publications,
            newest: place.position,
            is_contiguous,
        })
    }

    /// Deletes what is stored for a channel.
    pub(super) async fn remove_history(&self, durable: &DurableChannel) -> Result<(), BrokerError> {
        let place = self.place(durable).await?;
        // Nothing else says where the channel was when everything is removed.
        let head = Head::of(place.position, place.home);
        self.record_again(durable, &head, place.position_sequence)
            .await?;
        let stream = self.stream_of(durable, place.home);
        let stream = self.context.get_stream_no_info(stream).await;
        let stream = stream.map_err(|error| unavailable(&error))?;
        let removed = stream
            .purge()
            .sequence(place.last.sequence + 1)
            .filter(subject::stored(place.home, &durable.subject));
        removed.await.map(|_| ()).map_err(BrokerError::refused)
    }

    /// Reads the publications after the delivered position.
    ///
    /// A channel that ends before that position, or has a different payload there, went back in
    /// time, for example because the server lost its newest writes in a restart. Such a channel
    /// begins a new epoch.
    pub(super) async fn catch_up(
        &self,
        durable: &DurableChannel,
        delivered: Option<Progress>,
    ) -> Result<StreamContents, BrokerError> {
        let turn = self.catch_ups.acquire().await;
        let _turn = turn.map_err(|_| BrokerError::refused("link ended"))?;
        for _ in 0..ATTEMPTS_MAX {
            let place = self.place(durable).await?;
            let nothing = |place: Place| StreamContents {
                epoch: place.position.epoch,
                newest: place.position.offset,
                publications: Vec::new(),
            };
            let Some(delivered) = &delivered else {
                return Ok(nothing(place));
            };
            if delivered.position.epoch != place.position.epoch {
                return Ok(nothing(place));
            }
            let (from, newest) = (delivered.position.offset, place.position.offset);
            if from <= newest {
                // If there is more than may be read, treat it as if it were gone: as a gap.
                let read = self.read(durable, &place, from.max(1)..=newest).await?;
                let mut publications = read.unwrap_or_default();
                if !is_other(&publications, delivered) {
                    publications.retain(|publication| publication.offset() > from);
                    return Ok(StreamContents {
                        publications,
                        ..nothing(place)
                    });
                }
            }
            self.renew(durable, &place).await?;
        }
        Err(contended())
    }

    /// Reads the publications in a range that ends with the newest one. Returns `None` if they have
    /// more than [`READ_BYTES_MAX`] bytes.
    async fn read(
        &self,
        durable: &DurableChannel,
        place: &Place,
        range: RangeInclusive<u64>,
    ) -> Result<Option<Vec<Publication>>, BrokerError> {
        let mut reading = Reading {
            position: &place.position,
            range,
            publications: Vec::new(),
            bytes: 0,
        };
        if reading.range.is_empty() || place.last.sequence == 0 {
            return Ok(Some(Vec::new()));
        }
        let stream = self.stream_of(durable, place.home);
        let stream = self.context.get_stream_no_info(stream).await;
        let stream = stream.map_err(|error| unavailable(&error))?;
        if let Some(newest) = newest_messages(&stream, &place.last, *reading.range.start()).await {
            for (headers, payload) in newest.iter().rev() {
                reading.add(payload, headers);
            }
            return Ok(Some(reading.publications));
        }
        let reader = pull::Config {
            filter_subject: subject::stored(place.home, &durable.subject),
            ack_policy: AckPolicy::None,
            inactive_threshold: READER_TTL,
            memory_storage: true,
            ..pull::Config::default()
        };
        let reader: PullConsumer = stream
            .create_consumer(reader)
            .await
            .map_err(|error| unavailable(&error))?;
        let is_complete = reading.add_all(&reader).await;
        // A reader that cannot be deleted expires.
        _ = stream.delete_consumer(&reader.cached_info().name).await;
        Ok(is_complete?.then_some(reading.publications))
    }
}

/// Returns the newest messages of a channel, from the last one back to the one with the publication
/// `from`, or `None` if there are more than a few, or if one is missing.
///
/// A message names the one before it, because its publisher had to know it.
async fn newest_messages(
    stream: &Stream<()>,
    last: &Last,
    from: u64,
) -> Option<Vec<(HeaderMap, Bytes)>> {
    let mut messages = vec![(last.headers.clone(), last.payload.clone())];
    loop {
        let (headers, _) = messages.last()?;
        let head = Head::parse(headers).filter(|head| head.count > 0)?;
        if head.position.offset + 1 - head.count <= from {
            return Some(messages);
        }
        if messages.len() == NEWEST_MAX {
            return None;
        }
        let before = headers.get(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE)?.as_str();
        let before = stream.direct_get(before.parse().ok()?).await.ok()?;
        messages.push((before.headers, before.payload));
    }
}

/// What was read of a channel.
struct Reading<'a> {
    position: &'a StreamPosition,
    range: RangeInclusive<u64>,
    publications: Vec<Publication>,
    bytes: usize,
}

impl Reading<'_> {
    /// Reads everything that a reader has. Returns whether it was not too much.
    async fn add_all(&mut self, reader: &PullConsumer) -> Result<bool, BrokerError> {
        let mut left = usize::try_from(reader.cached_info().num_pending).unwrap_or(usize::MAX);
        while left > 0 {
            let wanted = left.min(MESSAGES_AT_ONCE);
            let batch = reader.fetch().max_messages(wanted).messages().await;
            let mut batch = batch.map_err(|error| unavailable(&error))?;
            let before = left;
            while let Some(message) = batch.next().await {
                let message = message.map_err(BrokerError::away)?;
                left = left.saturating_sub(1);
                if let Some(headers) = &message.headers {
                    self.add(&message.payload, headers);
                }
                if self.bytes > READ_BYTES_MAX {
                    return Ok(false);
                }
            }
            if left == before {
                // The rest was removed in the meantime.
                break;
            }
        }
        Ok(true)
    }

    /// Adds the publications of a message that are in the range. If one is missing before them, the
    /// earlier ones are dropped, so that there is never a hole.
    fn add(&mut self, payload: &Bytes, headers: &HeaderMap) {
        let Some((_, publications)) = wire::publications(payload, headers) else {
            return;
        };
        for publication in publications {
            let (offset, position) = (publication.offset(), publication.position());
            let is_current = position.is_some_and(|found| found.epoch == self.position.epoch);
            let last = self.publications.last().map(Publication::offset);
            let is_repeated = last.is_some_and(|last| offset <= last);
            if !is_current || is_repeated || !self.range.contains(&offset) {
                continue;
            }
            if last.is_some_and(|last| offset > last + 1) {
                self.publications.clear();
            }
            self.bytes += publication.payload().len();
            self.publications.push(publication);
        }
    }
}

/// Returns the smallest offset that belongs to the history. A stream may store more, because it
/// counts messages, which may have several publications.
fn first_offset(durable: &DurableChannel, newest: u64) -> u64 {
    (newest + 1).saturating_sub(durable.home().size_max).max(1)
}

/// Returns whether there is a different payload at the delivered position.
fn is_other(publications: &[Publication], delivered: &Progress) -> bool {
    let offset = delivered.position.offset;
    let there = publications.iter().find(|one| one.offset() == offset);
    match (there, &delivered.payload) {
        (Some(there), Some(payload)) => there.payload() != payload,
        _ => false,
    }
}
