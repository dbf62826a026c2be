//! Converts messages from Redis into events for the node.

use bytes::Bytes;
use linerate_hub::{ChannelName, Publication, StreamPosition, publication::PublicationBuilder};
use tokio::time::Instant;

use super::{
    envelope,
    input::Item,
    names::Names,
    resp::Message,
    subscriptions::{Subscriptions, Target},
};
use crate::{
    event::{Event, GapReason},
    request::StreamOptions,
    sequencer::Sequencer,
};

/// The phase of a link after it has connected.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Phase {
    /// Missed publications are not recovered yet, so it is unknown which publication is the next,
    /// and none are numbered.
    CatchingUp,
    Live,
}

/// Turns messages into events.
#[derive(Debug)]
pub(super) struct Delivery<'a> {
    pub(super) names: &'a Names,
    pub(super) sequencer: &'a mut Sequencer,
    pub(super) phase: Phase,
    pub(super) now: Instant,
}

/// The outcome of a message.
#[derive(Debug)]
pub(super) enum MessageOutcome {
    /// No subscription wants the message.
    Nothing,
    /// Events for the node. The last one is a publication or an internal message.
    Events(Vec<Event>),
    One(Event),
    /// A loopback publication.
    Probe(u64),
}

impl Delivery<'_> {
    /// Handles a message.
    pub(super) fn message(
        &mut self,
        message: &Message<'_>,
        subscriptions: &mut Subscriptions,
    ) -> MessageOutcome {
        match subscriptions.target(message.subscription) {
            Some(Target::Channel {
                channel,
                options,
                newest,
                recovered,
            }) if options.has_stream() => self.durable(channel, newest, recovered, message.payload),
            Some(Target::Channel {
                channel, options, ..
            }) => MessageOutcome::One(self.plain(channel, *options, message.payload)),
            Some(Target::Control) => {
                let payload = Bytes::copy_from_slice(message.payload);
                MessageOutcome::One(Event::Control(payload))
            }
            Some(Target::Pattern { pattern, options }) => {
                self.of_pattern(pattern, *options, message)
            }
            Some(Target::Probe) => {
                let number = std::str::from_utf8(message.payload);
                let number = number.ok().and_then(|text| text.parse().ok());
                number.map_or(MessageOutcome::Nothing, MessageOutcome::Probe)
            }
            None => MessageOutcome::Nothing,
        }
    }

    /// Handles a message that was too large and was skipped.
    pub(super) fn oversized(
        &mut self,
        item: &Item<'_>,
        subscriptions: &mut Subscriptions,
    ) -> Option<Event> {
        let Item::Oversized {
            subscription: Some(subscription),
            bytes,
        } = *item
        else {
            return None;
        };
        let channel = subscriptions.target(subscription)?.channel()?.clone();
        tracing::warn!(%channel, bytes, "skipped a payload that is too large");
        self.sequencer.reset_channel(channel.as_str());
        Some(Event::gap_in(channel, GapReason::Oversized))
    }

    fn plain(&mut self, channel: &ChannelName, options: StreamOptions, payload: &[u8]) -> Event {
        let publication = of_plain(payload);
        let publication = match self.phase {
            Phase::CatchingUp => publication.finish(),
            Phase::Live => self
                .sequencer
                .publish(self.now, channel, options, publication),
        };
        Event::Publication {
            channel: channel.clone(),
            publication,
        }
    }

    fn durable(
        &self,
        channel: &ChannelName,
        newest: &mut Option<StreamPosition>,
        recovered: &mut u64,
        payload: &[u8],
    ) -> MessageOutcome {
        let event = |publication| Event::Publication {
            channel: channel.clone(),
            publication,
        };
        let Some(opened) = envelope::open(payload) else {
            let publication = Publication::new(Bytes::copy_from_slice(payload));
            return MessageOutcome::One(event(publication));
        };
        let publication = Publication::build(Bytes::copy_from_slice(opened.payload))
            .with_position(opened.position.clone());
        let publication = envelope::with_meta(publication, opened.meta).finish();
        if self.phase == Phase::CatchingUp {
            return MessageOutcome::One(event(publication));
        }
        let is_back = is_covered(newest.as_ref(), &opened.position);
        if is_back && opened.position.offset <= *recovered {
            return MessageOutcome::Nothing;
        }
        *recovered = 0;
        *newest = Some(opened.position);
        match is_back {
            false => MessageOutcome::One(event(publication)),
            true => MessageOutcome::Events(vec![
                Event::gap_in(channel.clone(), GapReason::StreamReset),
                event(publication),
            ]),
        }
    }

    fn of_pattern(
        &self,
        pattern: &ChannelName,
        options: StreamOptions,
        message: &Message<'_>,
    ) -> MessageOutcome {
        if self.names.is_own(message.channel) {
            return MessageOutcome::Nothing;
        }
        let opened = match options.has_stream() {
            true => envelope::open(message.payload),
            false => None,
        };
        let mut publication = match opened {
            Some(opened) => {
                let publication = Publication::build(Bytes::copy_from_slice(opened.payload));
                envelope::with_meta(publication, opened.meta)
            }
            None => of_plain(message.payload),
        };
        if let Some(source) = self.names.source(message.channel) {
            publication = publication.with_source(source);
        }
        MessageOutcome::One(Event::Publication {
            channel: pattern.clone(),
            publication: publication.finish(),
        })
    }
}

/// Returns a publication that was published without a script.
fn of_plain(bytes: &[u8]) -> PublicationBuilder {
    let (meta, payload) = envelope::open_plain(bytes);
    envelope::with_meta(Publication::build(Bytes::copy_from_slice(payload)), meta)
}

/// Returns whether a subscriber at `newest` has already received the publication at `position`.
pub(super) fn is_covered(newest: Option<&StreamPosition>, position: &StreamPosition) -> bool {
    newest.is_some_and(|newest| newest.epoch == position.epoch && position.offset <= newest.offset)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use linerate_hub::{ChannelName, Epoch, StreamPosition};
    use tokio::time::Instant;

    use super::{Delivery, MessageOutcome, Phase};
    use crate::{
        event::{Event, GapReason},
        redis::{
            names::Names,
            resp::Message,
            subscriptions::{Subscription, SubscriptionKind, Subscriptions, Target},
        },
        request::StreamOptions,
        sequencer::{Sequencer, SequencerLimits},
    };

    /// Subscribes to the durable channel "a". Everything up to offset 5 was received; the part
    /// after offset 3 was read from the stream.
    fn subscriptions() -> Subscriptions {
        let target = Target::Channel {
            channel: ChannelName::new("a").unwrap(),
            options: StreamOptions {
                is_durable: true,
                size_max: 10,
                ttl: Duration::from_secs(60),
            },
            newest: Some(StreamPosition {
                epoch: Epoch::new("e"),
                offset: 5,
            }),
            recovered: 5,
        };
        let mut subscriptions = Subscriptions::default();
        let subscription = Subscription {
            kind: SubscriptionKind::Channel,
            target,
            waiters: Vec::new(),
        };
        subscriptions.subscribe(b"a".as_slice().into(), subscription);
        subscriptions
    }

    fn deliver(subscriptions: &mut Subscriptions, payload: &[u8]) -> MessageOutcome {
        let mut delivery = Delivery {
            names: &Names::new(""),
            sequencer: &mut Sequencer::new(SequencerLimits::default(), "node"),
            phase: Phase::Live,
            now: Instant::now(),
        };
        let message = Message {
            subscription: b"a",
            channel: b"a",
            payload,
        };
        delivery.message(&message, subscriptions)
    }

    #[test]
    fn publications_from_the_stream_are_not_delivered_again() {
        let mut subscriptions = subscriptions();
        for payload in [&b"\0lr1 4 e 0\nx"[..], b"\0lr1 5 e 0\nx"] {
            let delivered = deliver(&mut subscriptions, payload);
            assert!(matches!(delivered, MessageOutcome::Nothing));
        }
        let next = deliver(&mut subscriptions, b"\0lr1 6 e 0\nx");
        assert!(matches!(next, MessageOutcome::One(_)));
    }

    #[test]
    fn an_offset_that_goes_back_is_a_gap() {
        let mut subscriptions = subscriptions();
        deliver(&mut subscriptions, b"\0lr1 6 e 0\nx");
        let MessageOutcome::Events(events) = deliver(&mut subscriptions, b"\0lr1 2 e 0\nx") else {
            panic!("no gap");
        };
        let [Event::Gap(gap), Event::Publication { publication, .. }] = &events[..] else {
            panic!("{events:?}");
        };
        assert_eq!(gap.reason, GapReason::StreamReset);
        assert_eq!(publication.offset(), 2);
        let next = deliver(&mut subscriptions, b"\0lr1 3 e 0\nx");
        assert!(matches!(next, MessageOutcome::One(_)));
    }

    #[test]
    fn another_epoch_is_left_to_the_comparison_of_positions() {
        let mut subscriptions = subscriptions();
        let next = deliver(&mut subscriptions, b"\0lr1 1 f 0\nx");
        assert!(matches!(next, MessageOutcome::One(_)));
    }
}
