//! State that outlives a link: the channels that the node wants, the positions of plain channels,
//! and the state of the link.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant as Clock},
};

use foldhash::{HashMap, HashMapExt};
use linerate_hub::{ChannelName, Publication, publication::PublicationBuilder};
use tokio::{sync::watch, time::Instant};

use super::{
    catch_up::Progress,
    home::DurableChannel,
    link::Link,
    subject::{self, SubjectError, Subjects},
};
use crate::{
    broker::BrokerError,
    event::{Event, Gap, GapReason, LinkState},
    incarnation,
    ingest::Ingest,
    lock::lock,
    options::BrokerOptions,
    request::{History, HistoryRequest, StreamOptions},
    sequencer::Sequencer,
};

/// State that the broker and its links share.
pub(super) struct NatsState {
    pub(super) options: BrokerOptions,
    pub(super) subjects: Subjects,
    pub(super) ingest: Arc<dyn Ingest>,
    pub(super) node: String,
    state: Mutex<State>,
    link: watch::Sender<CurrentLink>,
}

/// The current link, if there is one.
#[derive(Clone, Debug)]
pub(super) enum CurrentLink {
    Down {
        /// How the last attempt to connect ended.
        reason: String,
    },
    ShutDown,
    Up(Arc<Link>),
}

/// How a channel is subscribed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum SubscriptionKind {
    Durable(DurableChannel),
    Pattern {
        subject: String,
    },
    Plain {
        subject: String,
        options: StreamOptions,
    },
}

/// A channel that the node wants to receive.
#[derive(Clone, Debug)]
pub(super) struct Interest {
    pub(super) kind: SubscriptionKind,
    /// How far earlier links have delivered it, if it is durable.
    pub(super) delivered: Option<Progress>,
}

struct State {
    sequencer: Sequencer,
    wanted: HashMap<ChannelName, Interest>,
    link: LinkState,
    /// When the link was last known to work.
    heard: Option<Clock>,
}

impl NatsState {
    pub(super) fn new(
        options: BrokerOptions,
        ingest: Arc<dyn Ingest>,
    ) -> Result<Self, SubjectError> {
        let node = incarnation::random();
        let sequencer = Sequencer::new(options.sequencer, &node);
        let reason = "not connected yet".to_owned();
        Ok(Self {
            subjects: Subjects::new(&options.prefix)?,
            options,
            ingest,
            node,
            state: Mutex::new(State {
                sequencer,
                wanted: HashMap::new(),
                link: LinkState::Deaf,
                heard: None,
            }),
            link: watch::Sender::new(CurrentLink::Down { reason }),
        })
    }

    /// Returns how to subscribe to a channel.
    pub(super) fn kind(
        &self,
        channel: &ChannelName,
        options: StreamOptions,
    ) -> Result<SubscriptionKind, SubjectError> {
        let subject = self.subjects.of_subscription(channel)?;
        if subject::is_pattern(channel.as_str()) {
            return Ok(SubscriptionKind::Pattern { subject });
        }
        Ok(match options.has_stream() {
            true => SubscriptionKind::Durable(DurableChannel {
                channel: channel.clone(),
                subject,
                options,
            }),
            false => SubscriptionKind::Plain { subject, options },
        })
    }

    /// Records that a channel is wanted, on this link and all later ones.
    pub(super) fn add_interest(&self, channel: &ChannelName, kind: SubscriptionKind) {
        let mut state = lock(&self.state);
        if matches!(kind, SubscriptionKind::Plain { .. }) {
            state.sequencer.hold(Instant::now(), channel);
        }
        let wanted = state.wanted.get(channel);
        if wanted.is_none_or(|wanted| wanted.kind != kind) {
            let delivered = None;
            state
                .wanted
                .insert(channel.clone(), Interest { kind, delivered });
        }
    }

    /// Records that a channel is no longer wanted.
    pub(super) fn remove_interest(&self, channel: &ChannelName) {
        let mut state = lock(&self.state);
        state.wanted.remove(channel);
        state.sequencer.close(channel.as_str());
    }

    pub(super) fn interest(&self, channel: &ChannelName) -> Option<Interest> {
        lock(&self.state).wanted.get(channel).cloned()
    }

    pub(super) fn interests(&self) -> Vec<(ChannelName, Interest)> {
        let state = lock(&self.state);
        let all = state.wanted.iter();
        all.map(|(channel, wanted)| (channel.clone(), wanted.clone()))
            .collect()
    }

    pub(super) fn set_delivered(&self, channel: &ChannelName, delivered: &Progress) {
        if let Some(wanted) = lock(&self.state).wanted.get_mut(channel) {
            wanted.delivered = Some(delivered.clone());
        }
    }

    /// Numbers a publication that arrived in a plain channel.
    pub(super) fn number(
        &self,
        now: Instant,
        channel: &ChannelName,
        options: StreamOptions,
        publication: PublicationBuilder,
    ) -> Publication {
        lock(&self.state)
            .sequencer
            .publish(now, channel, options, publication)
    }

    /// Begins a new epoch in a plain channel.
    pub(super) fn reset_channel(&self, channel: &ChannelName) {
        lock(&self.state).sequencer.reset_channel(channel.as_str());
    }

    pub(super) fn plain_history(&self, channel: &ChannelName, request: &HistoryRequest) -> History {
        lock(&self.state)
            .sequencer
            .history(Instant::now(), channel.as_str(), request)
    }

    pub(super) fn remove_plain_history(&self, channel: &ChannelName) {
        lock(&self.state).sequencer.remove_history(channel.as_str());
    }

    /// Records that all subscriptions are in effect, and returns the events to report to the node.
    ///
    /// Durable channels are not part of the gap, because their streams show what was missed.
    pub(super) fn handle_established(&self, round_trip: Duration, ended: GapReason) -> Vec<Event> {
        let mut state = lock(&self.state);
        let link = LinkState::Up { round_trip };
        let heard = state.heard.replace(Clock::now());
        state.link = link;
        let mut events = Vec::new();
        if let Some(heard) = heard {
            state.sequencer.reset();
            let others = state.wanted.iter();
            let others = others.filter(|(_, wanted)| wanted.kind.durable().is_none());
            let others: Vec<_> = others.map(|(channel, _)| channel.clone()).collect();
            if !others.is_empty() || state.wanted.is_empty() {
                let is_all = others.len() == state.wanted.len();
                events.push(Event::Gap(Gap {
                    channels: (!is_all).then_some(others),
                    lasted: heard.elapsed(),
                    reason: ended,
                }));
            }
        }
        events.push(Event::Link(link));
        events
    }

    /// Stores the result of a probe.
    pub(super) fn set_state(&self, link: LinkState) {
        let mut state = lock(&self.state);
        state.link = link;
        if matches!(link, LinkState::Up { .. }) {
            state.heard = Some(Clock::now());
        }
    }

    /// Returns the state of the link. It is also deaf if no probe has succeeded for too long.
    pub(super) fn link_state(&self) -> LinkState {
        let state = lock(&self.state);
        let silence_max = self.options.probe_interval + 2 * self.options.probe_timeout;
        let is_stale = state
            .heard
            .is_none_or(|heard| heard.elapsed() > silence_max);
        match is_stale {
            true => LinkState::Deaf,
            false => state.link,
        }
    }

    /// Sets the current link.
    pub(super) fn set_current(&self, current: CurrentLink) {
        self.link.send_modify(|link| {
            if !matches!(link, CurrentLink::ShutDown) {
                *link = current;
            }
        });
    }

    pub(super) fn is_shut_down(&self) -> bool {
        matches!(*self.link.borrow(), CurrentLink::ShutDown)
    }

    /// Waits until the broker is shut down.
    pub(super) async fn shut_down(&self) {
        let mut link = self.link.subscribe();
        // This fails only when `self` is gone.
        let _ = link
            .wait_for(|link| matches!(link, CurrentLink::ShutDown))
            .await;
    }

    /// Returns the current link.
    pub(super) fn current(&self) -> Result<Arc<Link>, BrokerError> {
        self.link.borrow().link()
    }

    /// Waits for a link other than `but`.
    pub(super) async fn next_link(
        &self,
        but: Option<&Arc<Link>>,
    ) -> Result<Arc<Link>, BrokerError> {
        let mut link = self.link.subscribe();
        let is_other = |current: &CurrentLink| match current {
            CurrentLink::Down { .. } => false,
            CurrentLink::ShutDown => true,
            CurrentLink::Up(link) => but.is_none_or(|but| !Arc::ptr_eq(link, but)),
        };
        match link.wait_for(is_other).await {
            Ok(current) => current.link(),
            Err(_) => Err(BrokerError::shut_down()),
        }
    }
}

impl CurrentLink {
    fn link(&self) -> Result<Arc<Link>, BrokerError> {
        match self {
            Self::Down { reason } => Err(BrokerError::away(reason)),
            Self::ShutDown => Err(BrokerError::shut_down()),
            Self::Up(link) => Ok(Arc::clone(link)),
        }
    }
}

impl SubscriptionKind {
    /// Returns the durable channel, if it is one.
    pub(super) fn durable(&self) -> Option<&DurableChannel> {
        match self {
            Self::Durable(durable) => Some(durable),
            Self::Pattern { .. } | Self::Plain { .. } => None,
        }
    }

    /// Returns the subjects to subscribe to.
    pub(super) fn subjects(&self) -> Vec<String> {
        match self {
            Self::Durable(durable) => vec![subject::live(&durable.subject)],
            Self::Pattern { subject } => vec![subject.clone(), subject::live_pattern(subject)],
            Self::Plain { subject, .. } => vec![subject.clone()],
        }
    }
}
