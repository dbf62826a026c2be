//! The lease of this node: its last beat, and the generation under which it stores presence.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;

use super::{link::Link, presence::PresenceLease, state::NatsState};
use crate::{
    broker::BrokerError,
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
    generation: u64,
    /// True once the server knows that the generation stores presence.
    has_begun: bool,
}

impl NodeLease {
    /// Renews the lease.
    pub(super) async fn beat(
        &mut self,
        shared: &NatsState,
        link: &Link,
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
        }
        self.nodes = beat.nodes;
        Ok(Beat {
            has_lost_presence: beat.is_new && self.has_begun,
            ..beat
        })
    }

    /// Returns the generation under which to store presence, and tells the server when it begins.
    pub(super) async fn begin_presence(
        &mut self,
        shared: &NatsState,
        link: &Link,
    ) -> Result<u64, BrokerError> {
        // What is stored after the lease has ended might never be removed.
        if self.last.is_none_or(|(_, sent)| sent.elapsed() >= LEASE) {
            return Err(BrokerError::away(
                "this node is not registered at the moment",
            ));
        }
        if !self.has_begun {
            let lease = shared.presence_lease(self.generation);
            let begun = link.streams.begin_presence(&shared.subjects, lease);
            link.answer(begun).await?;
            self.has_begun = true;
        }
        Ok(self.generation)
    }

    /// Begins a new generation, and removes what was stored under the current one.
    pub(super) async fn reset_presence(
        &mut self,
        shared: &NatsState,
        link: Result<Arc<Link>, BrokerError>,
    ) -> Result<(), BrokerError> {
        let before = self.generation;
        self.generation += 1;
        if !std::mem::take(&mut self.has_begun) {
            return Ok(());
        }
        // Other nodes also remove the entries of an earlier generation.
        let link = link?;
        let entries = shared.subjects.presence_of_lease(&shared.node, before);
        let removed = link.streams.remove_entries(&shared.subjects, entries);
        link.answer(removed).await
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
