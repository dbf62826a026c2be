//! Begins, renews and ends leases, and sweeps what was stored under those of nodes that have ended.
//!
//! Scripts that check leases need them in the slot of what is stored. Everything is therefore in
//! one of a few slots, and a node renews a lease in each of those that it uses: one on a single
//! server, and up to [`SHARDS`] in a cluster.

use std::sync::{Arc, atomic::Ordering};

use futures_util::future::try_join_all;

use super::{
    cluster::slot,
    leases::{Family, Leases, lease_ms},
    state::RedisState,
};
use crate::{broker::BrokerError, event::Event, lock::lock};

/// The number of slots over which the entries of a cluster are spread.
const SHARDS: u16 = 16;

/// The number of changes that are sent before their answers are awaited.
pub(super) const CHANGES_AT_ONCE: usize = 64;

/// The number of entries of an ended lease that are removed before the next are read.
const SWEEP_LEN: usize = 256;

/// A lease that has ended, whose entries must be removed.
#[derive(Debug)]
pub(super) struct EndedLease {
    family: Family,
    shard: u16,
    lease: String,
}

impl RedisState {
    /// Returns the name of the lease of this node.
    pub(super) fn lease(&self, family: Family) -> String {
        let generation = self.leases(family).generation.load(Ordering::Relaxed);
        format!("{}.{generation}", self.node)
    }

    /// Begins a lease in a shard unless this node holds one there.
    pub(super) async fn begin_lease(&self, family: Family, shard: u16) -> Result<(), BrokerError> {
        let is_held = lock(&self.leases(family).held).contains(&shard);
        if !is_held {
            self.renew(family, shard, "begin").await?;
            lock(&self.leases(family).held).insert(shard);
        }
        Ok(())
    }

    /// Ends the leases under which this node has stored entries, and with them the entries.
    pub(super) async fn end_leases(&self, family: Family) -> Result<(), BrokerError> {
        let lease = self.lease(family);
        let leases = self.leases(family);
        leases.generation.fetch_add(1, Ordering::Relaxed);
        let held = std::mem::take(&mut *lock(&leases.held));
        for shard in held {
            let keys = self.names.leases(family, shard);
            let mut pipeline = ::redis::pipe();
            pipeline.zrem(keys.current, &lease).ignore();
            pipeline.zadd(keys.ended, &lease, 0).ignore();
            let run = async |mut connection| pipeline.query_async::<()>(&mut connection).await;
            self.commands.run(run).await?;
        }
        Ok(())
    }

    /// Renews the leases of this node. Returns whether all were still held, and the leases of other
    /// nodes that this one has to sweep.
    pub(super) async fn renew_leases(&self) -> Result<(bool, Vec<EndedLease>), BrokerError> {
        let (mut are_held, mut ended) = (true, Vec::new());
        for family in [Family::Occupancy, Family::Presence] {
            if self.leases(family).are_used.load(Ordering::Relaxed) {
                are_held &= self.renew_family(family, &mut ended).await?;
            }
        }
        Ok((are_held, ended))
    }

    async fn renew_family(
        &self,
        family: Family,
        ended: &mut Vec<EndedLease>,
    ) -> Result<bool, BrokerError> {
        let held = lock(&self.leases(family).held).clone();
        let shards = match self.is_cluster {
            true => SHARDS,
            false => 1,
        };
        let renewed = (0..shards).map(|shard| {
            // Also where this node stores nothing, leases of others may have to be swept.
            let how = match held.contains(&shard) {
                true => "renew",
                false => "look",
            };
            self.renew(family, shard, how)
        });
        let mut are_held = true;
        for (shard, (is_held, due)) in (0..).zip(try_join_all(renewed).await?) {
            are_held &= is_held;
            ended.extend(due.into_iter().map(|lease| EndedLease {
                family,
                shard,
                lease,
            }));
        }
        Ok(are_held)
    }

    /// Removes the entries of leases that have ended.
    pub(super) async fn sweep(self: Arc<Self>, ended: Vec<EndedLease>) {
        for ended in ended {
            if let Err(error) = self.sweep_one(&ended).await {
                let lease = ended.lease;
                tracing::debug!(%error, lease, "cannot remove what a node that has ended had stored");
            }
        }
    }

    async fn sweep_one(&self, ended: &EndedLease) -> Result<(), BrokerError> {
        let EndedLease {
            family,
            shard,
            lease,
        } = ended;
        let entries = self.names.entries(*family, *shard, lease);
        loop {
            let mut command = ::redis::cmd("SRANDMEMBER");
            command.arg(&entries).arg(SWEEP_LEN);
            let found: Vec<String> = self.commands.query(&command).await?;
            if found.is_empty() {
                let mut command = ::redis::cmd("ZREM");
                command.arg(self.names.leases(*family, *shard).ended);
                return self.commands.query(command.arg(lease)).await;
            }
            for entries in found.chunks(CHANGES_AT_ONCE) {
                match family {
                    Family::Occupancy => {
                        let names = self.sweep_names(*shard, lease, entries).await?;
                        if !names.is_empty() {
                            self.ingest.ingest(vec![Event::Vacated(names)]).await;
                        }
                    }
                    Family::Presence => self.sweep_present(*shard, lease, entries).await?,
                }
            }
        }
    }

    /// Returns the shard of what is stored about a name.
    pub(super) fn shard_of(&self, name: &str) -> u16 {
        match self.is_cluster {
            true => slot(name.as_bytes()) % SHARDS,
            false => 0,
        }
    }

    /// Returns the leases of a family.
    pub(super) const fn leases(&self, family: Family) -> &Leases {
        match family {
            Family::Occupancy => &self.occupancy_leases,
            Family::Presence => &self.presence_leases,
        }
    }

    async fn renew(
        &self,
        family: Family,
        shard: u16,
        how: &str,
    ) -> Result<(bool, Vec<String>), BrokerError> {
        let keys = self.names.leases(family, shard);
        let mut call = self.lease_scripts.lease.key(keys.current);
        call.key(keys.ended).key(keys.run);
        call.arg(self.lease(family)).arg(lease_ms()).arg(how);
        let call = async |mut connection| call.invoke_async(&mut connection).await;
        self.commands.run(call).await
    }
}
