//! Sessions of Phoenix clients: handles what only they request.
//!
//! | module | responsibility |
//! | --- | --- |
//! | `join` | makes and ends subscriptions |
//! | `push` | events that clients send |

mod join;
mod push;

use std::{sync::Arc, time::Instant};

use bytes::Bytes;
use linerate_budget::{Account, Share};
use linerate_hub::{ChannelName, ClientId};

use super::{Context, Identity, Refusal, Session, Work, work::PhoenixCompletion};
use crate::{
    channel_map::ChannelMap,
    protocol::{
        codes::{ClientError, Unsubscribe},
        command::{PhoenixAction, PhoenixPlace, PhoenixRef, PhoenixRequest},
        reply::{PhoenixError, PhoenixMessage, ServerMessage},
    },
};

/// The state that only Phoenix clients have.
#[derive(Debug)]
pub(super) struct PhoenixState {
    /// The references of the joins of the client.
    joins: ChannelMap<Option<PhoenixRef>>,
    /// The part of the memory account that long references use.
    share: Share,
}

impl PhoenixState {
    /// Creates the state of a client without joins. Its memory is charged to `account`.
    pub(super) fn new(account: &Account) -> Self {
        Self {
            joins: ChannelMap::default(),
            share: account.share(0),
        }
    }

    /// Returns the reference of the join of a channel, if the client is in it.
    pub(super) fn join_ref(&self, channel: &ChannelName) -> Option<&PhoenixRef> {
        self.joins.get(channel)?.as_ref()
    }

    /// Records that the client has joined a channel.
    pub(super) fn join(&mut self, channel: ChannelName, join_ref: Option<PhoenixRef>) {
        self.joins.insert(channel, join_ref);
        self.charge();
    }

    /// Forgets a channel that the client has left.
    pub(super) fn leave(&mut self, channel: &ChannelName) {
        self.joins.remove(channel);
        self.charge();
    }

    /// Returns what tells the client that it is not in a channel any more.
    pub(super) fn ended(&self, topic: ChannelName, is_error: bool) -> PhoenixMessage {
        PhoenixMessage::Ended {
            join_ref: self.join_ref(&topic).cloned(),
            topic,
            is_error,
        }
    }

    fn charge(&mut self) {
        let references = self.joins.values().flatten();
        let bytes: usize = references.map(PhoenixRef::heap_bytes).sum();
        self.share.set(bytes as u64);
    }
}

impl Session {
    /// Starts a request of a connected client. Returns the operation that completes it, if any.
    pub(super) fn begin_phoenix(
        &mut self,
        context: Context,
        (identity, id): (Arc<Identity>, ClientId),
        request: PhoenixRequest,
    ) -> Result<Option<Work>, Refusal> {
        let PhoenixRequest { place, action } = request;
        match action {
            PhoenixAction::Heartbeat => {
                self.answer(place, Ok(Bytes::new()));
                Ok(None)
            }
            PhoenixAction::Join(payload) => {
                Ok(self.begin_join(context, (identity, id), place, payload))
            }
            PhoenixAction::Leave => {
                self.leave_topic(place);
                Ok(None)
            }
            PhoenixAction::Presence => Ok(self.begin_presence(context, &place.topic)),
            PhoenixAction::Push { event, payload } => {
                Ok(self.begin_push(context, identity, place, (event, payload)))
            }
        }
    }

    /// Completes a request.
    pub(super) fn finish_phoenix(&mut self, now: Instant, completion: PhoenixCompletion) {
        match completion {
            PhoenixCompletion::Handled(place, result) => self.finish_answer(place, result),
            PhoenixCompletion::Joined(place, channel, result) => {
                self.finish_join(now, place, &channel, result);
            }
            PhoenixCompletion::Present(channel, result) => self.finish_presence(channel, result),
        }
    }

    /// Refuses a request that exceeds the rate limit.
    pub(super) fn refuse_excess_phoenix(&mut self, request: &PhoenixRequest) {
        let place = request.place.clone();
        self.answer(place, Err(ClientError::TOO_MANY_REQUESTS.into()));
    }

    /// Ends a subscription, and tells the client whether it is to join again.
    pub(super) fn end_join(&mut self, channel: &ChannelName, unsubscribe: &Unsubscribe) {
        let state = self.protocol_state.phoenix();
        let ended = state.map(|state| state.ended(channel.clone(), unsubscribe.is_resubscribe()));
        if self.leave(channel)
            && let Some(ended) = ended
        {
            self.activity.say(ServerMessage::Phoenix(ended));
        }
    }

    fn finish_answer(&mut self, place: PhoenixPlace, result: Result<Bytes, Refusal>) {
        match result {
            Ok(response) => self.answer(place, Ok(response)),
            Err(Refusal::Disconnect(disconnect)) => self.end(disconnect),
            Err(Refusal::Error(error)) => self.answer(place, Err(error.into())),
        }
    }

    /// Answers a message, if the client wants an answer.
    fn answer(&mut self, place: PhoenixPlace, result: Result<Bytes, PhoenixError>) {
        if place.reference.is_some() {
            let reply = PhoenixMessage::Reply { place, result };
            self.activity.say(ServerMessage::Phoenix(reply));
        }
    }
}

impl From<ClientError> for PhoenixError {
    fn from(error: ClientError) -> Self {
        Self {
            code: Some(error.code),
            reason: error.message,
        }
    }
}
