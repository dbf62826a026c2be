//! Handles events from the node and the worker.

use std::time::{Instant, SystemTime};

use bytes::Bytes;
use linerate_hub::ChannelName;

use super::{Completion, Event, Job, Session, Stage, Work};
use crate::{
    auth::{SubscriptionClaims, TokenId},
    node::Notice,
    protocol::{
        codes::{Disconnect, Unsubscribe},
        command::Subscribe,
        reply::{Push, ServerMessage},
    },
};

impl Session {
    /// Handles an event collected by the outlet.
    pub(crate) fn handle_event(&mut self, now: Instant, event: Event) {
        match event {
            Event::Gap(channel) => self.handle_gap(&channel),
            Event::Notice(notice) => self.handle_notice(now, notice),
            Event::Slow => self.end(Disconnect::SLOW),
            Event::Unencodable(channel) => {
                let reason = format!("inappropriate protocol: payload in {channel}");
                self.end(Disconnect::INAPPROPRIATE_PROTOCOL.with_reason(reason));
            }
        }
    }

    fn handle_gap(&mut self, channel: &ChannelName) {
        match self.subscriptions.get(channel) {
            Some(subscription) if !subscription.ends_with_gap => {}
            // SDKs treat the end of a server-side subscription as final.
            Some(subscription) if subscription.is_of_server => {
                self.end(Disconnect::INSUFFICIENT_STATE);
            }
            Some(_) => self.unsubscribe(channel, Unsubscribe::INSUFFICIENT_STATE),
            None => {}
        }
    }

    fn handle_notice(&mut self, now: Instant, notice: Notice) {
        match notice {
            Notice::Disconnect(disconnect) => self.end(disconnect),
            Notice::Join { channel, info } if self.hides_move(&channel, &info, true) => {}
            Notice::Leave { channel, info } if self.hides_move(&channel, &info, false) => {}
            Notice::Join { channel, info } => self.push(Push::Join { channel, info }),
            Notice::Leave { channel, info } => self.push(Push::Leave { channel, info }),
            Notice::LeaveNamespace { namespace } => self.remove_from_namespace(namespace),
            Notice::Refresh {
                expires,
                is_expired,
            } => self.refresh(now, expires, is_expired),
            Notice::Revoked => self.end_revoked(),
            Notice::Subscribe { channel, info } => {
                self.activity.add(Job::Subscribe { channel, info });
            }
            Notice::SubscriptionCount { channel, count } => self.say_count(channel, count),
            Notice::Unsubscribe { channel, why } => self.unsubscribe(&channel, why),
        }
    }

    /// Starts a subscription that the application requests for the client.
    pub(super) fn begin_server_subscribe(
        &mut self,
        channel: ChannelName,
        info: Option<Bytes>,
    ) -> Option<Work> {
        let Stage::Connected { identity, member } = &self.stage else {
            return None;
        };
        let channels_max = self
            .context
            .gate
            .shared
            .settings()
            .config
            .client
            .channels_max;
        let is_full = self.channels() >= channels_max;
        let is_possible =
            self.commands.has_server_subscriptions && self.serves_namespace_of(&channel);
        if is_full || self.has(&channel) || !is_possible {
            return None;
        }
        let (identity, id) = (identity.clone(), member.id());
        let context = self.context.clone();
        Some(Box::pin(async move {
            let claims = SubscriptionClaims {
                info,
                ..SubscriptionClaims::default()
            };
            let wanted = Subscribe::default();
            let candidate = context.prepare(&identity, id, channel.clone(), &wanted, Some(claims));
            let candidate = candidate.await.map(Box::new);
            Completion::Subscribed(channel, candidate)
        }))
    }

    /// Tells the worker that a subscription that the application has requested is made, or cannot
    /// be.
    pub(super) fn end_entering(&self, channel: &ChannelName) {
        if let Some(client) = self.client() {
            self.context.gate.worker.has_entered(client, channel);
        }
    }

    /// Ends the session or the subscriptions whose tokens are now revoked. SDKs reconnect and are
    /// told to get new tokens.
    fn end_revoked(&mut self) {
        let Stage::Connected { identity, .. } = &self.stage else {
            return;
        };
        let (gate, user) = (&self.context.gate, identity.user());
        let is_revoked = |token: Option<&TokenId>| gate.check_revoked(user, token).is_err();
        if is_revoked(identity.token()) {
            return self.end(Disconnect::TOKEN_REVOKED);
        }
        let known = self.subscriptions.iter();
        let revoked = known.filter(|(_, subscription)| is_revoked(subscription.token()));
        let revoked: Vec<_> = revoked.map(|(channel, _)| channel.clone()).collect();
        for channel in revoked {
            self.unsubscribe(&channel, Unsubscribe::TOKEN_REVOKED);
        }
    }

    fn push(&mut self, push: Push) {
        self.activity.say(ServerMessage::Push(push));
    }

    fn refresh(&mut self, now: Instant, expires: Option<SystemTime>, is_expired: bool) {
        if is_expired {
            return self.end(Disconnect::EXPIRED);
        }
        let left = |at: SystemTime| at.duration_since(SystemTime::now()).unwrap_or_default();
        self.set_expiry(now, expires.map(left));
    }
}
