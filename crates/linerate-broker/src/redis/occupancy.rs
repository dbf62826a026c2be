//! Occupied names in Redis: for each name a hash of the leases that occupy it. A value is 1 if its
//! lease made the name occupied, so that a change can be repeated.

use std::sync::atomic::Ordering;

use futures_util::future::try_join_all;

use super::{leases::Family, leasing::CHANGES_AT_ONCE, state::RedisState};
use crate::{broker::BrokerError, occupancy::OccupancyChange};

impl RedisState {
    /// Stores which names this node occupies, and which no longer. Returns for each change whether
    /// it made the name occupied or vacant.
    pub(super) async fn set_occupancy(
        &self,
        changes: &[OccupancyChange],
    ) -> Result<Vec<bool>, BrokerError> {
        let leases = self.leases(Family::Occupancy);
        leases.are_used.store(true, Ordering::Relaxed);
        for change in changes {
            let shard = self.shard_of(&change.name);
            self.begin_lease(Family::Occupancy, shard).await?;
        }
        let lease = self.lease(Family::Occupancy);
        let mut results = Vec::with_capacity(changes.len());
        for changes in changes.chunks(CHANGES_AT_ONCE) {
            let sent = changes.iter().map(|change| {
                let what = match change.is_occupied {
                    true => "set",
                    false => "remove",
                };
                self.occupy(self.shard_of(&change.name), &lease, what, &change.name)
            });
            results.extend(try_join_all(sent).await?);
        }
        Ok(results)
    }

    /// Removes names of an ended lease. Returns those that became vacant.
    pub(super) async fn sweep_names(
        &self,
        shard: u16,
        lease: &str,
        names: &[String],
    ) -> Result<Vec<String>, BrokerError> {
        let swept = names
            .iter()
            .map(|name| self.occupy(shard, lease, "sweep", name));
        let swept = names.iter().zip(try_join_all(swept).await?);
        Ok(swept
            .filter(|(_, is_vacant)| *is_vacant)
            .map(|(name, _)| name.clone())
            .collect())
    }

    async fn occupy(
        &self,
        shard: u16,
        lease: &str,
        what: &str,
        name: &str,
    ) -> Result<bool, BrokerError> {
        let keys = self.names.leases(Family::Occupancy, shard);
        let mut call = self.lease_scripts.occupy.key(keys.current);
        call.key(self.names.entries(Family::Occupancy, shard, lease))
            .key(self.names.occupants(shard, name));
        call.arg(lease).arg(what).arg(name);
        let call = async |mut connection| call.invoke_async::<i8>(&mut connection).await;
        match self.commands.run(call).await? {
            -1 => Err(BrokerError::LeaseEnded),
            result => Ok(result == 1),
        }
    }
}
