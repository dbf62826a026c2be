//! How many connections there may be, in all and from one address.

use std::{
    convert::Infallible,
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use arc_swap::ArcSwap;
use foldhash::fast::RandomState;
use hashbrown::{HashMap, hash_map::Entry};
use ipnet::IpNet;
use linerate_budget::{Account, Budget, Consumer, Share, State};
use tokio::sync::mpsc;

use super::stop::Stopped;
use crate::config::ServerOptions;

/// Counts the connections of all workers.
#[derive(Debug)]
pub struct Admission {
    limits: ArcSwap<Limits>,
    open: AtomicUsize,
    accepted: AtomicU64,
    refused: AtomicU64,
    budget: Budget,
    /// Counts what connections cost before they send anything.
    account: Account,
    addresses: Mutex<HashMap<IpAddr, usize, RandomState>>,
}

/// What can be changed while the server runs.
#[derive(Debug)]
struct Limits {
    connections_max: usize,
    per_address_max: usize,
    accepts_per_second_max: u32,
    trusted: Vec<IpNet>,
}

/// A connection's place, and its share of the farewell; shared by all that serve it, given back by the last of them.
///
/// It stands in the extensions of the requests, so that a WebSocket can keep it.
#[derive(Clone, Debug)]
pub struct Visit {
    place: Arc<(Place, mpsc::Sender<Infallible>)>,
    stopped: Stopped,
    part: f64,
    _address: Option<Arc<AddressPlace>>,
    stream: Option<Arc<Stream>>,
}

/// A request beside others on the same connection: it shares their place until its answer is one that goes on.
#[derive(Debug)]
struct Stream {
    /// Whose address is counted; `None` for a trusted proxy, which has told of the client's by then.
    address: Option<IpAddr>,
    places: OnceLock<(Place, Option<AddressPlace>)>,
}

/// A place among all connections.
#[derive(Debug)]
pub(super) struct Place {
    admission: Arc<Admission>,
    _share: Share,
}

/// Why nobody else is let in.
///
/// Complete: one answer for each.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Full {
    /// As many connections as allowed come from the same address.
    Address,
    /// As many connections as allowed are open.
    Connections,
    /// The memory budget is tight.
    Memory,
}

/// What a connection costs that sends nothing: its socket's tables, its task, its session, and what is too small to be
/// counted apart.
pub(crate) const CONNECTION_BYTES: u64 = 8 << 10;

/// A place among those of one address.
#[derive(Debug)]
pub(super) struct AddressPlace {
    admission: Arc<Admission>,
    address: IpAddr,
}

impl Admission {
    /// Starts with nobody in. Nobody is refused for want of memory.
    pub fn new(options: &ServerOptions) -> Self {
        Self::within(Budget::unbounded(), options)
    }

    /// As [`new`](Self::new), for a server whose memory is counted in `budget`.
    pub fn within(budget: Budget, options: &ServerOptions) -> Self {
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

    /// Holds other limits from now on; whoever is in stays.
    pub fn set_limits(&self, options: &ServerOptions) {
        self.limits.store(Arc::new(Limits::new(options)));
    }

    /// Returns how many connections are open.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Returns what the server's memory is counted in.
    pub const fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Returns whether there is room for one more.
    pub fn has_room(&self) -> bool {
        self.open() < self.limits.load().connections_max
    }

    /// Returns how many connections were accepted since the start.
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    /// Returns how many of them were refused for want of a place.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Returns how many connections may be accepted in a second, by all workers together.
    pub(super) fn accepts_per_second_max(&self) -> u32 {
        self.limits.load().accepts_per_second_max
    }

    /// Returns whether an address is that of a proxy whose word is taken.
    pub(super) fn trusts(&self, address: IpAddr) -> bool {
        let limits = self.limits.load();
        limits.trusted.iter().any(|net| net.contains(&address))
    }

    /// Takes a place among all connections, if one is free and there is memory for it.
    pub(super) fn admit(self: &Arc<Self>) -> Result<Place, Full> {
        self.accepted.fetch_add(1, Ordering::Relaxed);
        if self.budget.state() != State::Normal {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(Full::Memory);
        }
        let max = self.limits.load().connections_max;
        let one_more = |open| (open < max).then_some(open + 1);
        let taken = self
            .open
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        match taken {
            Ok(_) => Ok(Place {
                admission: self.clone(),
                _share: self.account.share(CONNECTION_BYTES),
            }),
            Err(_) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                Err(Full::Connections)
            }
        }
    }

    /// Takes a place among those of one address, if one is free. Addresses of this machine have places without
    /// bound: behind one may be a proxy that says of nobody where they come from.
    pub(super) fn admit_address(self: &Arc<Self>, address: IpAddr) -> Option<AddressPlace> {
        let address = address.to_canonical();
        let max = match address.is_loopback() {
            true => usize::MAX,
            false => self.limits.load().per_address_max,
        };
        let mut addresses = self.addresses();
        let open = addresses.entry(address).or_insert(0);
        if *open >= max {
            drop(addresses);
            self.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        *open += 1;
        drop(addresses);
        Some(AddressPlace {
            admission: self.clone(),
            address,
        })
    }

    fn addresses(&self) -> MutexGuard<'_, HashMap<IpAddr, usize, RandomState>> {
        self.addresses
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Full {
    /// Says why, for logs and `/ready`.
    pub(super) const fn reason(self) -> &'static str {
        match self {
            Self::Address => "as many connections as allowed come from one address",
            Self::Connections => "as many connections as allowed are open",
            Self::Memory => "memory is short",
        }
    }

    /// Says why, to who is refused.
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

impl Visit {
    /// Starts a visit; `open` is dropped with the last clone of it.
    pub(super) fn new(place: Place, open: mpsc::Sender<Infallible>, stopped: Stopped) -> Self {
        Self {
            place: Arc::new((place, open)),
            stopped,
            part: rand::random(),
            _address: None,
            stream: None,
        }
    }

    /// Takes the places of a session or of an answer that goes on, if the visit does not have them: several streams
    /// of HTTP/2 share a connection, but what each of them costs is what a connection does. They are kept until the
    /// last clone of the visit is dropped.
    ///
    /// # Errors
    /// No place is free, in all or among those of the address.
    pub fn stay(&self) -> Result<(), Full> {
        let Some(stream) = &self.stream else {
            return Ok(());
        };
        if stream.places.get().is_some() {
            return Ok(());
        }
        let admission = &self.place.0.admission;
        let place = admission.admit()?;
        let address = match stream.address {
            Some(address) => Some(admission.admit_address(address).ok_or(Full::Address)?),
            None => None,
        };
        // Whoever was faster has taken the same.
        _ = stream.places.set((place, address));
        Ok(())
    }

    /// Waits for the moment to say goodbye, which is at random within the window of the drain.
    pub async fn goodbye(&self) {
        self.stopped.goodbye(self.part).await;
    }

    /// Returns the visit of one request among others on the connection, which leaves at a time of its own.
    pub(super) fn on_stream(&self, address: Option<IpAddr>) -> Self {
        Self {
            part: rand::random(),
            stream: Some(Arc::new(Stream {
                address,
                places: OnceLock::new(),
            })),
            ..self.clone()
        }
    }

    /// Returns a visit that holds the place of an address as well.
    pub(super) fn with_address(&self, place: AddressPlace) -> Self {
        Self {
            place: self.place.clone(),
            _address: Some(Arc::new(place)),
            ..self.clone()
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.admission.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for AddressPlace {
    fn drop(&mut self) {
        if let Entry::Occupied(mut entry) = self.admission.addresses().entry(self.address) {
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

    use tokio::sync::mpsc::{self, error::TryRecvError};

    use super::{Admission, Full, Visit};
    use crate::{config::ServerOptions, server::Stop};

    fn admission(connections_max: usize, per_address_max: usize) -> Arc<Admission> {
        let options = ServerOptions {
            connections_max,
            connections_per_address_max: per_address_max,
            ..ServerOptions::default()
        };
        Arc::new(Admission::new(&options))
    }

    #[test]
    fn one_more_than_there_are_places_is_not_admitted() {
        let admission = admission(2, 1);
        let (_stop, stopped) = Stop::new();
        let (open, mut all_gone) = mpsc::channel(1);
        let visit = || Visit::new(admission.admit().unwrap(), open.clone(), stopped.clone());
        let (first, second) = (visit(), visit());
        drop(open);
        assert!(admission.admit().is_err() && !admission.has_room());
        let websocket = first.clone();
        drop(first);
        assert!(admission.admit().is_err(), "the WebSocket keeps the place");
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
        let place = admission.admit_address("192.0.2.1".parse().unwrap());
        assert!(place.is_some());
        let same = "::ffff:192.0.2.1".parse().unwrap();
        assert!(admission.admit_address(same).is_none());
        assert!(
            admission
                .admit_address("192.0.2.2".parse().unwrap())
                .is_some()
        );
        drop(place);
        assert!(admission.admit_address(same).is_some());
        let near: Vec<_> = (0..5)
            .map(|_| admission.admit_address("127.0.0.1".parse().unwrap()))
            .collect();
        assert!(near.iter().all(Option::is_some));
        drop(near);
        assert!(admission.addresses().is_empty());
    }

    #[test]
    fn a_stream_that_stays_takes_places_once_and_gives_them_back() {
        let admission = admission(3, 2);
        let (_stop, stopped) = Stop::new();
        let (open, _all_gone) = mpsc::channel(1);
        let address = "192.0.2.1".parse().unwrap();
        let connection = Visit::new(admission.admit().unwrap(), open, stopped)
            .with_address(admission.admit_address(address).unwrap());
        assert_eq!(connection.stay(), Ok(()), "a connection has its places");
        let [first, second] = [(); 2].map(|()| connection.on_stream(Some(address)));
        assert_eq!(admission.open(), 1, "a request takes none");
        for _ in 0..3 {
            assert_eq!(first.clone().stay(), Ok(()));
        }
        assert_eq!(admission.open(), 2);
        assert_eq!(second.stay(), Err(Full::Address));
        assert_eq!(admission.open(), 2, "the other place is given back");
        let proxied = connection.on_stream(None);
        assert_eq!(proxied.stay(), Ok(()));
        assert_eq!(connection.on_stream(None).stay(), Err(Full::Connections));
        drop(first);
        assert_eq!(second.stay(), Ok(()));
        drop((connection, second, proxied));
        assert_eq!(admission.open(), 0);
        assert!(admission.addresses().is_empty());
    }

    #[test]
    fn limits_change_for_those_who_come_later() {
        let admission = admission(1, 1);
        let place = admission.admit().unwrap();
        admission.set_limits(&ServerOptions {
            connections_max: 2,
            ..ServerOptions::default()
        });
        assert!(admission.admit().is_ok());
        drop(place);
    }
}
