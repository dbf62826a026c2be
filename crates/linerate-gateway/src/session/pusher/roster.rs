//! The users in a presence channel, as one of its subscribers knows them.
//!
//! A user with several connections is reported once. The node reports connections, so that each
//! subscriber has to know which ones belong to which user.

use std::collections::{BTreeMap, BTreeSet};

use linerate_budget::{Account, Share};
use linerate_hub::ClientInfo;
use smol_str::SmolStr;

use crate::protocol::reply::PusherMember;

/// The maximum number of moves that wait until the list is complete.
const WAITING_MAX: usize = 1_024;

/// The approximate memory of a connection in the list, in bytes.
const ENTRY_BYTES: usize = 60;

/// The users in a presence channel.
#[derive(Debug)]
pub(super) struct Roster {
    /// Users with the IDs of their connections.
    members: BTreeSet<(SmolStr, SmolStr)>,
    /// Who has joined or left since the list was requested; `None` once it is complete.
    waiting: Option<Vec<(ClientInfo, bool)>>,
    is_overrun: bool,
    /// The part of the memory account that the list uses.
    share: Share,
}

/// Why a client cannot join a presence channel.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(super) enum RosterError {
    /// The channel has too many users.
    #[error("limit exceeded: at most {users_max} users in a presence channel")]
    Full { users_max: usize },
    /// Too many clients have joined or left before the list was complete.
    #[error("limit exceeded: too many clients join and leave at this time")]
    Overrun,
}

impl Roster {
    /// Creates a list that is not complete. Its memory is charged to `account`.
    pub(super) fn new(account: &Account) -> Self {
        Self {
            members: BTreeSet::new(),
            waiting: Some(Vec::new()),
            is_overrun: false,
            share: account.share(0),
        }
    }

    /// Completes the list with the clients in the channel. Returns the users in it, including
    /// `own`.
    ///
    /// # Errors
    /// The channel has `users_max` users without `own`, or too much has happened meanwhile.
    pub(super) fn complete(
        &mut self,
        clients: Vec<ClientInfo>,
        own: &ClientInfo,
        users_max: usize,
    ) -> Result<Vec<PusherMember>, RosterError> {
        if self.is_overrun {
            return Err(RosterError::Overrun);
        }
        let waiting = self.waiting.take().unwrap_or_default();
        let listed = clients.into_iter().map(|info| (info, true));
        let mut members = BTreeMap::new();
        for (info, is_present) in listed.chain(waiting) {
            let is_new = self.change(&info, is_present);
            match is_present {
                true if is_new => _ = members.insert(info.user.clone(), PusherMember::from(&info)),
                false if is_new => _ = members.remove(&info.user),
                _ => {}
            }
        }
        if !members.contains_key(&own.user) && members.len() >= users_max {
            return Err(RosterError::Full { users_max });
        }
        if self.change(own, true) {
            members.insert(own.user.clone(), PusherMember::from(own));
        }
        Ok(members.into_values().collect())
    }

    /// Records that a client has joined or left. Returns whether its user has, and the client is to
    /// be told.
    pub(super) fn moved(&mut self, info: &ClientInfo, is_present: bool) -> bool {
        match &mut self.waiting {
            None => self.change(info, is_present),
            Some(waiting) if waiting.len() < WAITING_MAX => {
                waiting.push((info.clone(), is_present));
                false
            }
            Some(_) => {
                self.is_overrun = true;
                false
            }
        }
    }

    /// Adds or removes a client. Returns whether its user is new, or has no client any more.
    fn change(&mut self, info: &ClientInfo, is_present: bool) -> bool {
        if info.user.is_empty() {
            return false;
        }
        let entry = (info.user.clone(), info.client.clone());
        let was_there = self.has(&info.user);
        match is_present {
            true => self.members.insert(entry),
            false => self.members.remove(&entry),
        };
        self.share.set((self.members.len() * ENTRY_BYTES) as u64);
        was_there != self.has(&info.user)
    }

    fn has(&self, user: &SmolStr) -> bool {
        let from = (user.clone(), SmolStr::default());
        let mut entries = self.members.range(from..);
        entries.next().is_some_and(|(first, _)| first == user)
    }
}

#[cfg(test)]
mod tests {
    use linerate_budget::Account;
    use linerate_hub::ClientInfo;

    use super::{Roster, RosterError, WAITING_MAX};

    fn info(user: &str, client: &str) -> ClientInfo {
        ClientInfo {
            user: user.into(),
            client: client.into(),
            ..ClientInfo::default()
        }
    }

    fn complete(roster: &mut Roster, clients: &[ClientInfo]) -> Result<Vec<String>, RosterError> {
        let members = roster.complete(clients.to_vec(), &info("me", "0.0"), 3)?;
        Ok(members.into_iter().map(|member| member.user).collect())
    }

    #[test]
    fn a_user_with_several_connections_is_reported_once() {
        let mut roster = Roster::new(&Account::default());
        let clients = [info("a", "1.1"), info("a", "1.2"), info("", "1.3")];
        assert_eq!(complete(&mut roster, &clients).unwrap(), ["a", "me"]);
        assert!(!roster.moved(&info("me", "0.0"), true));
        assert!(!roster.moved(&info("a", "1.4"), true));
        assert!(roster.moved(&info("b", "1.5"), true));
        assert!(!roster.moved(&info("b", "1.5"), true));
        for client in ["1.1", "1.2"] {
            assert!(!roster.moved(&info("a", client), false));
        }
        assert!(roster.moved(&info("a", "1.4"), false));
        assert!(!roster.moved(&info("a", "1.4"), false));
        assert!(!roster.moved(&info("", "1.3"), false));
    }

    #[test]
    fn moves_before_the_list_is_complete_are_part_of_it() {
        let mut roster = Roster::new(&Account::default());
        assert!(!roster.moved(&info("b", "1.2"), true));
        assert!(!roster.moved(&info("a", "1.1"), false));
        let clients = [info("a", "1.1")];
        assert_eq!(complete(&mut roster, &clients).unwrap(), ["b", "me"]);
    }

    #[test]
    fn a_full_channel_takes_only_users_who_are_in_it() {
        let clients = ["a", "b", "c"].map(|user| info(user, "1.1"));
        let full = complete(&mut Roster::new(&Account::default()), &clients);
        assert_eq!(full, Err(RosterError::Full { users_max: 3 }));
        let clients = ["a", "b", "me"].map(|user| info(user, "1.1"));
        let joined = complete(&mut Roster::new(&Account::default()), &clients);
        assert_eq!(joined.unwrap(), ["a", "b", "me"]);
    }

    #[test]
    fn what_waits_is_limited() {
        let mut roster = Roster::new(&Account::default());
        for number in 0..=WAITING_MAX {
            assert!(!roster.moved(&info("a", &number.to_string()), true));
        }
        assert_eq!(complete(&mut roster, &[]), Err(RosterError::Overrun));
    }
}
