//! Publishes in durable channels.

use std::sync::Arc;

use async_nats::jetstream::{message::PublishMessage, stream::DirectGetErrorKind};
use futures_util::future::try_join;
use linerate_hub::StreamPosition;
use tokio::{sync::oneshot, time::Instant};

use super::{
    errors::unavailable,
    home::{DurableChannel, Home},
    place::{ATTEMPTS_MAX, Recorded, back_off, contended},
    queue::{Queue, Tip, Waiting},
    streams::{Sent, Streams},
    wire::{self, Head},
};
use crate::{
    broker::{BrokerError, check_payload},
    request::{Publish, Published},
};

impl Streams {
    /// Publishes. Completes when the stream has stored the message. Whether it is on disk at that
    /// time depends on the server, which syncs every two minutes unless configured otherwise.
    pub(super) async fn publish(
        self: &Arc<Self>,
        durable: &DurableChannel,
        publish: Publish,
    ) -> Result<Published, BrokerError> {
        check_payload(publish.payload.len(), self.context.client().max_payload())?;
        let (done, answer) = oneshot::channel();
        let durable = durable.clone();
        let waiting = Waiting {
            durable,
            publish,
            done,
        };
        if let Some(queue) = self.queues.push(waiting) {
            // A task, because publications of other callers are also sent, which must not end when
            // this caller no longer waits.
            let streams = Arc::clone(self);
            self.runtime
                .spawn(async move { streams.send_waiting(&queue).await });
        }
        let lost = |_| Err(BrokerError::away("connection was lost"));
        answer.await.unwrap_or_else(lost)
    }

    async fn send_waiting(&self, queue: &Queue) {
        // Headers count as well.
        let bytes_max = self.context.client().max_payload() / 2;
        let mut tip = queue.take_tip();
        while let Some(batch) = queue.next(bytes_max, &mut tip) {
            let home = batch[0].durable.home();
            tip = tip.filter(|tip| tip.home == home);
            let publications: Vec<_> = batch.iter().map(|one| &one.publish).collect();
            let sent = self.send_batch(&batch[0].durable, &publications, &mut tip);
            let sent = sent.await;
            answer(batch, sent);
        }
    }

    /// Sends publications as one message. Returns the position of the last one, or `None` if its
    /// position is no longer known.
    async fn send_batch(
        &self,
        channel: &DurableChannel,
        publications: &[&Publish],
        tip: &mut Option<Tip>,
    ) -> Result<Option<StreamPosition>, BrokerError> {
        let ttl = channel.home().ttl();
        // What was stored long ago has expired.
        let is_recent = |tip: &Tip| ttl.is_zero() || tip.known.elapsed() < ttl / 2;
        let mut before: Option<Tip> = None;
        for attempt in 0..ATTEMPTS_MAX {
            back_off(attempt).await;
            let at = match tip.take().filter(is_recent) {
                Some(tip) => tip,
                None => match self.find_tip(channel, before.take()).await? {
                    Some(tip) => tip,
                    None => continue,
                },
            };
            let count = publications.len() as u64;
            let mut position = Head::of(at.position.clone(), channel.home());
            position.position.offset += count;
            let head = Head {
                count,
                ..position.clone()
            };
            let recorded = self.record(channel, &position, at.position_sequence, &at.position);
            let message = message(channel, &head, publications);
            let sent = self.send(channel, head.home, message, at.sequence);
            let (recorded, sent) = try_join(recorded, sent).await?;
            match (sent, recorded) {
                (Sent::Stored(stored), recorded) if stored.duplicate => {
                    if let Recorded::Stored { sequence, .. } = recorded {
                        *tip = Some(Tip {
                            position_sequence: sequence,
                            ..at
                        });
                    }
                    return self.position_of(channel, head.home, stored.sequence).await;
                }
                (Sent::Stored(stored), Recorded::Stored { sequence, .. }) => {
                    *tip = Some(Tip {
                        position: head.position.clone(),
                        home: head.home,
                        sequence: stored.sequence,
                        position_sequence: sequence,
                        known: Instant::now(),
                    });
                    return Ok(Some(head.position));
                }
                (Sent::Stored(_), Recorded::Lost) => {
                    self.record_again(channel, &position, 0).await?;
                    return Ok(Some(head.position));
                }
                // The stored position is one that the channel does not have.
                (
                    _,
                    Recorded::Stored {
                        sequence,
                        was_before: true,
                    },
                ) => {
                    before = Some(Tip {
                        position_sequence: sequence,
                        ..at
                    });
                }
                _ => {
                    before = Some(Tip {
                        position_sequence: 0,
                        ..at
                    });
                }
            }
        }
        Err(contended())
    }

    /// Finds the end of a channel, and moves the channel to the stream of its current options.
    /// Returns `None` if another node has published in the meantime.
    ///
    /// `before` is an earlier end, with the number of the position that this node has stored for a
    /// message that was not. A channel that ends before it went back in time, and begins a new
    /// epoch.
    async fn find_tip(
        &self,
        channel: &DurableChannel,
        before: Option<Tip>,
    ) -> Result<Option<Tip>, BrokerError> {
        let own = channel.home();
        let mut place = self.place(channel).await?;
        if let Some(before) = before {
            let (position, is_same) = (
                &place.position,
                place.position.epoch == before.position.epoch,
            );
            if is_same && position.offset < before.position.offset {
                self.renew(channel, &place).await?;
                return Ok(None);
            }
            // Nothing is stored, and no other node has stored a position.
            if is_same
                && place.last.sequence == 0
                && place.position_sequence == before.position_sequence
            {
                place.position = before.position;
            }
        }
        let mut sequence = place.last.sequence;
        if place.home != own {
            let fence = Head::of(place.position.clone(), own);
            let fence = PublishMessage::build().headers(fence.headers());
            if let Sent::Conflict = self.send(channel, place.home, fence, sequence).await? {
                return Ok(None);
            }
            sequence = self.last_stored(channel, own).await?.sequence;
        }
        Ok(Some(Tip {
            position: place.position,
            home: own,
            sequence,
            position_sequence: place.position_sequence,
            known: Instant::now(),
        }))
    }

    /// Returns the position of the publication in a stored message.
    async fn position_of(
        &self,
        channel: &DurableChannel,
        home: Home,
        sequence: u64,
    ) -> Result<Option<StreamPosition>, BrokerError> {
        let stream = self.stream_of(channel, home);
        let stream = self.context.get_stream_no_info(stream).await;
        let stream = stream.map_err(|error| unavailable(&error))?;
        match stream.direct_get(sequence).await {
            Ok(message) => Ok(Head::parse(&message.headers).map(|head| head.position)),
            Err(error) if error.kind() == DirectGetErrorKind::NotFound => Ok(None),
            Err(error) => Err(unavailable(&error)),
        }
    }
}

fn message(channel: &DurableChannel, head: &Head, publications: &[&Publish]) -> PublishMessage {
    let (headers, payload) = wire::message(head, publications);
    let message = PublishMessage::build().headers(headers).payload(payload);
    match publications {
        [
            Publish {
                idempotency_key: Some(key),
                ..
            },
        ] => message.message_id(wire::message_id(&channel.subject, key)),
        _ => message,
    }
}

/// Answers the publishers of a batch, of which the last publication has the position.
fn answer(batch: Vec<Waiting>, sent: Result<Option<StreamPosition>, BrokerError>) {
    let count = batch.len() as u64;
    for (waiting, number) in batch.into_iter().zip(1..) {
        let published = sent.clone().map(|last| Published {
            position: last.map(|last| StreamPosition {
                offset: last.offset + number - count,
                ..last
            }),
        });
        // The publisher may no longer wait.
        _ = waiting.done.send(published);
    }
}
