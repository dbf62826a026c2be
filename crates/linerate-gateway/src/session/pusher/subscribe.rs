//! Makes the subscriptions of Pusher clients.

use linerate_hub::{ChannelName, ClientId, ClientInfo};

use super::{
    super::{
        Completion, Context, Identity, Refusal, Session, Work,
        work::{PusherCandidate, PusherCompletion},
    },
    Roster,
    authorization::{Asked, Authorized},
};
use crate::{
    config::PusherAccess,
    protocol::{
        codes::ClientError,
        reply::{PusherMember, PusherMessage, PusherSubscribeError},
    },
    webhook::Happened,
};

impl Session {
    /// Starts to subscribe, or tells the client why it may not.
    pub(super) fn begin_pusher_subscribe(
        &mut self,
        context: Context,
        (identity, id): (&Identity, ClientId),
        asked: &Asked,
    ) -> Option<Work> {
        let (channel, authorized) = match self.check_pusher_subscribe(identity, asked) {
            Ok(checked) => checked,
            Err(error) => {
                self.say_pusher(PusherMessage::SubscribeError(error));
                return None;
            }
        };
        let Authorized { kind, who } = authorized;
        if kind.access == PusherAccess::Presence {
            let roster = Roster::new(&context.gate.worker.accounts().subscriptions);
            let pusher = self.protocol_state.begin_pusher();
            pusher.rosters.insert(channel.clone(), roster);
        }
        Some(Box::pin(async move {
            let ready = context
                .prepare_pusher(id, channel.clone(), (kind, who))
                .await;
            let ready = ready.map(Box::new);
            Completion::Pusher(PusherCompletion::Subscribed(channel, ready))
        }))
    }

    fn check_pusher_subscribe(
        &self,
        identity: &Identity,
        asked: &Asked,
    ) -> Result<(ChannelName, Authorized), PusherSubscribeError> {
        let refused = |kind, error: String, status| PusherSubscribeError {
            channel: asked.channel.clone(),
            kind,
            error,
            status,
        };
        let settings = self.context.gate.shared.settings_full();
        let channel = settings.channel_name(&asked.channel);
        let channel =
            channel.map_err(|error| refused("InvalidChannel", error.message.into_owned(), 400))?;
        if self.has(&channel) {
            let error = ClientError::ALREADY_SUBSCRIBED.message.into_owned();
            return Err(refused("AlreadySubscribed", error, 409));
        }
        let channels_max = settings.config.client.channels_max;
        if self.channels() >= channels_max {
            let error = format!("limit exceeded: at most {channels_max} channels");
            return Err(refused("LimitReached", error, 429));
        }
        let unauthorized = |error: String| refused("AuthError", error, 401);
        let Some(app) = &settings.pusher else {
            return Err(unauthorized(
                "this client protocol is switched off".to_owned(),
            ));
        };
        let authorized = asked.authorize(app, &identity.who);
        let authorized = authorized.map_err(|error| unauthorized(error.to_string()))?;
        Ok((channel, authorized))
    }

    /// Makes the subscription active, or tells the client why it is not.
    pub(super) fn finish_pusher_subscribe(
        &mut self,
        channel: ChannelName,
        ready: Result<Box<PusherCandidate>, Refusal>,
    ) {
        match ready.and_then(|ready| self.activate_pusher(&channel, *ready)) {
            Ok(()) => {}
            Err(Refusal::Disconnect(disconnect)) => self.end(disconnect),
            Err(Refusal::Error(error)) => {
                if let Some(pusher) = self.protocol_state.pusher_mut() {
                    pusher.leave(&channel);
                }
                self.say_pusher(PusherMessage::SubscribeError(of_error(&channel, error)));
            }
        }
    }

    fn activate_pusher(
        &mut self,
        channel: &ChannelName,
        ready: PusherCandidate,
    ) -> Result<(), Refusal> {
        let PusherCandidate {
            candidate,
            who,
            clients,
            last,
        } = ready;
        let members = clients.map(|clients| self.enroll(channel, clients, &who));
        let members = members.transpose()?;
        let active = candidate.finish(&self.context, channel, 0)?;
        let position = active.subscribed.position.clone();
        self.subscribed(channel, active, false);
        self.say_pusher(PusherMessage::Subscribed {
            channel: channel.clone(),
            members,
        });
        match last {
            None => {}
            Some(None) => {
                self.say_pusher(PusherMessage::CacheMiss(channel.clone()));
                let happened = Happened::CacheMiss {
                    channel: channel.clone(),
                };
                let node = self.context.gate.worker.node();
                node.webhooks.record(Some(&who), &happened);
            }
            Some(Some(publication)) => {
                // What follows this position is delivered in any case.
                let is_before = publication.position().zip(position.as_ref());
                let is_before = is_before.is_none_or(|(own, start)| {
                    own.epoch == start.epoch && own.offset <= start.offset
                });
                if is_before {
                    self.say_pusher(PusherMessage::Event {
                        channel: channel.clone(),
                        publication,
                    });
                }
            }
        }
        Ok(())
    }

    /// Completes the list of the users in a presence channel, and returns them.
    fn enroll(
        &mut self,
        channel: &ChannelName,
        clients: Vec<ClientInfo>,
        who: &ClientInfo,
    ) -> Result<Vec<PusherMember>, ClientError> {
        let settings = self.context.gate.shared.settings_full();
        let users_max = settings.config.pusher.presence_members_max;
        let pusher = self.protocol_state.pusher_mut();
        let rosters = pusher.map(|pusher| &mut pusher.rosters);
        let Some(roster) = rosters.and_then(|rosters| rosters.get_mut(channel)) else {
            return Err(ClientError::INTERNAL);
        };
        let members = roster.complete(clients, who, users_max);
        members.map_err(|error| ClientError::LIMIT_EXCEEDED.with_message(error.to_string()))
    }
}

/// Converts the reason why the gateway refuses a subscription.
fn of_error(channel: &ChannelName, error: ClientError) -> PusherSubscribeError {
    let (kind, status) = match error.code {
        code if code == ClientError::PERMISSION_DENIED.code => ("AuthError", 403),
        code if code == ClientError::LIMIT_EXCEEDED.code => ("LimitReached", 429),
        _ if error.is_temporary => ("ServerError", 503),
        _ => ("SubscriptionError", 400),
    };
    PusherSubscribeError {
        channel: channel.to_string(),
        kind,
        error: error.message.into_owned(),
        status,
    }
}
