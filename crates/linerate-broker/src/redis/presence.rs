//! Presence in Redis: for each channel a hash of its clients, and a hash of the numbers of clients
//! of its users. An entry belongs to a lease of the node that stored it.

use futures_util::future::try_join_all;
use linerate_hub::{ClientInfo, presence::Counts};

use super::{
    leases::{Family, lease_ms},
    leasing::CHANGES_AT_ONCE,
    state::RedisState,
};
use crate::{
    broker::BrokerError,
    presence::{self, PresenceChange},
};

impl RedisState {
    /// Stores who is present, and who no longer. The changes must concern different clients or
    /// channels, because they are made in any order.
    pub(super) async fn set_presence(&self, changes: &[PresenceChange]) -> Result<(), BrokerError> {
        for change in changes {
            let shard = self.shard(change)?;
            self.begin_lease(Family::Presence, shard).await?;
        }
        let lease = self.lease(Family::Presence);
        for changes in changes.chunks(CHANGES_AT_ONCE) {
            let sent = changes.iter().map(|change| self.change(&lease, change));
            try_join_all(sent).await?;
        }
        Ok(())
    }

    /// Removes entries of an ended lease.
    pub(super) async fn sweep_present(
        &self,
        shard: u16,
        lease: &str,
        entries: &[String],
    ) -> Result<(), BrokerError> {
        let removed = entries
            .iter()
            .map(|entry| self.sweep_entry(shard, lease, entry));
        try_join_all(removed).await?;
        Ok(())
    }

    /// Returns the clients that are present in the channel with the Redis name `name`.
    pub(super) async fn present(
        &self,
        name: &str,
        bytes_max: usize,
    ) -> Result<Vec<ClientInfo>, BrokerError> {
        let shard = self.shard_of(name);
        let mut call = self
            .lease_scripts
            .present
            .key(self.names.leases(Family::Presence, shard).current);
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
        let keys = self.names.leases(Family::Presence, shard);
        let (clients, users) = self.names.present(shard, &name);
        let mut call = self.lease_scripts.change.key(keys.current);
        call.key(self.names.entries(Family::Presence, shard, lease))
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

    async fn sweep_entry(&self, shard: u16, lease: &str, entry: &str) -> Result<(), BrokerError> {
        let Some((client, name)) = of_entry(entry) else {
            let mut command = ::redis::cmd("SREM");
            command
                .arg(self.names.entries(Family::Presence, shard, lease))
                .arg(entry);
            return self.commands.query(&command).await;
        };
        let (clients, users) = self.names.present(shard, name);
        let mut call = self
            .lease_scripts
            .change
            .key(self.names.leases(Family::Presence, shard).current);
        call.key(self.names.entries(Family::Presence, shard, lease))
            .key(clients)
            .key(users);
        call.arg(lease).arg("sweep").arg(client).arg(entry);
        let call = async |mut connection| call.invoke_async::<()>(&mut connection).await;
        self.commands.run(call).await
    }

    fn shard(&self, change: &PresenceChange) -> Result<u16, BrokerError> {
        Ok(self.shard_of(&self.name(&change.channel)?))
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
