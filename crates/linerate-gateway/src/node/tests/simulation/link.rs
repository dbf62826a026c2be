//! A node's link to the server: events in transit, and what happens to them when the link is cut.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use linerate_broker::{
    BoxFuture, Broker, BrokerError, Event, Gap, GapReason, History, HistoryRequest, LinkState,
    Publish, Published, StreamOptions,
};
use linerate_hub::{ChannelName, StreamPosition};

use parking_lot::{Mutex, MutexGuard};

use super::server::Server;

/// A link, which implements the broker.
#[derive(Debug)]
pub(super) struct Link {
    server: Arc<Mutex<Server>>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    is_cut: bool,
    /// The subscribed channels, each with the last position delivered to the node.
    delivered: BTreeMap<ChannelName, StreamPosition>,
    underway: VecDeque<Event>,
    /// How long answers take, in milliseconds.
    delay_ms: u64,
}

impl Link {
    pub(super) fn new(server: Arc<Mutex<Server>>) -> Arc<Self> {
        let state = Mutex::default();
        Arc::new(Self { server, state })
    }

    pub(super) fn set_delay(&self, delay_ms: u64) {
        self.state().delay_ms = delay_ms;
    }

    /// Sends a publication over the link, if the node is subscribed to its channel.
    pub(super) fn send(&self, event: &Event) {
        let mut state = self.state();
        if let Event::Publication { channel, .. } = event
            && !state.is_cut
            && state.delivered.contains_key(channel)
        {
            state.underway.push_back(event.clone());
        }
    }

    /// Removes up to `count` events in transit, which arrive at the node.
    pub(super) fn arrive(&self, count: usize) -> Vec<Event> {
        let mut state = self.state();
        let state = &mut *state;
        let count = count.min(state.underway.len());
        let events: Vec<Event> = state.underway.drain(..count).collect();
        for event in &events {
            if let Event::Publication {
                channel,
                publication,
            } = event
                && let Some(delivered) = state.delivered.get_mut(channel)
                && let Some(position) = publication.position()
            {
                *delivered = position.clone();
            }
        }
        events
    }

    /// Cuts the link; all events in transit are lost.
    pub(super) fn cut(&self) -> Event {
        let mut state = self.state();
        state.is_cut = true;
        state.underway.clear();
        Event::Link(LinkState::Deaf)
    }

    /// Restores the link. What the streams have kept in the meantime is sent first, preceded by a
    /// gap if it is incomplete.
    pub(super) fn mend(&self) -> Option<Event> {
        let server = self.server.lock();
        let mut state = self.state();
        let state = &mut *state;
        if !std::mem::take(&mut state.is_cut) {
            return None;
        }
        for (channel, delivered) in &state.delivered {
            if !Server::keeps(channel) {
                state.underway.push_back(Event::Gap(Gap {
                    channels: Some(vec![channel.clone()]),
                    lasted: Duration::from_secs(1),
                    reason: GapReason::LinkLost,
                }));
                continue;
            }
            let request = HistoryRequest {
                since: Some(delivered.clone()),
                ..HistoryRequest::default()
            };
            let missed = server.history(channel, &request);
            if !missed.is_contiguous {
                let reason = match delivered.epoch == missed.newest.epoch {
                    true => GapReason::LinkLost,
                    false => GapReason::StreamReset,
                };
                state.underway.push_back(Event::Gap(Gap {
                    channels: Some(vec![channel.clone()]),
                    lasted: Duration::from_secs(1),
                    reason,
                }));
            }
            let publications = missed.publications.into_iter();
            state
                .underway
                .extend(publications.map(|publication| Event::Publication {
                    channel: channel.clone(),
                    publication,
                }));
        }
        let round_trip = Duration::from_millis(1);
        Some(Event::Link(LinkState::Up { round_trip }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Waits for the delay of the link, half of it before `ask` and half of it after.
    async fn ask<T>(&self, ask: impl FnOnce(&mut State, &Server) -> T) -> Result<T, BrokerError> {
        let delay = Duration::from_millis(self.state().delay_ms);
        tokio::time::sleep(delay / 2).await;
        let answer = {
            let server = self.server.lock();
            let mut state = self.state();
            match state.is_cut {
                true => return Err(away()),
                false => ask(&mut state, &server),
            }
        };
        tokio::time::sleep(delay / 2).await;
        Ok(answer)
    }
}

fn away() -> BrokerError {
    let reason = "the link is cut".to_owned();
    BrokerError::Away { reason }
}

impl Broker for Link {
    fn publish<'a>(
        &'a self,
        _: &'a ChannelName,
        _: Publish,
    ) -> BoxFuture<'a, Result<Published, BrokerError>> {
        Box::pin(async { Err(away()) })
    }

    fn subscribe<'a>(
        &'a self,
        channel: &'a ChannelName,
        _: StreamOptions,
    ) -> BoxFuture<'a, Result<(), BrokerError>> {
        Box::pin(self.ask(move |state, server| {
            let newest = server.newest(channel);
            state.delivered.entry(channel.clone()).or_insert(newest);
        }))
    }

    fn unsubscribe<'a>(&'a self, channel: &'a ChannelName) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let mut state = self.state();
            state.delivered.remove(channel);
            let is_other = |event: &Event| match event {
                Event::Publication { channel: of, .. } => of != channel,
                _ => true,
            };
            state.underway.retain(is_other);
        })
    }

    fn history<'a>(
        &'a self,
        channel: &'a ChannelName,
        _: StreamOptions,
        request: HistoryRequest,
    ) -> BoxFuture<'a, Result<History, BrokerError>> {
        Box::pin(self.ask(move |_, server| server.history(channel, &request)))
    }

    fn remove_history<'a>(
        &'a self,
        _: &'a ChannelName,
        _: StreamOptions,
    ) -> BoxFuture<'a, Result<(), BrokerError>> {
        Box::pin(async { Err(BrokerError::NoHistory) })
    }

    fn send_control<'a>(
        &'a self,
        _: Option<&'a str>,
        _: Bytes,
    ) -> BoxFuture<'a, Result<(), BrokerError>> {
        Box::pin(async { Ok(()) })
    }

    fn node(&self) -> &str {
        "simulated"
    }

    fn is_pattern(&self, _: &ChannelName) -> bool {
        false
    }

    fn name(&self) -> &'static str {
        "simulation"
    }

    fn probe_write(&self) -> BoxFuture<'_, Result<(), BrokerError>> {
        Box::pin(async { Err(away()) })
    }

    fn link(&self) -> LinkState {
        LinkState::Deaf
    }

    fn shut_down(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}
