//! Durable channels: Redis streams that scripts write and read.

use std::time::Duration;

use bytes::Bytes;
use linerate_hub::{Epoch, Publication, StreamPosition};

use super::{envelope, names::DurableKeys, state::RedisState};
use crate::{
    broker::BrokerError,
    incarnation,
    request::{History, HistoryRequest, Publish, Published, StreamOptions},
};

/// An entry of a stream: its id, and alternating field names and values.
type Entry = (String, Vec<Bytes>);

/// The result of the script `history`: epoch, newest offset, oldest stored offset, entries.
type HistoryReply = (String, String, String, Vec<Entry>);

impl RedisState {
    /// Publishes in a plain channel with the Redis name `name`.
    pub(super) async fn publish_plain(
        &self,
        name: &str,
        publish: &Publish,
    ) -> Result<Published, BrokerError> {
        let payload = &*envelope::plain(publish);
        let Some(key) = &publish.idempotency_key else {
            let mut command = ::redis::cmd(self.scripts.word);
            command.arg(name).arg(payload);
            let _: () = self.commands.query(&command).await?;
            return Ok(Published::default());
        };
        let mut call = self.scripts.publish_once.key(self.names.answer(name, key));
        call.arg(name)
            .arg(payload)
            .arg(self.scripts.word)
            .arg(milliseconds(self.options.idempotency_ttl));
        let call = async |mut connection| call.invoke_async::<()>(&mut connection).await;
        self.commands.run(call).await?;
        Ok(Published::default())
    }

    /// Publishes in a durable channel with the Redis name `name`.
    pub(super) async fn publish_durable(
        &self,
        name: &str,
        publish: &Publish,
    ) -> Result<Published, BrokerError> {
        let DurableKeys { keys, former } = self.names.durable_keys(name);
        let options = publish.options;
        let mut call = self.scripts.publish.key(keys.meta);
        call.key(keys.stream);
        if let Some(key) = &publish.idempotency_key {
            call.key(self.names.answer(name, key));
        }
        if let Some(former) = former {
            call.key(former.meta).key(former.stream);
        }
        call.arg(name)
            .arg(&publish.payload[..])
            .arg(envelope::meta(publish.info.as_ref(), &publish.tags))
            .arg(options.size_max)
            .arg(milliseconds(options.ttl))
            .arg(milliseconds(self.options.meta_ttl.max(options.ttl)))
            .arg(incarnation::random())
            .arg(self.scripts.word)
            .arg(milliseconds(self.options.idempotency_ttl));
        let call =
            async |mut connection| call.invoke_async::<(String, String)>(&mut connection).await;
        let (epoch, offset) = self.commands.run(call).await?;
        let position = Some(position(&epoch, &offset)?);
        Ok(Published { position })
    }

    /// Reads the stream of a channel with the Redis name `name`.
    pub(super) async fn read_stream(
        &self,
        name: &str,
        options: StreamOptions,
        request: &HistoryRequest,
    ) -> Result<History, BrokerError> {
        let DurableKeys { keys, former } = self.names.durable_keys(name);
        let since = request.since.as_ref();
        let limit = request
            .limit
            .map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
        let mut call = self.scripts.history.key(keys.meta);
        call.key(keys.stream);
        if let Some(former) = former {
            call.key(former.meta).key(former.stream);
        }
        call.arg(incarnation::random())
            .arg(milliseconds(options.ttl))
            .arg(milliseconds(self.options.meta_ttl.max(options.ttl)))
            .arg(since.map_or("", |since| since.epoch.as_str()))
            .arg(since.map_or(0, |since| since.offset))
            .arg(limit)
            .arg(match request.is_reverse {
                true => "XREVRANGE",
                false => "XRANGE",
            });
        let call = async |mut connection| call.invoke_async::<HistoryReply>(&mut connection).await;
        history(self.commands.run(call).await?, since)
    }

    /// Deletes the contents of a channel's stream.
    pub(super) async fn remove_stream(&self, name: &str) -> Result<(), BrokerError> {
        let DurableKeys { keys, former } = self.names.durable_keys(name);
        let mut command = ::redis::cmd("DEL");
        command.arg(keys.stream);
        command.arg(former.map(|former| former.stream));
        self.commands.query(&command).await
    }
}

fn history(
    (epoch, newest, oldest, entries): HistoryReply,
    since: Option<&StreamPosition>,
) -> Result<History, BrokerError> {
    let newest = position(&epoch, &newest)?;
    let oldest = match oldest.as_str() {
        "" => newest.offset + 1,
        oldest => number(oldest)?,
    };
    let is_contiguous = since.is_none_or(|since| {
        since.epoch == newest.epoch
            && since.offset <= newest.offset
            && since.offset.saturating_add(1) >= oldest
    });
    let publications = entries
        .into_iter()
        .map(|entry| publication(entry, &newest.epoch));
    Ok(History {
        publications: publications.collect::<Result<_, _>>()?,
        newest,
        is_contiguous,
    })
}

fn publication((id, fields): Entry, epoch: &Epoch) -> Result<Publication, BrokerError> {
    let (offset, _) = id.split_once('-').ok_or_else(malformed)?;
    let position = StreamPosition {
        epoch: epoch.clone(),
        offset: number(offset)?,
    };
    let [_, payload, _, meta] = <[Bytes; 4]>::try_from(fields).map_err(|_| malformed())?;
    let publication = Publication::build(payload).with_position(position);
    Ok(envelope::with_meta(publication, &meta).finish())
}

fn position(epoch: &str, offset: &str) -> Result<StreamPosition, BrokerError> {
    Ok(StreamPosition {
        epoch: Epoch::new(epoch),
        offset: number(offset)?,
    })
}

fn number(text: &str) -> Result<u64, BrokerError> {
    text.parse().map_err(|_| malformed())
}

/// Returns the error for a stream that something other than our scripts has written to.
fn malformed() -> BrokerError {
    BrokerError::refused("stream contains an entry that linerate did not write")
}

/// Returns a duration in milliseconds. Redis does not accept an expiry of 0, nor one that overflows
/// a signed integer.
fn milliseconds(duration: Duration) -> i64 {
    let most = Duration::from_secs(100 * 365 * 24 * 60 * 60);
    i64::try_from(duration.min(most).as_millis().max(1)).unwrap_or(i64::MAX)
}
