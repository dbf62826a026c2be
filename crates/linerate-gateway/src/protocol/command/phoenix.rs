//! Requests that only Phoenix clients make.

use std::borrow::Cow;

use bytes::Bytes;
use serde::{Deserialize, Serialize, Serializer};
use smol_str::SmolStr;

/// A reference that a client gives to a message or to a join, and that answers repeat.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "WireRef")]
pub(crate) enum PhoenixRef {
    /// A number, as some libraries send it.
    Number(i64),
    /// A string, as the npm package sends it.
    Text(SmolStr),
}

/// A reference as JSON.
#[derive(Deserialize)]
#[serde(untagged)]
enum WireRef {
    Number(i64),
    Text(String),
}

/// A message of a Phoenix client.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PhoenixRequest {
    /// Where the answer belongs.
    pub(crate) place: PhoenixPlace,
    /// What the client wants.
    pub(crate) action: PhoenixAction,
}

/// Which message is answered, and where it belongs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PhoenixPlace {
    /// The reference of the join that the message belongs to.
    pub(crate) join_ref: Option<PhoenixRef>,
    /// The reference of the message; without one, it is not answered.
    pub(crate) reference: Option<PhoenixRef>,
    /// The topic, which is a channel.
    pub(crate) topic: String,
}

/// What a Phoenix client wants.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PhoenixAction {
    /// Asks for a sign of life.
    Heartbeat,
    /// Joins the topic, with a payload.
    Join(Bytes),
    /// Leaves the topic.
    Leave,
    /// Is told who is in the topic. The server requests this for a client that has joined.
    Presence,
    /// Sends an event to the topic.
    Push {
        /// The name of the event.
        event: String,
        payload: Bytes,
    },
}

impl PhoenixRef {
    /// Returns the reference as binary messages have it.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Number(number) => Cow::Owned(number.to_string()),
            Self::Text(text) => Cow::Borrowed(text),
        }
    }

    /// Returns the memory that the reference takes besides its own size, in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Self::Text(text) if text.is_heap_allocated() => text.len(),
            _ => 0,
        }
    }
}

impl From<WireRef> for PhoenixRef {
    fn from(wire: WireRef) -> Self {
        match wire {
            WireRef::Number(number) => Self::Number(number),
            WireRef::Text(text) => Self::Text(text.into()),
        }
    }
}

impl Serialize for PhoenixRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_i64(*number),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl PartialEq for PhoenixRef {
    /// A client that sends numbers as JSON sends their digits in binary messages.
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl PhoenixRequest {
    /// Returns the name of the operation as used in metrics.
    pub(crate) const fn name(&self) -> &'static str {
        match self.action {
            PhoenixAction::Heartbeat => "ping",
            PhoenixAction::Join(_) => "subscribe",
            PhoenixAction::Leave => "unsubscribe",
            PhoenixAction::Presence => "presence",
            PhoenixAction::Push { .. } => "push",
        }
    }

    /// Returns the channel, if the request is a subscription.
    pub(crate) fn subscribed_channel(&self) -> Option<&str> {
        matches!(self.action, PhoenixAction::Join(_)).then_some(&*self.place.topic)
    }

    /// Returns the memory that the request takes, in bytes; small parts are left out.
    pub(crate) fn memory_bytes(&self) -> usize {
        let payload = match &self.action {
            PhoenixAction::Heartbeat | PhoenixAction::Leave | PhoenixAction::Presence => 0,
            PhoenixAction::Join(payload) => payload.len(),
            PhoenixAction::Push { event, payload } => event.len() + payload.len(),
        };
        let PhoenixPlace {
            join_ref,
            reference,
            topic,
        } = &self.place;
        let references = [join_ref, reference].into_iter().flatten();
        let references: usize = references.map(PhoenixRef::heap_bytes).sum();
        size_of::<Self>() + references + topic.len() + payload
    }
}
