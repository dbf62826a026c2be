//! Presence: the clients in each channel.

use std::{
    borrow::Borrow,
    hash::{Hash, Hasher},
    sync::Arc,
};

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet, hash_map::Entry};

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

/// The clients of a channel, of which there is at least one. Most channels have one client on a
/// node if there are many channels and nodes.
#[derive(Debug)]
enum Members {
    One(Arc<ClientInfo>),
    Many(Box<Crowd>),
}

#[derive(Debug, Default)]
struct Crowd {
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
        match self.channels.entry(channel) {
            Entry::Vacant(entry) => {
                entry.insert(Members::One(info));
                true
            }
            Entry::Occupied(mut entry) => entry.get_mut().join(info),
        }
    }

    /// Removes a client and returns its information, or `None` if it was not present.
    pub fn leave(&mut self, channel: &str, client: &str) -> Option<Arc<ClientInfo>> {
        match self.channels.get_mut(channel)? {
            Members::One(info) if *info.client != *client => None,
            Members::One(_) => match self.channels.remove(channel)? {
                Members::One(info) => Some(info),
                Members::Many(_) => None,
            },
            members @ Members::Many(_) => members.leave(client),
        }
    }

    /// Returns the clients in a channel in no particular order.
    pub fn members(&self, channel: &str) -> impl Iterator<Item = &ClientInfo> {
        let (one, crowd) = match self.channels.get(channel) {
            None => (None, None),
            Some(Members::One(info)) => (Some(info), None),
            Some(Members::Many(crowd)) => (None, Some(crowd)),
        };
        let crowd = crowd.into_iter().flat_map(|crowd| &crowd.clients);
        let infos = one.into_iter().chain(crowd.map(|Member(info)| info));
        infos.map(|info| &**info)
    }

    /// Returns the channels in which clients are present, in no particular order.
    pub fn channels(&self) -> impl Iterator<Item = &ChannelName> {
        self.channels.keys()
    }

    /// Returns the number of clients of a user in a channel.
    pub fn clients_of(&self, channel: &str, user: &str) -> usize {
        match self.channels.get(channel) {
            None => 0,
            Some(Members::One(info)) => usize::from(*info.user == *user),
            Some(Members::Many(crowd)) => crowd.users.get(user).copied().unwrap_or_default(),
        }
    }

    /// Returns the numbers of clients and users in a channel.
    pub fn counts(&self, channel: &str) -> Counts {
        match self.channels.get(channel) {
            None => Counts::default(),
            Some(Members::One(_)) => Counts {
                clients: 1,
                users: 1,
            },
            Some(Members::Many(crowd)) => Counts {
                clients: crowd.clients.len(),
                users: crowd.users.len(),
            },
        }
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
    /// Adds a client, or replaces its information; returns whether it is new.
    fn join(&mut self, info: Arc<ClientInfo>) -> bool {
        match self {
            Self::One(known) if known.client == info.client => {
                *known = info;
                false
            }
            Self::One(known) => {
                let mut crowd = Box::<Crowd>::default();
                crowd.join(known.clone());
                crowd.join(info);
                *self = Self::Many(crowd);
                true
            }
            Self::Many(crowd) => crowd.join(info),
        }
    }

    /// Removes one of several clients, and returns its information.
    fn leave(&mut self, client: &str) -> Option<Arc<ClientInfo>> {
        let Self::Many(crowd) = self else {
            return None;
        };
        let info = crowd.leave(client)?;
        if crowd.clients.len() == 1 {
            let last = crowd.clients.drain().next();
            if let Some(Member(last)) = last {
                *self = Self::One(last);
            }
        }
        Some(info)
    }
}

impl Crowd {
    fn join(&mut self, info: Arc<ClientInfo>) -> bool {
        *self.users.entry_ref(&*info.user).or_default() += 1;
        match self.clients.replace(Member(info)) {
            Some(Member(before)) => {
                self.forget_user(&before.user);
                false
            }
            None => true,
        }
    }

    fn leave(&mut self, client: &str) -> Option<Arc<ClientInfo>> {
        let Member(info) = self.clients.take(client)?;
        self.forget_user(&info.user);
        Some(info)
    }

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
    use std::{
        collections::{BTreeMap, BTreeSet},
        sync::Arc,
    };

    use linerate_testkit::Rng;

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

    #[test]
    fn it_is_a_map_of_clients() {
        let mut rng = Rng::new(1);
        let (mut presence, mut model) = (Presence::default(), BTreeMap::new());
        for _ in 0..20_000 {
            let client = rng.below(4);
            let user = format!("user {}", rng.below(3));
            if rng.below(2) == 0 {
                let left = presence.leave("a", &client.to_string());
                assert_eq!(left, model.remove(&client));
            } else {
                let (channel, info) = (ChannelName::new("a"), info(&user, &client.to_string()));
                let is_new = presence.join(channel.unwrap(), info.clone());
                assert_eq!(is_new, model.insert(client, info).is_none());
            }
            let users: BTreeSet<_> = model.values().map(|info| &info.user).collect();
            let counts = Counts {
                clients: model.len(),
                users: users.len(),
            };
            assert_eq!(presence.counts("a"), counts);
            let of_user = model.values().filter(|info| *info.user == *user).count();
            assert_eq!(presence.clients_of("a", &user), of_user);
            let mut members: Vec<_> = presence.members("a").collect();
            members.sort_by(|one, other| one.client.cmp(&other.client));
            assert!(members.into_iter().eq(model.values().map(|info| &**info)));
            assert_eq!(presence.channels().count(), usize::from(!model.is_empty()));
        }
    }
}
