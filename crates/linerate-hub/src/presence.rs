//! Presence: the clients in each channel.

use std::{
    borrow::Borrow,
    hash::{Hash, Hasher},
    sync::Arc,
};

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};

use crate::{ChannelName, ClientInfo};

/// The clients that are present in each channel.
///
/// An entry exists from [`join`](Self::join) to [`leave`](Self::leave); nothing expires on its own.
///
/// ```
/// use std::sync::Arc;
///
/// use linerate_hub::{ChannelName, ClientInfo, presence::{Counts, Presence}};
///
/// let room = ChannelName::new("room:7")?;
/// let mut presence = Presence::default();
/// let info = ClientInfo { user: "ada".into(), client: "c1".into(), ..ClientInfo::default() };
/// let info = Arc::new(info);
/// assert!(presence.join(room, info.clone()));
/// assert_eq!(presence.counts("room:7"), Counts { clients: 1, users: 1 });
/// assert_eq!(presence.leave("room:7", "c1"), Some(info));
/// # Ok::<(), linerate_hub::channel::ChannelNameError>(())
/// ```
#[derive(Debug, Default)]
pub struct Presence {
    channels: HashMap<ChannelName, Members, RandomState>,
}

#[derive(Debug, Default)]
struct Members {
    clients: HashSet<Member, RandomState>,
    /// The number of clients of each user.
    users: HashMap<String, usize, RandomState>,
}

/// A client, which is found by its ID.
#[derive(Debug)]
struct Member(Arc<ClientInfo>);

/// The numbers of clients and users in a channel.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// The number of clients.
    pub clients: usize,
    /// The number of distinct users; all anonymous clients count as one user.
    pub users: usize,
}

impl Presence {
    /// Adds a client, or replaces its information; returns whether it is new in the channel.
    pub fn join(&mut self, channel: ChannelName, info: Arc<ClientInfo>) -> bool {
        let members = self.channels.entry(channel).or_default();
        *members.users.entry_ref(&*info.user).or_default() += 1;
        match members.clients.replace(Member(info)) {
            Some(Member(before)) => {
                members.forget_user(&before.user);
                false
            }
            None => true,
        }
    }

    /// Removes a client and returns its information, or `None` if it was not present.
    pub fn leave(&mut self, channel: &str, client: &str) -> Option<Arc<ClientInfo>> {
        let members = self.channels.get_mut(channel)?;
        let Member(info) = members.clients.take(client)?;
        members.forget_user(&info.user);
        if members.clients.is_empty() {
            self.channels.remove(channel);
        }
        Some(info)
    }

    /// Returns the clients in a channel in no particular order.
    pub fn members(&self, channel: &str) -> impl Iterator<Item = &ClientInfo> {
        let members = self.channels.get(channel).into_iter();
        members.flat_map(|members| members.clients.iter().map(|Member(info)| &**info))
    }

    /// Returns the channels in which clients are present, in no particular order.
    pub fn channels(&self) -> impl Iterator<Item = &ChannelName> {
        self.channels.keys()
    }

    /// Returns the numbers of clients and users in a channel.
    pub fn counts(&self, channel: &str) -> Counts {
        let members = self.channels.get(channel);
        members.map_or_else(Counts::default, |members| Counts {
            clients: members.clients.len(),
            users: members.users.len(),
        })
    }
}

impl Borrow<str> for Member {
    fn borrow(&self) -> &str {
        &self.0.client
    }
}

impl Hash for Member {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.client.hash(state);
    }
}

impl PartialEq for Member {
    fn eq(&self, other: &Self) -> bool {
        self.0.client == other.0.client
    }
}

impl Eq for Member {}

impl Members {
    fn forget_user(&mut self, user: &str) {
        if let Some(clients) = self.users.get_mut(user) {
            *clients -= 1;
            if *clients == 0 {
                self.users.remove(user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Counts, Presence};
    use crate::{ChannelName, ClientInfo};

    fn info(user: &str, client: &str) -> Arc<ClientInfo> {
        Arc::new(ClientInfo {
            user: user.into(),
            client: client.into(),
            ..ClientInfo::default()
        })
    }

    fn joined(members: &[(&str, &str)]) -> Presence {
        let mut presence = Presence::default();
        for (user, client) in members {
            let channel = ChannelName::new("a").unwrap();
            presence.join(channel, info(user, client));
        }
        presence
    }

    #[test]
    fn users_are_counted_once_however_many_clients_they_have() {
        let mut presence = joined(&[("ada", "1"), ("ada", "2"), ("", "3"), ("", "4")]);
        let count = |presence: &Presence| presence.counts("a");
        let counts = |clients, users| Counts { clients, users };
        assert_eq!(count(&presence), counts(4, 2));
        assert_eq!(presence.leave("a", "1"), Some(info("ada", "1")));
        assert_eq!(count(&presence), counts(3, 2));
        presence.leave("a", "2");
        assert_eq!(count(&presence), counts(2, 1));
        assert_eq!(presence.channels().count(), 1);
    }

    #[test]
    fn a_client_that_joins_again_has_its_latest_info() {
        let mut presence = joined(&[("ada", "1")]);
        let channel = ChannelName::new("a").unwrap();
        assert!(!presence.join(channel, info("bob", "1")));
        assert_eq!(
            presence.counts("a"),
            Counts {
                clients: 1,
                users: 1
            }
        );
        assert_eq!(
            presence.members("a").collect::<Vec<_>>(),
            [&*info("bob", "1")]
        );
    }

    #[test]
    fn an_empty_channel_is_removed() {
        let mut presence = joined(&[("ada", "1"), ("bob", "2")]);
        presence.leave("a", "1");
        presence.leave("a", "2");
        assert_eq!(presence.leave("a", "2"), None);
        assert_eq!(presence.counts("a"), Counts::default());
        assert!(presence.channels.is_empty());
    }
}
