//! Presence in Redis: for each channel a hash of its clients, and a hash of the numbers of clients
//! of its users. An entry belongs to a lease of the node that stored it.
//!
//! Scripts that check leases need them in the slot of the channel's hashes. The hashes are
//! therefore in one of a few slots, and a node renews a lease in each of those that it uses: one on
//! a single server, and up to [`SHARDS`] in a cluster.

use std::sync::{Arc, atomic::Ordering};

use futures_util::future::try_join_all;
use linerate_hub::{ClientInfo, presence::Counts};

use super::{cluster::slot, leases::lease_ms, state::RedisState};
use crate::{
    broker::BrokerError,
    lock::lock,
    presence::{self, PresenceChange},
};

/// The number of slots over which the channels of a cluster are spread.
const SHARDS: u16 = 16;

/// The number of changes that are sent before their answers are awaited.
const CHANGES_AT_ONCE: usize = 64;

/// The number of entries of an ended lease that are removed before the next are read.
const SWEEP_LEN: usize = 256;

/// A lease that has ended, whose entries must be removed.
pub(super) type EndedLease = (u16, String);

impl RedisState {
    /// Stores who is present, and who no longer. The changes must concern different clients or
    /// channels, because they are made in any order.
    pub(super) async fn set_presence(&self, changes: &[PresenceChange]) -> Result<(), BrokerError> {
        let lease = self.lease();
        for change in changes {
            let shard = self.shard(change)?;
            let is_held = lock(&self.leases.held).contains(&shard);
            if !is_held {
                self.renew(shard, &lease, "begin").await?;
                lock(&self.leases.held).insert(shard);
            }
        }
        for changes in changes.chunks(CHANGES_AT_ONCE) {
            let sent = changes.iter().map(|change| self.change(&lease, change));
            try_join_all(sent).await?;
        }
        Ok(())
    }

    /// Ends the leases under which this node has stored entries, and with them the entries.
    pub(super) async fn reset_presence(&self) -> Result<(), BrokerError> {
        let lease = self.lease();
        self.leases.generation.fetch_add(1, Ordering::Relaxed);
        let held = std::mem::take(&mut *lock(&self.leases.held));
        for shard in held {
            let keys = self.names.leases(shard);
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
        let (lease, held) = (self.lease(), lock(&self.leases.held).clone());
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
            self.renew(shard, &lease, how)
        });
        let (mut are_held, mut ended) = (true, Vec::new());
        for (shard, (is_held, due)) in (0..).zip(try_join_all(renewed).await?) {
            are_held &= is_held;
            ended.extend(due.into_iter().map(|lease| (shard, lease)));
        }
        Ok((are_held, ended))
    }

    /// Removes the entries of leases that have ended.
    pub(super) async fn sweep(self: Arc<Self>, leases: Vec<EndedLease>) {
        for (shard, lease) in leases {
            if let Err(error) = self.sweep_one(shard, &lease).await {
                tracing::debug!(%error, lease, "cannot remove the presence of a node that has ended");
            }
        }
    }

    /// Returns the clients that are present in the channel with the Redis name `name`.
    pub(super) async fn present(
        &self,
        name: &str,
        bytes_max: usize,
    ) -> Result<Vec<ClientInfo>, BrokerError> {
        let shard = self.shard_of(name);
        let mut call = self.presence.present.key(self.names.leases(shard).current);
        call.key(self.names.present(shard, name).0);
        call.arg(lease_ms()).arg(bytes_max);
        let call = async |mut connection| call.invoke_async::<Vec<Vec<u8>>>(&mut connection).await;
        let found = self.commands.run(call).await?;
        match found.split_first() {
            Some((is_complete, found)) if is_complete == b"1" => Ok(found
                .iter()
                .filter_map(|json| presence::decode(json))
                .collect()),
            _ => Err(BrokerError::PresenceTooLarge { bytes_max }),
        }
    }

    /// Returns how many clients and users are present in the channel with the Redis name `name`.
    pub(super) async fn present_counts(&self, name: &str) -> Result<Counts, BrokerError> {
        let (clients, users) = self.names.present(self.shard_of(name), name);
        let mut pipeline = ::redis::pipe();
        pipeline.hlen(clients).hlen(users);
        let run = async |mut connection| {
            pipeline
                .query_async::<(usize, usize)>(&mut connection)
                .await
        };
        let (clients, users) = self.commands.run(run).await?;
        Ok(Counts { clients, users })
    }

    async fn change(&self, lease: &str, change: &PresenceChange) -> Result<(), BrokerError> {
        let name = self.name(&change.channel)?;
        let shard = self.shard_of(&name);
        let info = &change.info;
        let keys = self.names.leases(shard);
        let (clients, users) = self.names.present(shard, &name);
        let mut call = self.presence.change.key(keys.current);
        call.key(self.names.entries(shard, lease))
            .key(clients)
            .key(users);
        call.arg(lease).arg(match change.is_present {
            true => "set",
            false => "remove",
        });
        call.arg(&*info.client).arg(entry(&info.client, &name));
        if change.is_present {
            call.arg(&*info.user).arg(presence::encode(info));
        }
        let call = async |mut connection| call.invoke_async::<bool>(&mut connection).await;
        match self.commands.run(call).await? {
            true => Ok(()),
            false => Err(BrokerError::LeaseEnded),
        }
    }

    async fn renew(
        &self,
        shard: u16,
        lease: &str,
        how: &str,
    ) -> Result<(bool, Vec<String>), BrokerError> {
        let keys = self.names.leases(shard);
        let mut call = self.presence.lease.key(keys.current);
        call.key(keys.ended).key(keys.run);
        call.arg(lease).arg(lease_ms()).arg(how);
        let call = async |mut connection| call.invoke_async(&mut connection).await;
        self.commands.run(call).await
    }

    async fn sweep_one(&self, shard: u16, lease: &str) -> Result<(), BrokerError> {
        let entries = self.names.entries(shard, lease);
        loop {
            let mut command = ::redis::cmd("SRANDMEMBER");
            command.arg(&entries).arg(SWEEP_LEN);
            let found: Vec<String> = self.commands.query(&command).await?;
            if found.is_empty() {
                let mut command = ::redis::cmd("ZREM");
                command.arg(self.names.leases(shard).ended).arg(lease);
                return self.commands.query(&command).await;
            }
            for entries in found.chunks(CHANGES_AT_ONCE) {
                let removed = entries
                    .iter()
                    .map(|entry| self.sweep_entry(shard, lease, entry));
                try_join_all(removed).await?;
            }
        }
    }

    async fn sweep_entry(&self, shard: u16, lease: &str, entry: &str) -> Result<(), BrokerError> {
        let Some((client, name)) = of_entry(entry) else {
            let mut command = ::redis::cmd("SREM");
            command.arg(self.names.entries(shard, lease)).arg(entry);
            return self.commands.query(&command).await;
        };
        let (clients, users) = self.names.present(shard, name);
        let mut call = self.presence.change.key(self.names.leases(shard).current);
        call.key(self.names.entries(shard, lease))
            .key(clients)
            .key(users);
        call.arg(lease).arg("sweep").arg(client).arg(entry);
        let call = async |mut connection| call.invoke_async::<()>(&mut connection).await;
        self.commands.run(call).await
    }

    fn lease(&self) -> String {
        let generation = self.leases.generation.load(Ordering::Relaxed);
        format!("{}.{generation}", self.node)
    }

    fn shard(&self, change: &PresenceChange) -> Result<u16, BrokerError> {
        Ok(self.shard_of(&self.name(&change.channel)?))
    }

    fn shard_of(&self, name: &str) -> u16 {
        match self.is_cluster {
            true => slot(name.as_bytes()) % SHARDS,
            false => 0,
        }
    }
}

/// Returns the name of an entry among those of its lease.
fn entry(client: &str, name: &str) -> String {
    format!("{} {client}{name}", client.len())
}

/// Returns the client and the name of the channel of an entry.
fn of_entry(entry: &str) -> Option<(&str, &str)> {
    let (length, rest) = entry.split_once(' ')?;
    rest.split_at_checked(length.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::{entry, of_entry};

    #[test]
    fn an_entry_names_its_client_and_its_channel() {
        for (client, name) in [("c", "room:7"), ("a b", " x "), ("", "")] {
            assert_eq!(of_entry(&entry(client, name)), Some((client, name)));
        }
        for foreign in ["", "x", "9 c", "1 ü"] {
            assert_eq!(of_entry(foreign), None, "{foreign}");
        }
    }
}
