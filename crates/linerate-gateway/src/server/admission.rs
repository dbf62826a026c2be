//! Limits on connections, in total and per address.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use arc_swap::ArcSwap;
use foldhash::fast::RandomState;
use hashbrown::{HashMap, hash_map::Entry};
use ipnet::IpNet;
use linerate_budget::{Account, Budget, Consumer, State};
use parking_lot::Mutex;

use crate::config::ServerOptions;

/// Counts the connections of all workers and limits their number.
#[derive(Debug)]
pub(crate) struct Admission {
    limits: ArcSwap<Limits>,
    open: AtomicUsize,
    accepted: AtomicU64,
    refused: AtomicU64,
    budget: Budget,
    /// The memory that connections use before they send anything.
    account: Account,
    addresses: Mutex<HashMap<IpAddr, usize, RandomState>>,
}

/// The limits that can be changed while the server runs.
#[derive(Debug)]
struct Limits {
    connections_max: usize,
    per_address_max: usize,
    accepts_per_second_max: u32,
    trusted: Vec<IpNet>,
}

/// Why a connection is refused.
///
/// The list is complete: there is one response for each.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum LimitReached {
    /// The limit on connections from one address is reached.
    Address,
    /// The limit on open connections is reached.
    Connections,
    /// The memory budget is tight.
    Memory,
}

/// Estimated memory of an idle connection, in bytes: socket tables, task, session, and everything
/// too small to be counted separately.
pub(crate) const CONNECTION_BYTES: u64 = 8 << 10;

impl Admission {
    /// Creates the state without connections, for a server whose memory is accounted in `budget`.
    pub(crate) fn new(budget: Budget, options: &ServerOptions) -> Self {
        Self {
            account: budget.account(Consumer::Connections),
            budget,
            limits: ArcSwap::from_pointee(Limits::new(options)),
            open: AtomicUsize::new(0),
            accepted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            addresses: Mutex::default(),
        }
    }

    /// Applies new limits. Existing connections stay open.
    pub(crate) fn set_limits(&self, options: &ServerOptions) {
        self.limits.store(Arc::new(Limits::new(options)));
    }

    /// Returns the number of open connections.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Returns the memory budget of the server.
    pub(crate) const fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Returns whether there is a slot for another connection.
    pub(crate) fn has_room(&self) -> bool {
        self.open() < self.limits.load().connections_max
    }

    /// Returns the number of connections accepted since the start.
    pub(crate) fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    /// Returns the number of accepted connections that were refused because of a limit.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Returns the maximum number of connections per second that all workers together may accept.
    pub(super) fn accepts_per_second_max(&self) -> u32 {
        self.limits.load().accepts_per_second_max
    }

    /// Returns whether an address is that of a trusted proxy.
    pub(super) fn trusts(&self, address: IpAddr) -> bool {
        let limits = self.limits.load();
        limits.trusted.iter().any(|net| net.contains(&address))
    }

    /// Takes a slot among all connections, if one is free and memory is not short. Give it back
    /// with [`leave`](Self::leave).
    pub(super) fn enter(&self) -> Result<(), LimitReached> {
        self.accepted.fetch_add(1, Ordering::Relaxed);
        if self.budget.state() != State::Normal {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(LimitReached::Memory);
        }
        let max = self.limits.load().connections_max;
        let one_more = |open| (open < max).then_some(open + 1);
        let taken = self
            .open
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        if taken.is_err() {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(LimitReached::Connections);
        }
        self.account.add(CONNECTION_BYTES);
        Ok(())
    }

    /// Takes a slot for a connection that another process has accepted, even if there is none.
    pub(super) fn enter_again(&self) {
        self.open.fetch_add(1, Ordering::Relaxed);
        self.account.add(CONNECTION_BYTES);
    }

    /// Gives back a slot among all connections.
    pub(super) fn leave(&self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
        self.account.sub(CONNECTION_BYTES);
    }

    /// Takes a slot among the connections from one address, if one is free. Give it back with
    /// [`leave_address`](Self::leave_address). Loopback addresses are not limited, because they may
    /// belong to a proxy that does not report client addresses.
    pub(super) fn enter_address(&self, address: IpAddr) -> Result<(), LimitReached> {
        let address = address.to_canonical();
        let max = match address.is_loopback() {
            true => usize::MAX,
            false => self.limits.load().per_address_max,
        };
        let mut addresses = self.addresses.lock();
        let open = addresses.entry(address).or_insert(0);
        if *open >= max {
            drop(addresses);
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(LimitReached::Address);
        }
        *open += 1;
        Ok(())
    }

    /// Takes a slot among the connections from one address, even if there is none.
    pub(super) fn enter_address_again(&self, address: IpAddr) {
        *self
            .addresses
            .lock()
            .entry(address.to_canonical())
            .or_insert(0) += 1;
    }

    /// Gives a slot of an address back.
    pub(super) fn leave_address(&self, address: IpAddr) {
        let mut addresses = self.addresses.lock();
        if let Entry::Occupied(mut entry) = addresses.entry(address.to_canonical()) {
            *entry.get_mut() -= 1;
            if *entry.get() == 0 {
                entry.remove();
            }
        }
    }

    /// Returns the number of addresses that have connections.
    #[cfg(test)]
    pub(super) fn addresses(&self) -> usize {
        self.addresses.lock().len()
    }
}

impl LimitReached {
    /// Returns the reason for logs and `/ready`.
    pub(super) const fn reason(self) -> &'static str {
        match self {
            Self::Address => "too many connections from one address",
            Self::Connections => "connection limit reached",
            Self::Memory => "memory is short",
        }
    }

    /// Returns the reason for the client that is refused.
    pub(super) const fn told(self) -> &'static str {
        match self {
            Self::Address => "too many connections from your address\n",
            Self::Connections => "too many connections\n",
            Self::Memory => "server is short of memory, try again later\n",
        }
    }
}

impl Limits {
    fn new(options: &ServerOptions) -> Self {
        Self {
            connections_max: options.connections_max,
            per_address_max: options.connections_per_address_max,
            accepts_per_second_max: options.accepts_per_second_max,
            trusted: options.trusted_proxies.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_budget::Budget;

    use super::{Admission, LimitReached};
    use crate::config::{Config, ServerOptions};

    fn admission(connections_max: usize, per_address_max: usize) -> Admission {
        let options = ServerOptions {
            connections_max,
            connections_per_address_max: per_address_max,
            ..Config::default().server
        };
        Admission::new(Budget::unbounded(), &options)
    }

    #[test]
    fn places_of_an_address_are_its_own_and_those_of_this_machine_have_no_bound() {
        let admission = admission(10, 1);
        let address = "192.0.2.1".parse().unwrap();
        assert_eq!(admission.enter_address(address), Ok(()));
        let same = "::ffff:192.0.2.1".parse().unwrap();
        assert_eq!(admission.enter_address(same), Err(LimitReached::Address));
        let other = "192.0.2.2".parse().unwrap();
        assert_eq!(admission.enter_address(other), Ok(()));
        admission.leave_address(other);
        admission.leave_address(address);
        assert_eq!(admission.enter_address(same), Ok(()));
        admission.leave_address(same);
        let near = "127.0.0.1".parse().unwrap();
        for _ in 0..5 {
            assert_eq!(admission.enter_address(near), Ok(()));
        }
        assert_eq!(admission.addresses(), 1);
        for _ in 0..5 {
            admission.leave_address(near);
        }
        assert_eq!(admission.addresses(), 0);
    }

    #[test]
    fn limits_change_for_those_who_come_later() {
        let admission = admission(1, 1);
        assert_eq!(admission.enter(), Ok(()));
        admission.set_limits(&ServerOptions {
            connections_max: 2,
            ..Config::default().server
        });
        assert_eq!(admission.enter(), Ok(()));
        assert_eq!(admission.enter(), Err(LimitReached::Connections));
    }
}
