//! What happens when a connection or subscription expires: a backend renews it, or it ends.
//!
//! A backend that does not answer is asked again until the grace period is over; then what has
//! expired ends.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use linerate_hub::ChannelName;

use super::{
    Completion, Session, Stage, Terms, Work, activity::Job, identity::end_of, renewals::Next,
};
use crate::{
    backend::{Backend, Renewal},
    protocol::codes::{Disconnect, Refusal, Unsubscribe},
};

impl Session {
    /// Sets when the connection expires, `ttl` from now.
    pub(super) fn set_expiry(&mut self, now: Instant, ttl: Option<Duration>) {
        let grace = self.context.gate.grace(None);
        self.deadlines.set_expiry(end_of(now, ttl, grace));
    }

    /// Handles that the connection has expired.
    pub(super) fn expire(&mut self, now: Instant) {
        let grace = self.refresh_grace();
        let is_renewable = self.renewing_backend(None).is_some();
        let started = is_renewable.then(|| self.renewals.start(now, grace));
        match started.flatten() {
            Some(over) => {
                self.deadlines.set_expiry(Some(over));
                self.activity.add(Job::Renew(None));
            }
            None => self.end(Disconnect::EXPIRED),
        }
    }

    /// Handles that a subscription has expired.
    pub(super) fn expire_subscription(&mut self, now: Instant, channel: &ChannelName) {
        let grace = self.refresh_grace();
        let is_renewable = self.renewing_backend(Some(channel)).is_some();
        let started = match self.terms(channel) {
            Some(terms) if is_renewable => {
                let over = terms.renewals.start(now, grace);
                terms.expiry = over.or(terms.expiry);
                over
            }
            _ => None,
        };
        match started {
            Some(_) => self.activity.add(Job::Renew(Some(channel.clone()))),
            None => self.unsubscribe(channel, Unsubscribe::EXPIRED),
        }
    }

    /// Starts to ask the backend.
    pub(super) fn begin_renewal(&mut self, channel: Option<ChannelName>) -> Option<Work> {
        let Stage::Connected { identity, .. } = &self.stage else {
            return None;
        };
        let backend = self.renewing_backend(channel.as_ref())?;
        let (identity, context) = (identity.clone(), self.context.clone());
        Some(Box::pin(async move {
            let visitor = context.visitor();
            let renewed = visitor.renew(backend, &identity, channel.as_ref()).await;
            Completion::Renewed(channel, renewed)
        }))
    }

    /// Handles the answer of the backend.
    pub(super) fn renewed(
        &mut self,
        now: Instant,
        channel: Option<&ChannelName>,
        result: Result<Renewal, Refusal>,
    ) {
        let grace = self.refresh_grace();
        let renewals = match channel {
            None => &mut self.renewals,
            // The subscription may have ended in the meantime.
            Some(channel) => match self.terms(channel) {
                Some(terms) => &mut terms.renewals,
                None => return,
            },
        };
        let next = renewals.finish(now, grace, &result);
        if let Err(Refusal::Disconnect(disconnect)) = result {
            return self.end(disconnect);
        }
        match next {
            Next::Renewed(at) => self.expires_at(channel, at),
            Next::Retry(at) => self.expires_at(channel, Some(at)),
            Next::Over => match channel {
                None => self.end(Disconnect::EXPIRED),
                Some(channel) => self.unsubscribe(channel, Unsubscribe::EXPIRED),
            },
        }
    }

    fn expires_at(&mut self, channel: Option<&ChannelName>, at: Option<Instant>) {
        match channel {
            None => self.deadlines.set_expiry(at),
            Some(channel) => {
                if let Some(terms) = self.terms(channel) {
                    terms.expiry = at;
                }
            }
        }
    }

    fn terms(&mut self, channel: &ChannelName) -> Option<&mut Terms> {
        self.subscriptions.get_mut(channel)?.terms.as_deref_mut()
    }

    /// Returns the backend that renews the connection or a subscription, if there is one.
    fn renewing_backend(&self, channel: Option<&ChannelName>) -> Option<Arc<Backend>> {
        self.context.gate.renewing_backend(channel)
    }

    fn refresh_grace(&self) -> Duration {
        let settings = self.context.gate.shared.settings();
        settings.config.client.refresh_grace
    }
}
