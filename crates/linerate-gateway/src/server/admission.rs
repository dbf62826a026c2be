//! Limits on connections, in total and per address.

use std::{
    convert::Infallible,
    net::IpAddr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use arc_swap::ArcSwap;
use foldhash::fast::RandomState;
use hashbrown::{HashMap, hash_map::Entry};
use ipnet::IpNet;
use linerate_budget::{Account, Budget, Consumer, Share, State};
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::{Frontend, stop::Stopped};
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

/// The slot of a connection and its time to close during a shutdown. It is shared by all tasks
/// that serve the connection, and released with the last clone.
///
/// It is in the extensions of each request, so that a WebSocket can keep it.
#[derive(Clone, Debug)]
pub struct ConnectionGuard {
    slot: Arc<(ConnectionSlot, mpsc::Sender<Infallible>)>,
    stopped: Stopped,
    part: f64,
    _address: Option<Arc<AddressSlot>>,
    stream: Option<Arc<Stream>>,
}

/// What a [`ConnectionGuard`] holds, without the time to close.
#[derive(Debug)]
pub(crate) struct ConnectionPlace {
    _slot: Arc<(ConnectionSlot, mpsc::Sender<Infallible>)>,
    _address: Option<Arc<AddressSlot>>,
    _stream: Option<Arc<Stream>>,
}

/// A request that shares a connection with others. It uses the slot of the connection until its
/// response turns out to be a stream or a WebSocket.
#[derive(Debug)]
struct Stream {
    /// The address to count; `None` for a trusted proxy, because the client's address, reported by
    /// the proxy, is counted instead.
    address: Option<IpAddr>,
    slots: OnceLock<(ConnectionSlot, Option<AddressSlot>)>,
}

/// A slot among all connections.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    admission: Arc<Admission>,
    _share: Share,
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

/// A slot among the connections from one address.
#[derive(Debug)]
pub(super) struct AddressSlot {
    admission: Arc<Admission>,
    address: IpAddr,
}

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

    /// Takes a slot among all connections, if one is free and memory is not short.
    pub(super) fn admit(self: &Arc<Self>) -> Result<ConnectionSlot, LimitReached> {
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
        match taken {
            Ok(_) => Ok(ConnectionSlot {
                admission: self.clone(),
                _share: self.account.share(CONNECTION_BYTES),
            }),
            Err(_) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                Err(LimitReached::Connections)
            }
        }
    }

    /// Takes a slot for a connection that another process has accepted, even if there is none.
    fn readmit(self: &Arc<Self>) -> ConnectionSlot {
        self.open.fetch_add(1, Ordering::Relaxed);
        ConnectionSlot {
            admission: self.clone(),
            _share: self.account.share(CONNECTION_BYTES),
        }
    }

    /// Takes a slot among the connections from one address, even if there is none.
    fn readmit_address(self: &Arc<Self>, address: IpAddr) -> AddressSlot {
        let address = address.to_canonical();
        *self.addresses.lock().entry(address).or_insert(0) += 1;
        AddressSlot {
            admission: self.clone(),
            address,
        }
    }

    /// Takes a slot among the connections from one address, if one is free. Loopback addresses are
    /// not limited, because they may belong to a proxy that does not report client addresses.
    pub(super) fn admit_address(self: &Arc<Self>, address: IpAddr) -> Option<AddressSlot> {
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
            return None;
        }
        *open += 1;
        drop(addresses);
        Some(AddressSlot {
            admission: self.clone(),
            address,
        })
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

impl ConnectionGuard {
    /// Creates a guard. `open` is dropped with its last clone.
    pub(super) fn new(
        slot: ConnectionSlot,
        open: mpsc::Sender<Infallible>,
        stopped: Stopped,
    ) -> Self {
        Self {
            slot: Arc::new((slot, open)),
            stopped,
            part: rand::random(),
            _address: None,
            stream: None,
        }
    }

    /// Creates a guard for a connection that another process has accepted.
    pub(crate) fn of_another_process(
        frontend: &Frontend,
        address: Option<IpAddr>,
        open: mpsc::Sender<Infallible>,
    ) -> Self {
        let admission = &frontend.admission;
        let guard = Self::new(admission.readmit(), open, frontend.stopped.clone());
        match address {
            Some(address) => guard.with_address(admission.readmit_address(address)),
            None => guard,
        }
    }

    /// Takes the slots for a session or a streaming response, unless the guard has them already.
    /// Several HTTP/2 streams share one connection, but each long-lived one costs as much as a
    /// connection. The slots are released with the last clone of the guard.
    ///
    /// # Errors
    /// Fails if no slot is free, in total or for the address.
    pub(crate) fn stay(&self) -> Result<(), LimitReached> {
        let Some(stream) = &self.stream else {
            return Ok(());
        };
        if stream.slots.get().is_some() {
            return Ok(());
        }
        let admission = &self.slot.0.admission;
        let slot = admission.admit()?;
        let address = match stream.address {
            Some(address) => Some(
                admission
                    .admit_address(address)
                    .ok_or(LimitReached::Address)?,
            ),
            None => None,
        };
        // If another task was faster, it has set equivalent slots.
        _ = stream.slots.set((slot, address));
        Ok(())
    }

    /// Returns what the guard holds, for a session that is told when to close.
    pub(crate) fn into_place(self) -> ConnectionPlace {
        ConnectionPlace {
            _slot: self.slot,
            _address: self._address,
            _stream: self.stream,
        }
    }

    /// Waits for the time to close, which is chosen at random within the drain window.
    pub async fn goodbye(&self) {
        self.stopped.goodbye(self.part).await;
    }

    /// Returns the guard for a request that shares the connection with others. It has its own time
    /// to close.
    pub(super) fn on_stream(&self, address: Option<IpAddr>) -> Self {
        Self {
            part: rand::random(),
            stream: Some(Arc::new(Stream {
                address,
                slots: OnceLock::new(),
            })),
            ..self.clone()
        }
    }

    /// Returns a guard that also holds a slot of an address.
    pub(super) fn with_address(&self, slot: AddressSlot) -> Self {
        Self {
            slot: self.slot.clone(),
            _address: Some(Arc::new(slot)),
            ..self.clone()
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.admission.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for AddressSlot {
    fn drop(&mut self) {
        if let Entry::Occupied(mut entry) = self.admission.addresses.lock().entry(self.address) {
            *entry.get_mut() -= 1;
            if *entry.get() == 0 {
                entry.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use linerate_budget::Budget;
    use tokio::sync::mpsc::{self, error::TryRecvError};

    use super::{Admission, ConnectionGuard, LimitReached};
    use crate::{
        config::{Config, ServerOptions},
        server::Stop,
    };

    fn admission(connections_max: usize, per_address_max: usize) -> Arc<Admission> {
        let options = ServerOptions {
            connections_max,
            connections_per_address_max: per_address_max,
            ..Config::default().server
        };
        Arc::new(Admission::new(Budget::unbounded(), &options))
    }

    #[test]
    fn one_more_than_there_are_places_is_not_admitted() {
        let admission = admission(2, 1);
        let (_stop, stopped) = Stop::new();
        let (open, mut all_gone) = mpsc::channel(1);
        let guard =
            || ConnectionGuard::new(admission.admit().unwrap(), open.clone(), stopped.clone());
        let (first, second) = (guard(), guard());
        drop(open);
        assert!(admission.admit().is_err() && !admission.has_room());
        let websocket = first.clone();
        drop(first);
        assert!(admission.admit().is_err(), "the WebSocket keeps the slot");
        drop(second);
        assert!(
            all_gone
                .try_recv()
                .is_err_and(|error| error == TryRecvError::Empty)
        );
        drop(websocket);
        assert!(
            all_gone
                .try_recv()
                .is_err_and(|error| error == TryRecvError::Disconnected)
        );
        assert!(admission.admit().is_ok());
        assert_eq!((admission.open(), admission.refused()), (0, 2));
    }

    #[test]
    fn places_of_an_address_are_its_own_and_those_of_this_machine_have_no_bound() {
        let admission = admission(10, 1);
        let slot = admission.admit_address("192.0.2.1".parse().unwrap());
        assert!(slot.is_some());
        let same = "::ffff:192.0.2.1".parse().unwrap();
        assert!(admission.admit_address(same).is_none());
        assert!(
            admission
                .admit_address("192.0.2.2".parse().unwrap())
                .is_some()
        );
        drop(slot);
        assert!(admission.admit_address(same).is_some());
        let near: Vec<_> = (0..5)
            .map(|_| admission.admit_address("127.0.0.1".parse().unwrap()))
            .collect();
        assert!(near.iter().all(Option::is_some));
        drop(near);
        assert!(admission.addresses.lock().is_empty());
    }

    #[test]
    fn a_stream_that_stays_takes_places_once_and_gives_them_back() {
        let admission = admission(3, 2);
        let (_stop, stopped) = Stop::new();
        let (open, _all_gone) = mpsc::channel(1);
        let address = "192.0.2.1".parse().unwrap();
        let connection = ConnectionGuard::new(admission.admit().unwrap(), open, stopped)
            .with_address(admission.admit_address(address).unwrap());
        assert_eq!(
            connection.stay(),
            Ok(()),
            "a connection already has its slots"
        );
        let [first, second] = [(); 2].map(|()| connection.on_stream(Some(address)));
        assert_eq!(admission.open(), 1, "a request takes none");
        for _ in 0..3 {
            assert_eq!(first.clone().stay(), Ok(()));
        }
        assert_eq!(admission.open(), 2);
        assert_eq!(second.stay(), Err(LimitReached::Address));
        assert_eq!(admission.open(), 2, "the other slot is released");
        let proxied = connection.on_stream(None);
        assert_eq!(proxied.stay(), Ok(()));
        assert_eq!(
            connection.on_stream(None).stay(),
            Err(LimitReached::Connections)
        );
        drop(first);
        assert_eq!(second.stay(), Ok(()));
        drop((connection, second, proxied));
        assert_eq!(admission.open(), 0);
        assert!(admission.addresses.lock().is_empty());
    }

    #[test]
    fn limits_change_for_those_who_come_later() {
        let admission = admission(1, 1);
        let slot = admission.admit().unwrap();
        admission.set_limits(&ServerOptions {
            connections_max: 2,
            ..Config::default().server
        });
        assert!(admission.admit().is_ok());
        drop(slot);
    }
}
