//! Keeps the slots of a connection for as long as something serves it.

use std::{
    convert::Infallible,
    net::IpAddr,
    sync::{Arc, OnceLock},
};

use tokio::sync::mpsc;

use super::{
    Frontend,
    admission::{Admission, LimitReached},
    stop::Stopped,
};

/// The slot of a connection and its time to close during a shutdown. It is shared by all tasks
/// that serve the connection, and released with the last clone.
///
/// It is in the extensions of each request, so that a WebSocket can keep it.
#[derive(Clone, Debug)]
pub struct ConnectionGuard {
    place: ConnectionPlace,
    stopped: Stopped,
    part: f64,
    stream: Option<Arc<Stream>>,
}

/// What a [`ConnectionGuard`] holds, without the time to close.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionPlace(Arc<Slots>);

/// The slots of a connection, of a request that a proxy has forwarded, or of a stream. They are
/// given back when this is dropped.
#[derive(Debug)]
struct Slots {
    admission: Arc<Admission>,
    /// Dropped with the last slots of the worker.
    open: mpsc::Sender<Infallible>,
    /// True if a slot among all connections was taken.
    is_connection: bool,
    /// The address of which a slot was taken.
    address: Option<IpAddr>,
    /// The slots of the connection of a request or a stream.
    _outer: Option<ConnectionPlace>,
}

/// A request that shares a connection with others. It uses the slot of the connection until its
/// response turns out to be a stream or a WebSocket.
#[derive(Debug)]
struct Stream {
    /// The address to count; `None` for a trusted proxy, because the client's address, reported by
    /// the proxy, is counted instead.
    address: Option<IpAddr>,
    place: OnceLock<ConnectionPlace>,
}

impl ConnectionGuard {
    /// Takes a slot among all connections. `open` is dropped with the last clone of the guard.
    ///
    /// # Errors
    /// Fails if no slot is free, or memory is short.
    pub(super) fn new(
        admission: &Arc<Admission>,
        open: mpsc::Sender<Infallible>,
        stopped: Stopped,
    ) -> Result<Self, LimitReached> {
        admission.enter()?;
        Ok(Self::of_slots(Slots::new(admission.clone(), open), stopped))
    }

    /// Creates a guard for a connection that another process has accepted.
    pub(crate) fn of_another_process(
        frontend: &Frontend,
        address: Option<IpAddr>,
        open: mpsc::Sender<Infallible>,
    ) -> Self {
        let admission = &frontend.admission;
        admission.enter_again();
        if let Some(address) = address {
            admission.enter_address_again(address);
        }
        let mut slots = Slots::new(admission.clone(), open);
        slots.address = address;
        Self::of_slots(slots, frontend.stopped.clone())
    }

    /// Returns a guard that also holds a slot of an address.
    ///
    /// # Errors
    /// Fails if no slot of the address is free.
    pub(super) fn with_address(mut self, address: IpAddr) -> Result<Self, LimitReached> {
        self.place.0.admission.enter_address(address)?;
        match Arc::get_mut(&mut self.place.0) {
            Some(slots) if slots.address.is_none() => slots.address = Some(address),
            _ => {
                let mut slots = Slots::within(&self.place);
                slots.address = Some(address);
                self.place = ConnectionPlace(Arc::new(slots));
            }
        }
        Ok(self)
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
        if stream.place.get().is_some() {
            return Ok(());
        }
        let mut slots = Slots::within(&self.place);
        slots.admission.enter()?;
        slots.is_connection = true;
        if let Some(address) = stream.address {
            slots.admission.enter_address(address)?;
            slots.address = Some(address);
        }
        // If another task was faster, it has set equivalent slots.
        _ = stream.place.set(ConnectionPlace(Arc::new(slots)));
        Ok(())
    }

    /// Takes slots like those of the connection for a session that does not end with it, because
    /// its client sends requests on several connections.
    ///
    /// # Errors
    /// Fails if no slot is free, in total or for the address, or memory is short.
    pub(crate) fn apart(&self) -> Result<ConnectionPlace, LimitReached> {
        let of_connection = &self.place.0;
        let of_stream = self.stream.as_ref().and_then(|stream| stream.address);
        of_connection.admission.enter()?;
        let open = of_connection.open.clone();
        let mut slots = Slots::new(of_connection.admission.clone(), open);
        if let Some(address) = of_stream.or(of_connection.address) {
            slots.admission.enter_address(address)?;
            slots.address = Some(address);
        }
        Ok(ConnectionPlace(Arc::new(slots)))
    }

    /// Returns what the guard holds, for a session that is told when to close.
    pub(crate) fn into_place(self) -> ConnectionPlace {
        let of_stream = self.stream.and_then(|stream| stream.place.get().cloned());
        of_stream.unwrap_or(self.place)
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
                place: OnceLock::new(),
            })),
            ..self.clone()
        }
    }

    fn of_slots(slots: Slots, stopped: Stopped) -> Self {
        Self {
            place: ConnectionPlace(Arc::new(slots)),
            stopped,
            part: rand::random(),
            stream: None,
        }
    }
}

impl Slots {
    /// Returns the slot of a connection, which was taken before.
    const fn new(admission: Arc<Admission>, open: mpsc::Sender<Infallible>) -> Self {
        Self {
            admission,
            open,
            is_connection: true,
            address: None,
            _outer: None,
        }
    }

    /// Returns no slots yet, for something that uses a connection.
    fn within(outer: &ConnectionPlace) -> Self {
        Self {
            admission: outer.0.admission.clone(),
            open: outer.0.open.clone(),
            is_connection: false,
            address: None,
            _outer: Some(outer.clone()),
        }
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        if self.is_connection {
            self.admission.leave();
        }
        if let Some(address) = self.address {
            self.admission.leave_address(address);
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
        let guard = || ConnectionGuard::new(&admission, open.clone(), stopped.clone());
        let (first, second) = (guard().unwrap(), guard().unwrap());
        assert!(guard().is_err() && !admission.has_room());
        let websocket = first.clone();
        drop(first);
        assert!(guard().is_err(), "the WebSocket keeps the slot");
        drop(second);
        drop(guard().unwrap());
        drop(open);
        let is_open = |error| error == TryRecvError::Empty;
        assert!(all_gone.try_recv().is_err_and(is_open));
        drop(websocket);
        assert!(all_gone.try_recv().is_err_and(|error| !is_open(error)));
        assert_eq!((admission.open(), admission.refused()), (0, 2));
    }

    #[test]
    fn a_request_of_another_address_is_counted_until_it_is_over() {
        let admission = admission(1, 1);
        let (_stop, stopped) = Stop::new();
        let (open, _all_gone) = mpsc::channel(1);
        let [proxy, client] = ["192.0.2.1", "192.0.2.2"].map(|it| it.parse().unwrap());
        let connection = ConnectionGuard::new(&admission, open, stopped).unwrap();
        let connection = connection.with_address(proxy).unwrap();
        assert!(connection.clone().with_address(proxy).is_err());
        let request = connection.clone().with_address(client).unwrap();
        drop(connection);
        assert_eq!(admission.enter_address(client), Err(LimitReached::Address));
        assert_eq!(admission.enter_address(proxy), Err(LimitReached::Address));
        assert_eq!(admission.open(), 1, "the request keeps its connection");
        let place = request.into_place();
        assert_eq!(admission.open(), 1);
        drop(place);
        assert_eq!(admission.open(), 0);
        assert_eq!(admission.addresses(), 0);
    }

    #[test]
    fn a_session_on_several_connections_has_places_of_its_own() {
        let admission = admission(3, 3);
        let (_stop, stopped) = Stop::new();
        let (open, _all_gone) = mpsc::channel(1);
        let address = "192.0.2.1".parse().unwrap();
        let connection = ConnectionGuard::new(&admission, open, stopped).unwrap();
        let connection = connection.with_address(address).unwrap();
        let first = connection.apart().unwrap();
        let second = connection.on_stream(Some(address)).apart().unwrap();
        assert_eq!(connection.apart().unwrap_err(), LimitReached::Connections);
        assert_eq!(admission.enter_address(address), Err(LimitReached::Address));
        drop((connection, first));
        assert_eq!(admission.open(), 1, "the session outlives the connection");
        drop(second);
        assert_eq!((admission.open(), admission.addresses()), (0, 0));
    }

    #[test]
    fn a_stream_that_stays_takes_places_once_and_gives_them_back() {
        let admission = admission(3, 2);
        let (_stop, stopped) = Stop::new();
        let (open, _all_gone) = mpsc::channel(1);
        let address = "192.0.2.1".parse().unwrap();
        let connection = ConnectionGuard::new(&admission, open, stopped).unwrap();
        let connection = connection.with_address(address).unwrap();
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
        let place = second.into_place();
        drop((connection, proxied));
        assert_eq!(admission.open(), 2, "the stream keeps its connection");
        drop(place);
        assert_eq!((admission.open(), admission.addresses()), (0, 0));
    }
}
