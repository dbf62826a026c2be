//! The lease of this node: its last beat, and the generation under which it stores presence.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;

use super::{link::Link, presence::PresenceLease, state::NatsState};
use crate::{
    broker::BrokerError,
    event::Event,
    registry::{Beat, LEASE},
};

/// Entries of ended leases are searched for at least after this many beats.
const BEATS_A_SWEEP: u32 = 20;

/// The lease of this node.
#[derive(Debug, Default)]
pub(super) struct NodeLease {
    /// The number of the last beat and when it was sent. `None` if it is unknown whether the server
    /// has stored it.
    last: Option<(u64, Instant)>,
    /// The number of nodes at the last beat.
    nodes: usize,
    beats_since_sweep: u32,
    presence: Generation,
    occupancy: Generation,
}

/// What a node stores under its lease until it removes everything and stores it again.
#[derive(Debug, Default)]
struct Generation {
    number: u64,
    /// True once the server knows that the generation stores something.
    has_begun: bool,
}

impl NodeLease {
    /// Renews the lease.
    pub(super) async fn beat(
        &mut self,
        shared: &Arc<NatsState>,
        link: &Arc<Link>,
        details: Bytes,
    ) -> Result<Beat, BrokerError> {
        let (subjects, sent) = (&shared.subjects, Instant::now());
        let last = self.last.take().map(|(number, _)| number);
        let beat = link.streams.beat(subjects, &shared.node, details, last);
        let (number, beat) = link.answer(beat).await?;
        self.last = Some((number, sent));
        self.beats_since_sweep += 1;
        // A node that has ended changes the number, unless another one has joined.
        if beat.is_new || beat.nodes != self.nodes || self.beats_since_sweep == BEATS_A_SWEEP {
            self.beats_since_sweep = 0;
            if let Err(error) = link.answer(link.streams.sweep_presence(subjects)).await {
                tracing::debug!(%error, "cannot remove the presence of nodes that have ended");
            }
            if self.occupancy.has_begun {
                tokio::spawn(sweep_occupancy(shared.clone(), link.clone()));
            }
        }
        self.nodes = beat.nodes;
        Ok(Beat {
            has_lost_presence: beat.is_new && (self.presence.has_begun || self.occupancy.has_begun),
            ..beat
        })
    }

    /// Returns the generation under which to store presence, and tells the server when it begins.
    pub(super) async fn begin_presence(
        &mut self,
        shared: &NatsState,
        link: &Link,
    ) -> Result<u64, BrokerError> {
        self.check_registered()?;
        if !self.presence.has_begun {
            let lease = shared.presence_lease(self.presence.number);
            let begun = link.streams.begin_presence(&shared.subjects, lease);
            link.answer(begun).await?;
            self.presence.has_begun = true;
        }
        Ok(self.presence.number)
    }

    /// Begins a new generation, and removes what was stored under the current one.
    pub(super) async fn reset_presence(
        &mut self,
        shared: &NatsState,
        link: Result<Arc<Link>, BrokerError>,
    ) -> Result<(), BrokerError> {
        let Some(before) = self.presence.end() else {
            return Ok(());
        };
        // Other nodes also remove the entries of an earlier generation.
        let link = link?;
        let entries = shared.subjects.presence_of_lease(&shared.node, before);
        let removed = link.streams.remove_entries(&shared.subjects, entries);
        link.answer(removed).await
    }

    /// Returns the lease under which to occupy names, and tells the server when it begins.
    pub(super) async fn begin_occupancy(
        &mut self,
        shared: &NatsState,
        link: &Link,
    ) -> Result<String, BrokerError> {
        self.check_registered()?;
        let lease = format!("{}_{}", shared.node, self.occupancy.number);
        if !self.occupancy.has_begun {
            let begun = link.streams.begin_occupancy(&shared.subjects, &lease);
            link.answer(begun).await?;
            self.occupancy.has_begun = true;
        }
        Ok(lease)
    }

    /// Begins a new generation. Other nodes, or this one, remove the names of the one before.
    pub(super) fn reset_occupancy(&mut self) {
        self.occupancy.end();
        // Look for them at the next beat.
        self.beats_since_sweep = BEATS_A_SWEEP - 1;
    }

    /// Checks that the lease has not ended: what is stored later might never be removed.
    fn check_registered(&self) -> Result<(), BrokerError> {
        match self.last.is_none_or(|(_, sent)| sent.elapsed() >= LEASE) {
            true => Err(BrokerError::away(
                "this node is not registered at the moment",
            )),
            false => Ok(()),
        }
    }
}

impl Generation {
    /// Begins the next generation. Returns the number of this one if anything was stored.
    fn end(&mut self) -> Option<u64> {
        self.number += 1;
        std::mem::take(&mut self.has_begun).then_some(self.number - 1)
    }
}

/// Removes the names of nodes that have ended, and tells the node which became vacant.
async fn sweep_occupancy(shared: Arc<NatsState>, link: Arc<Link>) {
    let mut vacated = Vec::new();
    let swept = link.streams.sweep_occupancy(&shared.subjects, &mut vacated);
    if let Err(error) = link.answer(swept).await {
        tracing::debug!(%error, "cannot remove what nodes that have ended had occupied");
    }
    if !vacated.is_empty() {
        shared.ingest.ingest(vec![Event::Vacated(vacated)]).await;
    }
}

impl NatsState {
    /// Returns the lease under which this node stores presence.
    pub(super) fn presence_lease(&self, generation: u64) -> PresenceLease<'_> {
        PresenceLease {
            node: &self.node,
            generation,
        }
    }
}
