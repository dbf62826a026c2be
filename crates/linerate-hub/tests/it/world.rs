//! A hub with a virtual clock, and clients that record what they receive.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use linerate_hub::{
    Batch, ChannelName, ChannelOptions, ClientId, Encode, EncodingId, Epoch, Filter, Gap, Hub,
    HubOptions, Payloads, Place, Publication, Sequence, Start, StreamPosition, SubscriptionId,
    SubscriptionOptions, Transmit, Unencodable,
};

pub(crate) const TEXT: EncodingId = EncodingId(0);

/// Encodes payloads with a `;` after each; `!` cannot be encoded. What each may be a delta from is
/// before it, followed by `>`. A channel that is known by its number precedes them.
#[derive(Debug)]
pub(crate) struct Text;

impl Encode for Text {
    type Block = Bytes;

    fn encode(&self, batch: &Batch<'_>, out: &mut Vec<u8>) -> Result<(), Unencodable> {
        if batch.with_channel_id {
            out.extend_from_slice(format!("{}:", batch.channel_id).as_bytes());
        }
        let (with_deltas, mut previous) = match batch.payloads {
            Payloads::Deltas { previous } => (true, previous),
            Payloads::Full => (false, None),
        };
        for publication in batch.publications {
            if publication.payload() == "!" {
                return Err(Unencodable);
            }
            if let Some(previous) = previous.replace(publication).filter(|_| with_deltas) {
                out.extend_from_slice(previous.payload());
                out.push(b'>');
            }
            out.extend_from_slice(publication.payload());
            out.push(b';');
        }
        if batch.conflated > 0 {
            out.extend_from_slice(format!("~{}", batch.conflated).as_bytes());
        }
        Ok(())
    }

    /// Appends the place of the block, and how many blocks its sequence has so far.
    fn seal(&self, bytes: Bytes, _batch: &Batch<'_>, place: Option<Place<'_>>) -> Bytes {
        let Some(place) = place else {
            return bytes;
        };
        let sequence = Arc::clone(place.sequence).downcast::<AtomicU32>().unwrap();
        let number = sequence.fetch_add(1, Ordering::Relaxed) + 1;
        let Place { from, to, .. } = place;
        [&bytes[..], format!("@{from}-{to}#{number}").as_bytes()]
            .concat()
            .into()
    }

    fn sequence(&self) -> Option<Sequence> {
        Some(Arc::new(AtomicU32::new(0)))
    }
}

/// Matches payloads that contain a given text.
#[derive(Debug)]
pub(crate) struct Contains(pub(crate) &'static str);

impl Filter for Contains {
    fn expression(&self) -> &str {
        self.0
    }

    fn admits(&self, publication: &Publication) -> bool {
        let text = std::str::from_utf8(publication.payload()).unwrap();
        text.contains(self.0)
    }
}

/// What a client received: the text of a block, or a gap.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Seen {
    Block(String),
    Gap(Gap),
    Slow(u64),
    Unencodable,
}

pub(crate) struct World {
    pub(crate) hub: Hub,
    pub(crate) now: Instant,
    pub(crate) channel_options: ChannelOptions,
    /// All clients that ever subscribed.
    pub(crate) all: Vec<ClientId>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(HubOptions::default())
    }

    pub(crate) fn with(options: HubOptions) -> Self {
        let encodings: Vec<Arc<dyn Encode<Block = Bytes>>> = vec![Arc::new(Text), Arc::new(Text)];
        Self {
            hub: Hub::new(HubOptions {
                encodings,
                ..options
            }),
            now: Instant::now(),
            channel_options: ChannelOptions::default(),
            all: Vec::new(),
        }
    }

    pub(crate) fn with_ring(messages_max: usize) -> Self {
        let mut world = Self::new();
        world.channel_options.ring_messages_max = messages_max;
        world
    }

    /// Subscribes without activating the subscription.
    pub(crate) fn join(
        &mut self,
        client: ClientId,
        channel: &str,
        options: SubscriptionOptions,
    ) -> SubscriptionId {
        let channel_options = self.channel_options;
        let subscription =
            self.hub
                .subscribe(self.now, client, name(channel), channel_options, options);
        subscription.unwrap()
    }

    /// Connects a client with a live subscription.
    pub(crate) fn listen(&mut self, channel: &str, options: SubscriptionOptions) -> ClientId {
        let client = self.hub.connect();
        self.all.push(client);
        let subscription = self.join(client, channel, options);
        self.hub.activate(self.now, subscription, Start::Live);
        client
    }

    pub(crate) fn publish(&mut self, channel: &str, payload: &str) -> bool {
        let publication = Publication::new(payload.to_owned().into());
        self.hub.publish(self.now, &name(channel), publication)
    }

    /// Publishes a publication whose payload is its position.
    pub(crate) fn publish_at(&mut self, channel: &str, epoch: &str, offset: u64) {
        let publication = positioned(epoch, offset);
        self.hub.publish(self.now, &name(channel), publication);
    }

    /// Advances the clock and runs everything that becomes due.
    pub(crate) fn pass(&mut self, time: Duration) {
        self.now += time;
        self.hub.handle_timeout(self.now);
    }

    /// Returns the clients that are ready.
    pub(crate) fn ready(&mut self) -> Vec<ClientId> {
        std::iter::from_fn(|| self.hub.poll_ready()).collect()
    }

    /// Takes all output of a client.
    pub(crate) fn take(&mut self, client: ClientId) -> Vec<Seen> {
        let mut all = Vec::new();
        while let Some(seen) = self.take_one(client) {
            all.push(seen);
        }
        all
    }

    pub(crate) fn take_one(&mut self, client: ClientId) -> Option<Seen> {
        self.hub.poll_transmit(self.now, client).map(Seen::from)
    }

    /// Takes all output of a client, and checks that it is the only one that is ready.
    pub(crate) fn deliver(&mut self, client: ClientId) -> Vec<Seen> {
        assert_eq!(self.ready(), [client]);
        self.take(client)
    }
}

impl From<Transmit> for Seen {
    fn from(transmit: Transmit) -> Self {
        match transmit {
            Transmit::Block { block, .. } => {
                Self::Block(String::from_utf8(block.to_vec()).unwrap())
            }
            Transmit::Gap { gap, .. } => Self::Gap(gap),
            Transmit::Slow { missed, .. } => Self::Slow(missed),
            Transmit::Unencodable { .. } => Self::Unencodable,
            other => panic!("unexpected {other:?}"),
        }
    }
}

pub(crate) fn block(text: &str) -> Seen {
    Seen::Block(text.to_owned())
}

pub(crate) fn name(channel: &str) -> ChannelName {
    ChannelName::new(channel).unwrap()
}

pub(crate) fn position(epoch: &str, offset: u64) -> StreamPosition {
    let epoch = Epoch::new(epoch);
    StreamPosition { epoch, offset }
}

pub(crate) fn positioned(epoch: &str, offset: u64) -> Publication {
    let payload = format!("{epoch}{offset}");
    let build = Publication::build(payload.into());
    build.with_position(position(epoch, offset)).finish()
}

pub(crate) fn text() -> SubscriptionOptions {
    SubscriptionOptions::new(TEXT)
}
