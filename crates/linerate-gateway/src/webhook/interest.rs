//! Which places webhooks want to be told of: channels with subscribers, and members of channels.

use linerate_hub::ChannelName;

use crate::{
    channel_pattern::matches_any,
    config::{WebhookEvent, WebhookOptions},
};

/// What all webhooks together want to be told of places.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Interest(Vec<InterestOfOne>);

/// What one webhook wants to be told of places.
#[derive(Clone, Debug, Eq, PartialEq)]
struct InterestOfOne {
    channels: bool,
    members: bool,
    patterns: Vec<String>,
}

impl Interest {
    /// Returns what the webhooks with these options want to be told.
    pub(super) fn of<'a>(all: impl Iterator<Item = &'a WebhookOptions>) -> Self {
        let of_one = |options: &WebhookOptions| {
            let wants =
                |kinds: [WebhookEvent; 2]| kinds.iter().any(|kind| options.events().contains(kind));
            let interest = InterestOfOne {
                channels: wants([WebhookEvent::Occupied, WebhookEvent::Vacated]),
                members: wants([WebhookEvent::MemberAdded, WebhookEvent::MemberRemoved]),
                patterns: options.channels.clone(),
            };
            (interest.channels || interest.members).then_some(interest)
        };
        Self(all.filter_map(of_one).collect())
    }

    /// Returns whether no webhook wants to be told of any place.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether a webhook wants to be told of channels with subscribers.
    pub(crate) fn wants_channels(&self) -> bool {
        self.0.iter().any(|one| one.channels)
    }

    /// Returns whether a webhook wants to be told of members of channels.
    pub(crate) fn wants_members(&self) -> bool {
        self.0.iter().any(|one| one.members)
    }

    /// Returns whether a webhook wants to be told when this channel has subscribers.
    pub(crate) fn includes_channel(&self, channel: &ChannelName) -> bool {
        let mut all = self.0.iter();
        all.any(|one| one.channels && includes(&one.patterns, channel))
    }

    /// Returns whether a webhook wants to be told of the members of this channel.
    pub(crate) fn includes_members(&self, channel: &ChannelName) -> bool {
        let mut all = self.0.iter();
        all.any(|one| one.members && includes(&one.patterns, channel))
    }
}

/// Returns whether `patterns` include a channel, as all of them do if there are none.
pub(super) fn includes(patterns: &[String], channel: &ChannelName) -> bool {
    patterns.is_empty() || matches_any(patterns, channel.as_str())
}
