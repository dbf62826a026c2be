//! The side of the new process, with its sockets.

use std::{
    error::Error,
    io,
    net::{SocketAddr, TcpListener},
    os::fd::OwnedFd,
    path::Path,
    time::Duration,
};

use tokio::{
    net::UnixStream,
    time::{Instant, sleep, timeout},
};

use super::{
    TakeoverError, TakeoverSocket,
    link::{Link, LinkError},
    message::{Message, Process},
    peer::{Peer, PeerError, ProcessWatch, own_executable},
    step::{Fault, Step},
    successor::{Successor, SuccessorEvent},
};
use crate::{
    relocation::{Arrival, Relocation},
    server::{Endpoint, EndpointKind},
};

/// How long the end of a process may follow the end of its connection.
const END_TIMEOUT: Duration = Duration::from_secs(3);
/// Pause before another attempt to connect to a socket at which too many processes wait.
const CONNECT_INTERVAL: Duration = Duration::from_millis(20);

/// A takeover by this process. Dropping it leaves the old process serving, unless it
/// [was committed](Self::commit).
#[derive(Debug)]
pub(crate) struct Joining {
    link: Link,
    machine: Successor,
    old: Peer,
    watch: ProcessWatch,
    wanted: Vec<(u16, EndpointKind)>,
    /// The socket for the next takeover. It replaces the old process's once this one serves.
    socket: Option<TakeoverSocket>,
    is_alone: bool,
}

/// How a new process continues.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Continuation {
    /// The old process has died, so that this one is responsible.
    Alone,
    /// As the protocol provides.
    Together,
}

impl Joining {
    /// Asks the process that listens on the socket; returns `None` if no process does.
    ///
    /// # Errors
    /// Fails if the process refuses, or belongs to another user.
    pub(crate) async fn begin(path: Option<&Path>) -> Result<Option<Self>, TakeoverError> {
        let path = path.ok_or(TakeoverError::NotConfigured)?;
        let stream = match connect(path).await {
            Ok(stream) => stream,
            Err(error) if is_nobody(&error) => {
                tracing::info!(
                    socket = %path.display(),
                    "no process listens on server.takeover_socket: starting as usual"
                );
                return Ok(None);
            }
            Err(source) => {
                let path = path.to_owned();
                return Err(TakeoverError::Connect { path, source });
            }
        };
        let old = Peer::of(&stream)?;
        old.check_user()?;
        let watch = old.watch()?;
        tracing::info!(old = old.pid, socket = %path.display(), "takeover: asking the running process");
        let mut joining = Self {
            link: Link::new(stream),
            machine: Successor::new(this_process()),
            old,
            watch,
            wanted: Vec::new(),
            socket: None,
            is_alone: false,
        };
        match joining.next().await? {
            None => Ok(None),
            Some((SuccessorEvent::Welcomed(process), _)) => {
                tracing::info!(
                    old = joining.old.pid,
                    old_version = process.version,
                    old_executable = process.executable,
                    listeners = joining.machine.offers().len(),
                    "takeover: welcome"
                );
                joining.socket = Some(TakeoverSocket::bind_beside(path)?);
                Ok(Some(joining))
            }
            Some(_) => Err(joining.out_of_step()),
        }
    }

    /// Returns an endpoint without sockets if the old process listens on a configured address;
    /// [`receive`](Self::receive) adds the sockets.
    pub(crate) fn endpoint(
        &mut self,
        kind: EndpointKind,
        configured: SocketAddr,
        dead_peer_timeout: Duration,
    ) -> Option<Endpoint> {
        let offers = (0..).zip(self.machine.offers());
        let mut fitting = offers.filter(|(index, offer)| {
            let is_same = offer.kind == Some(kind) && offer.configured == configured;
            let is_free = self.wanted.iter().all(|(wanted, _)| wanted != index);
            (is_same || offer.address == configured) && is_free && offer.sockets > 0
        });
        let (index, offer) = fitting.next()?;
        let address = offer.address;
        self.wanted.push((index, kind));
        Some(Endpoint {
            kind,
            configured,
            address,
            dead_peer_timeout,
            sockets: Vec::new(),
        })
    }

    /// Receives the sockets of the endpoints that [`endpoint`](Self::endpoint) has returned. Call
    /// this when everything else is prepared.
    ///
    /// # Errors
    /// Fails if the old process refuses, or what it sends is invalid. It continues to serve.
    pub(crate) async fn receive(
        &mut self,
        endpoints: &mut [Endpoint],
    ) -> Result<Continuation, TakeoverError> {
        let wanted = self.wanted.iter().map(|(index, _)| *index);
        self.machine.ready(wanted.collect());
        self.flush().await;
        while !self.machine.has_all() {
            let (offer, descriptors) = match self.next().await? {
                None => return Ok(Continuation::Alone),
                Some((SuccessorEvent::Listeners(offer), descriptors)) => (offer, descriptors),
                Some(_) => return Err(self.out_of_step()),
            };
            let kind = self.wanted.iter().find(|(wanted, _)| *wanted == offer);
            let endpoint = kind.and_then(|(_, kind)| {
                let mut endpoints = endpoints.iter_mut();
                endpoints.find(|endpoint| endpoint.kind == *kind)
            });
            let Some(endpoint) = endpoint else {
                return Err(self.out_of_step());
            };
            for descriptor in descriptors {
                let adopted = endpoint.adopt(TcpListener::from(descriptor));
                adopted.map_err(Fault::Adopt)?;
            }
        }
        for endpoint in endpoints {
            tracing::info!(
                listener = %endpoint.kind,
                address = %endpoint.address,
                sockets = endpoint.sockets.len(),
                "takeover: listener ready"
            );
        }
        Ok(Continuation::Together)
    }

    /// Asks for the responsibility, and continues the clients of the old process if they come.
    /// If this succeeds, connections must be accepted at once.
    ///
    /// # Errors
    /// Fails if the old process does not hand over. It continues to serve.
    pub(crate) async fn complete(
        &mut self,
        relocation: Relocation,
    ) -> Result<Continuation, TakeoverError> {
        let mut arrival = Arrival::begin(relocation).await;
        let comes = self.relocate(&mut arrival).await?;
        let continuation = self.commit(comes.then_some(&mut arrival)).await?;
        let clients = arrival.finish().await;
        if comes {
            tracing::info!(clients, "takeover: clients continue in this process");
        }
        Ok(continuation)
    }

    /// Asks for the clients of the old process, and prepares to continue them. Returns whether they
    /// come.
    ///
    /// # Errors
    /// Fails if they cannot be continued. The old process continues to serve.
    async fn relocate(&mut self, arrival: &mut Arrival) -> Result<bool, TakeoverError> {
        if self.is_alone {
            return Ok(false);
        }
        let workers = u16::try_from(arrival.workers()).unwrap_or(u16::MAX);
        self.machine.relocate(workers, arrival.mark().to_vec());
        loop {
            match self.next().await? {
                None => return Ok(false),
                Some((SuccessorEvent::Stay(reason), _)) => {
                    tracing::info!(
                        reason,
                        "takeover: clients stay in the old process, which asks them to connect again"
                    );
                    return Ok(false);
                }
                Some((
                    SuccessorEvent::Channels {
                        clients,
                        is_last,
                        names,
                    },
                    _,
                )) => {
                    arrival.subscribe(&names).await.map_err(Fault::from)?;
                    if is_last {
                        arrival.warm_up(clients).await;
                        break;
                    }
                }
                Some(_) => return Err(self.out_of_step()),
            }
        }
        arrival.send_mark().await.map_err(Fault::from)?;
        Ok(true)
    }

    /// Asks for the responsibility, and receives the clients if they come. If this succeeds,
    /// connections must be accepted at once.
    ///
    /// # Errors
    /// Fails if the old process does not hand over. It continues to serve.
    async fn commit(
        &mut self,
        mut arrival: Option<&mut Arrival>,
    ) -> Result<Continuation, TakeoverError> {
        if self.is_alone {
            return Ok(Continuation::Alone);
        }
        self.machine.prepared();
        loop {
            let (event, descriptors) = match self.next().await? {
                None => return Ok(Continuation::Alone),
                Some(event) => event,
            };
            match (event, arrival.as_deref_mut()) {
                (SuccessorEvent::Committed, _) => return Ok(Continuation::Together),
                (SuccessorEvent::Channels { is_last, names, .. }, Some(arrival)) => {
                    arrival.subscribe(&names).await.map_err(Fault::from)?;
                    if is_last {
                        self.machine.subscribed();
                    }
                }
                (SuccessorEvent::Parcel(parcel), Some(arrival)) => {
                    arrival.receive(parcel, descriptors).map_err(Fault::from)?;
                }
                (SuccessorEvent::Moved, Some(arrival)) => {
                    arrival.complete().await.map_err(Fault::from)?;
                    self.machine.received();
                }
                _ => return Err(self.out_of_step()),
            }
        }
    }

    /// Returns the socket for the next takeover, in the place of the old process's.
    pub(crate) fn take_socket(&mut self) -> Option<TakeoverSocket> {
        let mut socket = self.socket.take()?;
        match socket.put_in_place() {
            Ok(()) => Some(socket),
            Err(error) => {
                tracing::error!(
                    %error,
                    path = %socket.path().display(),
                    "cannot replace server.takeover_socket: the next takeover needs a restart"
                );
                None
            }
        }
    }

    /// Reports that this process serves. The old one removes its clients from the lists of who is
    /// present when this is dropped.
    pub(crate) async fn confirm(&mut self) {
        self.flush().await;
        match self.is_alone {
            false => tracing::info!(old = self.old.pid, "takeover: serving"),
            true => tracing::warn!(
                old = self.old.pid,
                "the old process ended during the takeover: serving without it"
            ),
        }
    }

    /// Tells the old process why this one cannot continue.
    pub(crate) async fn give_up(self, error: &dyn Error) {
        let reason = with_causes(error);
        // The old process also notices the end of the connection.
        _ = self.link.send_at_once(&Message::Refuse { reason });
    }

    /// Sends what is due and returns the next event with its descriptors; `None` if the old process
    /// has died.
    async fn next(&mut self) -> Result<Option<(SuccessorEvent, Vec<OwnedFd>)>, TakeoverError> {
        self.flush().await;
        let step = self.machine.step();
        let received = match timeout(step.deadline(), self.link.receive()).await {
            Ok(received) => received,
            Err(_) => self.receive_last(step).await?,
        };
        match received {
            Ok((message, descriptors)) => {
                let event = self.machine.handle_message(message, descriptors.len())?;
                Ok(Some((event, descriptors)))
            }
            Err(source) => self.bereaved(Fault::Link { step, source }).await,
        }
    }

    /// Sends what is due. A failure shows when the next message does not arrive.
    async fn flush(&mut self) {
        while let Some(message) = self.machine.poll_transmit() {
            let sent = timeout(Step::Commit.deadline(), self.link.send(&message, &[])).await;
            if let Ok(Err(error)) = sent {
                tracing::debug!(%error, message = message.name(), "cannot send");
            }
        }
    }

    /// After a timeout, receives what the old process has sent by now, if anything: if it has sent
    /// `commit`, this process is responsible, and from here on it can no longer send it.
    async fn receive_last(
        &mut self,
        step: Step,
    ) -> Result<Result<(Message, Vec<OwnedFd>), LinkError>, TakeoverError> {
        let refused = self.link.refuse_more();
        refused.map_err(|error| Fault::Link {
            step,
            source: error.into(),
        })?;
        match self.link.receive().await {
            Err(LinkError::Closed) => Err(Fault::Timeout { step }.into()),
            received => Ok(received),
        }
    }

    /// Returns `None` if the old process has died, and the fault otherwise.
    async fn bereaved<T>(&mut self, fault: Fault) -> Result<Option<T>, TakeoverError> {
        let is_closed = match &fault {
            Fault::Link { source, .. } => matches!(source, LinkError::Closed | LinkError::Io(_)),
            _ => false,
        };
        if !is_closed || !self.watch.ends_within(END_TIMEOUT).await {
            return Err(fault.into());
        }
        tracing::warn!(
            old = self.old.pid,
            step = %self.machine.step(),
            "the old process ended during the takeover"
        );
        self.is_alone = true;
        Ok(None)
    }

    fn out_of_step(&self) -> TakeoverError {
        let step = self.machine.step();
        // The state machine returns one kind of event in each step.
        Fault::Unexpected {
            message: "event",
            step,
        }
        .into()
    }
}

impl From<Fault> for TakeoverError {
    fn from(fault: Fault) -> Self {
        Self::Failed(Box::new(fault))
    }
}

impl From<PeerError> for TakeoverError {
    fn from(error: PeerError) -> Self {
        Self::Failed(Box::new(error))
    }
}

/// Connects to the socket. If many processes are waiting there, waits with them.
async fn connect(path: &Path) -> io::Result<UnixStream> {
    let deadline = Instant::now() + Step::Welcome.deadline();
    loop {
        match UnixStream::connect(path).await {
            Err(error)
                if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < deadline =>
            {
                sleep(CONNECT_INTERVAL).await;
            }
            connected => return connected,
        }
    }
}

/// Returns what this process says of itself.
pub(super) fn this_process() -> Process {
    let executable = own_executable().unwrap_or_default();
    Process {
        pid: std::process::id(),
        executable: executable.display().to_string(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// Returns an error and its causes on one line.
pub(super) fn with_causes(error: &dyn Error) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    let texts: Vec<String> = causes.map(ToString::to_string).collect();
    texts.join(": ")
}

/// Returns whether no process listens: the socket does not exist or was left behind, or the process
/// has just ended.
fn is_nobody(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, ConnectionReset, NotFound};
    matches!(error.kind(), ConnectionRefused | ConnectionReset | NotFound)
}
