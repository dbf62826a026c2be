//! Tokens revoked before they expire: a single token, those of a user, or all, if issued before a
//! given time.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::atomic::{AtomicU64, Ordering},
};

use parking_lot::RwLock;
use serde::{Deserialize, Serialize};

/// Maximum length of a token ID or a user name in a revocation, in bytes.
const NAME_BYTES_MAX: usize = 1_024;

/// Number of recent revocations whose targets are remembered individually.
const NEWEST_MAX: usize = 256;

/// The claims of a token that identify it.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub(crate) struct TokenId {
    /// The `jti` claim.
    pub id: Option<String>,
    /// The `iat` claim, in seconds since 1970.
    pub issued_at: Option<u64>,
}

/// Which tokens are revoked.
#[derive(Clone, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub(crate) enum Target {
    /// All tokens.
    All,
    /// The token with this `jti`.
    Token(String),
    /// The tokens of this user.
    User(String),
}

/// A revocation.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub(crate) struct Revocation {
    /// The tokens to revoke.
    pub target: Target,
    /// Revokes only tokens whose `iat` is before this time, in seconds since 1970, or missing.
    /// Ignored for a single token.
    pub issued_before: u64,
    /// When the revocation can be discarded because the tokens have expired, in seconds since 1970;
    /// `None` for never.
    pub expires_at: Option<u64>,
}

/// All revocations in force.
#[derive(Debug)]
pub(crate) struct Revocations {
    revocations_max: usize,
    all: RwLock<HashMap<Target, Revocation>>,
    /// Number of revocations so far that changed something.
    changes: AtomicU64,
    newest: RwLock<VecDeque<Target>>,
}

/// Clients to which recent revocations may apply. Their sessions know their tokens.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum RevocationScope {
    /// All clients.
    Everybody,
    /// The clients of these users.
    Users(HashSet<String>),
}

/// Why a revocation is rejected.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum RevocationError {
    /// The ID of the token or the name of the user is empty or too long.
    #[error("name to revoke has {bytes} bytes; 1 to {NAME_BYTES_MAX} are allowed")]
    Name {
        /// Its length in bytes.
        bytes: usize,
    },
    /// The maximum number of revocations is reached.
    #[error("there are already {revocations_max} revocations; auth.revocations_max allows no more")]
    TooMany {
        /// The maximum.
        revocations_max: usize,
    },
}

impl Revocation {
    /// Creates a revocation. `now`, `issued_before` and `expires_at` are in seconds since 1970.
    pub(crate) fn new(target: Target, issued_before: u64, expires_at: Option<u64>) -> Self {
        Self {
            target,
            issued_before,
            expires_at,
        }
    }

    /// Returns whether it applies to a token that `user` has presented.
    pub(crate) fn revokes(&self, user: &str, token: &TokenId) -> bool {
        let is_early = token.issued_at.is_none_or(|at| at < self.issued_before);
        match &self.target {
            Target::All => is_early,
            Target::Token(id) => token.id.as_ref() == Some(id),
            Target::User(name) => name == user && is_early,
        }
    }

    /// Returns whether it can be discarded.
    fn is_over(&self, now: u64) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }

    fn check(&self) -> Result<(), RevocationError> {
        match &self.target {
            Target::Token(name) | Target::User(name)
                if name.is_empty() || name.len() > NAME_BYTES_MAX =>
            {
                Err(RevocationError::Name { bytes: name.len() })
            }
            _ => Ok(()),
        }
    }

    /// Returns the combination of this and an earlier revocation of the same target. It revokes
    /// everything that either of them revokes.
    fn with(self, earlier: &Self) -> Self {
        let ends = self.expires_at.zip(earlier.expires_at);
        Self {
            issued_before: self.issued_before.max(earlier.issued_before),
            expires_at: ends.map(|(one, other)| one.max(other)),
            ..self
        }
    }
}

impl RevocationScope {
    /// Returns whether the clients of `user` are included.
    pub(crate) fn has(&self, user: &str) -> bool {
        match self {
            Self::Everybody => true,
            Self::Users(users) => users.contains(user),
        }
    }
}

impl Revocations {
    /// Creates an empty list for up to `revocations_max` revocations.
    pub(crate) fn new(revocations_max: usize) -> Self {
        Self {
            revocations_max,
            all: RwLock::default(),
            changes: AtomicU64::new(0),
            newest: RwLock::default(),
        }
    }

    /// Returns the revocation that would be in force if `revocation` were added, without adding it.
    /// `now` is in seconds since 1970.
    ///
    /// # Errors
    /// Fails if its name is empty or too long, or if there are too many revocations.
    pub(crate) fn merged(
        &self,
        revocation: Revocation,
        now: u64,
    ) -> Result<Revocation, RevocationError> {
        revocation.check()?;
        let mut all = self.all.write();
        if let Some(earlier) = all.get(&revocation.target) {
            return Ok(revocation.with(earlier));
        }
        let revocations_max = self.revocations_max;
        if all.len() >= revocations_max {
            all.retain(|_, revocation| !revocation.is_over(now));
        }
        match all.len() < revocations_max {
            true => Ok(revocation),
            false => Err(RevocationError::TooMany { revocations_max }),
        }
    }

    /// Adds a revocation. Returns the revocation that is then in force, or `None` if nothing has
    /// changed.
    ///
    /// # Errors
    /// The same as for [`merged`](Self::merged).
    pub(crate) fn insert(
        &self,
        revocation: Revocation,
        now: u64,
    ) -> Result<Option<Revocation>, RevocationError> {
        if revocation.is_over(now) {
            return Ok(None);
        }
        let merged = self.merged(revocation, now)?;
        let mut all = self.all.write();
        let before = all.insert(merged.target.clone(), merged.clone());
        drop(all);
        let is_news = before.as_ref() != Some(&merged);
        if is_news {
            let mut newest = self.newest.write();
            if newest.len() == NEWEST_MAX {
                newest.pop_front();
            }
            newest.push_back(merged.target.clone());
            self.changes.fetch_add(1, Ordering::Release);
        }
        Ok(is_news.then_some(merged))
    }

    /// Returns the number of revocations so far that changed something.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Returns the clients to which revocations since `seen` may apply, and the current value of
    /// [`changes`](Self::changes).
    pub(crate) fn concerned_since(&self, seen: u64) -> (RevocationScope, u64) {
        let newest = self.newest.read();
        let changes = self.changes();
        let count = usize::try_from(changes - seen).unwrap_or(usize::MAX);
        let names = newest.iter().rev().take(count).map(|target| match target {
            Target::User(name) => Some(name.clone()),
            Target::All | Target::Token(_) => None,
        });
        let users: Option<HashSet<_>> = names.collect();
        let concerned = match users {
            Some(users) if count <= newest.len() => RevocationScope::Users(users),
            _ => RevocationScope::Everybody,
        };
        (concerned, changes)
    }

    /// Returns whether a token that `user` has presented is revoked. `now` is in seconds since
    /// 1970.
    pub(crate) fn is_revoked(&self, user: &str, token: &TokenId, now: u64) -> bool {
        let all = self.all.read();
        if all.is_empty() {
            return false;
        }
        let targets = [
            Some(Target::All),
            token.id.clone().map(Target::Token),
            Some(Target::User(user.to_owned())),
        ];
        let found = targets
            .iter()
            .flatten()
            .filter_map(|target| all.get(target));
        found
            .filter(|revocation| !revocation.is_over(now))
            .any(|revocation| revocation.revokes(user, token))
    }

    /// Returns the revocations in force, ordered by their targets.
    pub(crate) fn list(&self, now: u64) -> Vec<Revocation> {
        let all = self.all.read();
        let all = all.values().filter(|revocation| !revocation.is_over(now));
        let mut list: Vec<_> = all.cloned().collect();
        list.sort_by(|one, other| one.target.cmp(&other.target));
        list
    }
}

#[cfg(test)]
mod tests {
    use super::{
        NAME_BYTES_MAX, NEWEST_MAX, Revocation, RevocationError, RevocationScope, Revocations,
        Target, TokenId,
    };

    fn token(id: &str, issued_at: Option<u64>) -> TokenId {
        let id = Some(id.to_owned());
        TokenId { id, issued_at }
    }

    fn user(name: &str, issued_before: u64, expires_at: Option<u64>) -> Revocation {
        Revocation::new(Target::User(name.to_owned()), issued_before, expires_at)
    }

    #[test]
    fn tokens_are_revoked_by_id_by_user_and_by_when_they_were_issued() {
        let revocations = Revocations::new(10);
        let id = Revocation::new(Target::Token("x".to_owned()), 0, None);
        assert!(revocations.insert(id, 0).unwrap().is_some());
        revocations.insert(user("ann", 100, None), 0).unwrap();
        let is_revoked = |user, token: &TokenId| revocations.is_revoked(user, token, 50);
        assert!(is_revoked("bob", &token("x", Some(999))));
        assert!(!is_revoked("bob", &token("y", Some(1))));
        assert!(is_revoked("ann", &token("y", Some(99))));
        assert!(!is_revoked("ann", &token("y", Some(100))));
        assert!(
            is_revoked("ann", &token("y", None)),
            "its time of issue is unknown"
        );
        let all = Revocation::new(Target::All, 10, None);
        revocations.insert(all, 0).unwrap();
        assert!(is_revoked("bob", &token("y", Some(9))));
        assert!(!is_revoked("bob", &token("y", Some(10))));
    }

    #[test]
    fn a_revocation_ends_and_is_not_weakened_by_another() {
        let revocations = Revocations::new(10);
        revocations.insert(user("ann", 100, Some(60)), 0).unwrap();
        let merged = revocations.insert(user("ann", 50, Some(70)), 0).unwrap();
        assert_eq!(merged, Some(user("ann", 100, Some(70))));
        assert_eq!(
            revocations.insert(user("ann", 50, Some(70)), 0),
            Ok(None),
            "nothing changes"
        );
        let early = token("y", Some(99));
        assert!(revocations.is_revoked("ann", &early, 69));
        assert!(!revocations.is_revoked("ann", &early, 70));
        assert_eq!(revocations.list(70), []);
        assert_eq!(
            revocations.insert(user("bob", 1, Some(5)), 5),
            Ok(None),
            "already expired"
        );
    }

    #[test]
    fn whom_revocations_concern_is_known_however_many_there_were_meanwhile() {
        let revocations = Revocations::new(10_000);
        let users =
            |names: &[&str]| RevocationScope::Users(names.iter().map(|&one| one.into()).collect());
        assert_eq!(revocations.concerned_since(0), (users(&[]), 0));
        for name in ["ann", "bob", "bob"] {
            revocations.insert(user(name, 1, None), 0).unwrap();
        }
        assert_eq!(revocations.concerned_since(0), (users(&["ann", "bob"]), 2));
        assert_eq!(revocations.concerned_since(1), (users(&["bob"]), 2));
        assert_eq!(revocations.concerned_since(2), (users(&[]), 2));
        let id = Revocation::new(Target::Token("x".to_owned()), 0, None);
        revocations.insert(id, 0).unwrap();
        assert_eq!(
            revocations.concerned_since(2),
            (RevocationScope::Everybody, 3)
        );
        for number in 0..NEWEST_MAX {
            let name = number.to_string();
            revocations.insert(user(&name, 1, None), 0).unwrap();
        }
        let (all, changes) = revocations.concerned_since(3);
        assert!(matches!(&all, RevocationScope::Users(users) if users.len() == NEWEST_MAX));
        assert!(all.has("0") && !all.has("ann"));
        assert_eq!(changes, 3 + NEWEST_MAX as u64);
        revocations.insert(user("ann", 2, None), 0).unwrap();
        assert_eq!(revocations.concerned_since(3).0, RevocationScope::Everybody);
    }

    #[test]
    fn there_are_as_many_as_allowed_and_those_that_are_over_make_room() {
        let revocations = Revocations::new(2);
        revocations.insert(user("a", 1, Some(10)), 0).unwrap();
        revocations.insert(user("b", 1, None), 0).unwrap();
        let refused = revocations.insert(user("c", 1, None), 9);
        assert_eq!(
            refused,
            Err(RevocationError::TooMany { revocations_max: 2 })
        );
        assert!(
            revocations.insert(user("b", 2, None), 9).is_ok(),
            "already known"
        );
        assert!(revocations.insert(user("c", 1, None), 10).is_ok());
        for bytes in [0, NAME_BYTES_MAX + 1] {
            let refused = revocations.insert(user(&"x".repeat(bytes), 1, None), 0);
            assert_eq!(refused, Err(RevocationError::Name { bytes }));
        }
        let longest = Revocations::new(1).insert(user(&"x".repeat(NAME_BYTES_MAX), 1, None), 0);
        assert!(longest.is_ok());
    }
}
