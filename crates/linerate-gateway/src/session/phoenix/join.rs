//! Joins: the subscriptions of Phoenix clients.

use std::{sync::Arc, time::Instant};

use bytes::Bytes;
use linerate_hub::{ChannelName, ClientId, ClientInfo};
use serde::Deserialize;

use super::super::{
    Completion, Context, Identity, Refusal, Session, Work,
    work::{Candidate, PhoenixCompletion},
};
use crate::protocol::{
    codes::{ClientError, Unsubscribe},
    command::{Command, PhoenixAction, PhoenixPlace, PhoenixRequest, Request, Subscribe},
    phoenix::TOPIC_BYTES_MAX,
    reply::{PhoenixMessage, ServerMessage},
};

/// What a client sends when it joins, as far as the gateway knows it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Params {
    token: String,
}

impl Session {
    /// Starts to join a topic, or tells the client why it may not.
    pub(super) fn begin_join(
        &mut self,
        context: Context,
        (identity, id): (Arc<Identity>, ClientId),
        place: PhoenixPlace,
        payload: Bytes,
    ) -> Option<Work> {
        let channel = match self.check_join(&place.topic) {
            Ok(channel) => channel,
            Err(error) => {
                self.answer(place, Err(error.into()));
                return None;
            }
        };
        let Params { token } = serde_json::from_slice(&payload).unwrap_or_default();
        let wanted = Subscribe {
            channel: place.topic.clone(),
            token,
            data: Some(payload),
            with_join_leave: true,
            ..Subscribe::default()
        };
        Some(Box::pin(async move {
            let candidate = context.prepare_asked(identity, id, channel.clone(), wanted);
            let joined = PhoenixCompletion::Joined(place, channel, candidate.await);
            Completion::Phoenix(joined)
        }))
    }

    /// Checks a topic. A client that joins a topic again leaves it before, as in Phoenix.
    fn check_join(&mut self, topic: &str) -> Result<ChannelName, ClientError> {
        let (bytes, bytes_max) = (topic.len(), TOPIC_BYTES_MAX);
        if bytes > bytes_max {
            let message =
                format!("bad request: topic has {bytes} bytes; at most {bytes_max} are allowed");
            return Err(ClientError::BAD_REQUEST.with_message(message));
        }
        let settings = self.context.gate.shared.settings_full();
        let channel = settings.channel_name(topic)?;
        if self.subscriptions.contains_key(&channel) {
            self.end_join(&channel, &Unsubscribe::SERVER);
        }
        self.check_room_for(&channel)?;
        Ok(channel)
    }

    /// Tells the client whether it has joined, and then who is in the topic.
    pub(super) fn finish_join(
        &mut self,
        now: Instant,
        place: PhoenixPlace,
        channel: &ChannelName,
        candidate: Result<Box<Candidate>, Refusal>,
    ) {
        let joined = candidate.and_then(|candidate| {
            let active = candidate.finish(&self.context, channel, 0)?;
            Ok(self.subscribed(channel, active, false))
        });
        let result = joined.map(|subscribed| {
            let account = &self.context.gate.worker.accounts().subscriptions;
            let state = self.protocol_state.begin_phoenix(account);
            state.join(channel.clone(), place.join_ref.clone());
            subscribed.data.unwrap_or_default()
        });
        let is_joined = result.is_ok();
        self.finish_answer(place, result);
        let settings = self.context.gate.shared.settings_full();
        let options = settings.channel(channel);
        if is_joined && options.presence && options.join_leave && options.allow_presence {
            let place = PhoenixPlace {
                topic: channel.to_string(),
                ..PhoenixPlace::default()
            };
            let action = PhoenixAction::Presence;
            let request = Request::Phoenix(Box::new(PhoenixRequest { place, action }));
            self.enqueue(now, Command { id: 0, request });
        }
    }

    /// Starts to read who is in a topic.
    pub(super) fn begin_presence(&self, context: Context, topic: &str) -> Option<Work> {
        let channel = ChannelName::new(topic).ok()?;
        // The client may have left in the meantime.
        self.subscriptions.get(&channel)?;
        Some(Box::pin(async move {
            let clients = context.clients_in(&channel).await;
            Completion::Phoenix(PhoenixCompletion::Present(channel, clients))
        }))
    }

    /// Tells the client who is in a topic. If this is not known, the client is to join again.
    pub(super) fn finish_presence(
        &mut self,
        topic: ChannelName,
        clients: Result<Vec<ClientInfo>, ClientError>,
    ) {
        match clients {
            Ok(clients) => {
                let state = self.protocol_state.phoenix();
                let join_ref = state.and_then(|state| state.join_ref(&topic)).cloned();
                let presence = PhoenixMessage::Presence {
                    topic,
                    join_ref,
                    clients,
                };
                self.activity.say(ServerMessage::Phoenix(presence));
            }
            Err(_) => self.end_join(&topic, &Unsubscribe::INSUFFICIENT_STATE),
        }
    }

    /// Leaves a topic. The end of an earlier join has been told before.
    pub(super) fn leave_topic(&mut self, place: PhoenixPlace) {
        let channel = self.joined(&place);
        let ended = channel.and_then(|channel| {
            let state = self.protocol_state.phoenix()?;
            Some((state.ended(channel.clone(), false), channel))
        });
        self.answer(place, Ok(Bytes::new()));
        if let Some((ended, channel)) = ended {
            self.leave(&channel);
            self.activity.say(ServerMessage::Phoenix(ended));
        }
    }

    /// Returns the channel of a topic if the client is in it by the join that a message belongs to.
    pub(super) fn joined(&self, place: &PhoenixPlace) -> Option<ChannelName> {
        let channel = ChannelName::new(&place.topic).ok()?;
        self.subscriptions.get(&channel)?;
        let state = self.protocol_state.phoenix()?;
        let join_ref = place.join_ref.as_ref();
        let is_same = join_ref.is_none() || join_ref == state.join_ref(&channel);
        is_same.then_some(channel)
    }
}
