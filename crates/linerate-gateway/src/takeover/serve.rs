//! The side of the old process, with its sockets.

use std::{
    collections::HashSet,
    os::fd::{AsFd, BorrowedFd},
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use linerate_hub::ChannelName;
use linerate_proto::portable::Version;
use tokio::{
    net::UnixStream,
    sync::watch,
    time::{sleep, timeout},
};

use super::{
    TakeoverSocket,
    frame::DESCRIPTORS_MAX,
    join::{this_process, with_causes},
    link::Link,
    message::{Message, Offer, Process},
    peer::{Peer, PeerError, own_executable},
    predecessor::{Predecessor, PredecessorEvent},
    step::{Fault, Step},
};
use crate::{
    log_limiter::LogLimiter,
    metrics::TakeoverResult,
    relocation::{Departure, Relocation, write_names},
    server::{Endpoint, Stop, Stopped},
    session::SessionEnvironment,
};

/// Pause after a failed accept, for example because descriptors have run out.
const REST: Duration = Duration::from_millis(100);

/// How long the new process may take to store who is present, which it gives up before.
const STORED_MAX: Duration = Duration::from_secs(15);

/// What is logged when a takeover fails.
const FAILED: &str = "takeover failed; this process continues to serve";

/// Limits the log lines about processes that must not take over, which may ask often.
static REFUSALS: LogLimiter = LogLimiter::new();

/// Waits for a process that takes over, and hands over to it.
#[derive(Debug)]
pub(crate) struct Handover {
    /// Where processes connect.
    pub socket: TakeoverSocket,
    /// The listeners of this process. They are closed when this is dropped.
    pub endpoints: Vec<Endpoint>,
    /// Controls who accepts clients.
    pub clients: Arc<Stop>,
    /// Controls who accepts requests for monitoring.
    pub operations: Arc<Stop>,
    /// Observes whether this process stops.
    pub stopped: Stopped,
    /// The configuration, and the metrics.
    pub shared: Arc<SessionEnvironment>,
    /// The clients of this process.
    pub relocation: Relocation,
    /// Set once another process has taken over.
    pub successor: watch::Sender<Option<TakenOver>>,
}

/// The process that has taken over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TakenOver {
    /// Its process ID.
    pub process: u32,
    /// True as soon as it serves, or is known not to: clients that are disconnected from then on
    /// can connect, if they ever can.
    pub is_decided: bool,
}

/// What remains the same for all takeovers of a process.
#[derive(Debug)]
struct Identity {
    process: Process,
    /// The executable from which this process was started.
    executable: Option<PathBuf>,
}

/// One process that asks.
#[derive(Debug)]
struct Handing<'a> {
    handover: &'a Handover,
    link: Link,
    machine: Predecessor,
    peer: Peer,
    departure: Departure,
    /// The channels that the other process knows.
    channels: HashSet<ChannelName>,
    /// When the clients were paused.
    paused: Option<Instant>,
    /// The version of the states of clients, if they leave.
    relocation: Option<Version>,
    /// The version that both processes have.
    version: Option<Version>,
}

impl Handover {
    /// Serves one process after the other, until one has taken over or this process stops.
    pub(crate) async fn run(self) {
        // Determined at the start, because an upgrade replaces the file.
        let identity = Identity {
            process: this_process(),
            executable: own_executable().ok(),
        };
        tracing::info!(socket = %self.socket.path().display(), "ready to be taken over");
        let stopped = self.stopped.clone();
        loop {
            let stream = tokio::select! {
                () = stopped.stopping() => return,
                accepted = self.socket.accept() => accepted,
            };
            let stream = match stream {
                Ok(stream) => stream,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept on server.takeover_socket");
                    sleep(REST).await;
                    continue;
                }
            };
            if let Some(handing) = self.attend(&identity, stream).await {
                let Handing {
                    mut link,
                    machine,
                    peer,
                    departure,
                    paused,
                    ..
                } = handing;
                // The other process serves now, so that nothing must keep these open.
                let Self {
                    mut socket,
                    endpoints,
                    successor,
                    ..
                } = self;
                socket.leave();
                drop((socket, endpoints));
                let mut taken_over = TakenOver {
                    process: peer.pid,
                    is_decided: false,
                };
                successor.send_replace(Some(taken_over));
                confirm(&mut link, machine, peer.pid, paused).await;
                // Takes time that clients would have waited if this came before.
                departure.end().await;
                taken_over.is_decided = true;
                successor.send_replace(Some(taken_over));
                // The new process ends the connection once it has stored who is present.
                _ = timeout(STORED_MAX, link.receive()).await;
                departure.leave_presence();
                return;
            }
        }
    }

    /// Handles a process that asks. Returns `None` unless it has taken over.
    async fn attend(&self, identity: &Identity, stream: UnixStream) -> Option<Handing<'_>> {
        let metrics = self.shared.metrics();
        metrics.count_takeover(TakeoverResult::Started);
        let identified = self.identify(identity, &stream);
        let link = Link::new(stream);
        let peer = match identified {
            Ok(peer) => peer,
            Err(error) => {
                metrics.count_takeover(TakeoverResult::Failed);
                let reason = with_causes(&error);
                if let Some(count) = REFUSALS.ask(Instant::now()) {
                    tracing::warn!(reason, count, "{FAILED}");
                }
                // The other process also notices the end of the connection.
                _ = link.send_at_once(&Message::Refuse { reason });
                return None;
            }
        };
        let mut handing = Handing {
            handover: self,
            machine: Predecessor::new(identity.process.clone(), self.offers()),
            link,
            peer,
            departure: Departure(self.relocation.clone()),
            channels: HashSet::new(),
            paused: None,
            relocation: None,
            version: None,
        };
        let stopped = self.stopped.clone();
        let handed_over = tokio::select! {
            // A stop that begins now ends the takeover; a takeover that is committed ends in a
            // stop.
            biased;
            handed_over = handing.run() => handed_over,
            () = stopped.stopping() => Err(Fault::Stopping),
        };
        match handed_over {
            Ok(()) => {
                metrics.count_takeover(TakeoverResult::Succeeded);
                Some(handing)
            }
            Err(fault) => {
                // This process continues with its clients.
                handing.departure.take_back().await;
                metrics.count_takeover(TakeoverResult::Failed);
                let reason = with_causes(&fault);
                tracing::warn!(new = handing.peer.pid, reason, "{FAILED}");
                _ = handing.link.send_at_once(&Message::Refuse { reason });
                None
            }
        }
    }

    /// Checks whether the process at the other end may take over.
    fn identify(&self, identity: &Identity, stream: &UnixStream) -> Result<Peer, PeerError> {
        let peer = Peer::of(stream)?;
        peer.check_user()?;
        let settings = self.shared.settings_full();
        let named = settings.config.server.takeover_executable.as_ref();
        let executable = named.or(identity.executable.as_ref());
        peer.check_executable(executable.ok_or(PeerError::Unknown(None))?)?;
        Ok(peer)
    }

    fn offers(&self) -> Vec<Offer> {
        let offers = self.endpoints.iter().map(|endpoint| Offer {
            kind: Some(endpoint.kind),
            configured: endpoint.configured,
            address: endpoint.address,
            sockets: u16::try_from(endpoint.sockets.len()).unwrap_or(u16::MAX),
        });
        offers.collect()
    }
}

impl Handing<'_> {
    /// Follows the protocol until the other process is responsible.
    async fn run(&mut self) -> Result<(), Fault> {
        loop {
            match receive(&mut self.link, &mut self.machine).await? {
                PredecessorEvent::Asked(hello) => {
                    self.version = Version::negotiate(hello.state.0, hello.state.1).ok();
                    tracing::info!(
                        new = self.peer.pid,
                        new_version = hello.process.version,
                        new_executable = hello.process.executable,
                        "takeover: a new process is starting"
                    );
                }
                PredecessorEvent::Relocate(workers, mark) => {
                    self.relocate(workers, mark).await?;
                }
                PredecessorEvent::Wanted(wanted) => {
                    tracing::info!(
                        new = self.peer.pid,
                        listeners = wanted.len(),
                        "takeover: the new process is ready; sending listeners"
                    );
                    for offer in wanted {
                        self.send_listeners(offer).await?;
                    }
                }
                PredecessorEvent::Prepared => {
                    self.commit().await?;
                    tracing::info!(
                        new = self.peer.pid,
                        "takeover: the new process is responsible; no more connections are accepted"
                    );
                    return Ok(());
                }
                // The state machine expects these later only.
                PredecessorEvent::Subscribed
                | PredecessorEvent::Received
                | PredecessorEvent::Serving => {}
            }
            while let Some(message) = self.machine.poll_transmit() {
                self.send(&message, &[]).await?;
            }
        }
    }

    /// Prepares to hand over the clients, if the other process can continue them.
    async fn relocate(&mut self, workers: u16, mark: Vec<u8>) -> Result<(), Fault> {
        let departure = &self.departure;
        let version = match departure.check(workers) {
            Ok(()) => self.version.ok_or("the processes have no format in common"),
            Err(reason) => Err(reason),
        };
        match version {
            Ok(version) => {
                self.relocation = Some(version);
                departure.begin(mark.into()).await;
                self.send_channels().await
            }
            Err(reason) => {
                tracing::info!(
                    new = self.peer.pid,
                    reason,
                    "takeover: clients stay, and are asked to connect again"
                );
                self.machine.stay(reason.to_owned());
                Ok(())
            }
        }
    }

    /// Tells the other process what to subscribe to, in addition to what it knows.
    async fn send_channels(&mut self) -> Result<(), Fault> {
        let (clients, mut channels) = self.departure.channels().await?;
        channels.retain(|channel| self.channels.insert(channel.clone()));
        let mut parts = write_names(&channels).into_iter().peekable();
        while let Some(names) = parts.next() {
            let is_last = parts.peek().is_none();
            let message = Message::Channels {
                clients,
                is_last,
                names,
            };
            self.send(&message, &[]).await?;
        }
        Ok(())
    }

    /// Sends the clients, and waits until the other process could continue them.
    async fn send_clients(&mut self, version: Version) -> Result<(), Fault> {
        self.paused = Some(Instant::now());
        self.departure.settle().await?;
        self.send_channels().await?;
        self.machine.wait_for(Step::Subscribed);
        receive(&mut self.link, &mut self.machine).await?;
        let departed = self.departure.leave(version).await?;
        let clients = departed.clients;
        for parcel in departed.parcels {
            let sockets: Vec<_> = parcel.sockets.iter().map(|it| it.as_fd()).collect();
            self.send(&Message::Parcel(parcel.bytes), &sockets).await?;
        }
        self.send(&Message::Moved, &[]).await?;
        self.machine.wait_for(Step::Received);
        receive(&mut self.link, &mut self.machine).await?;
        tracing::info!(
            new = self.peer.pid,
            clients,
            "takeover: clients are on the way"
        );
        Ok(())
    }

    /// Sends the sockets of an offer, in as many messages as it takes.
    async fn send_listeners(&self, offer: u16) -> Result<(), Fault> {
        let endpoint = self.handover.endpoints.get(usize::from(offer));
        let sockets = endpoint.ok_or(Fault::Offer { offer })?.sockets.iter();
        let sockets: Vec<BorrowedFd<'_>> = sockets.map(AsFd::as_fd).collect();
        for sockets in sockets.chunks(DESCRIPTORS_MAX) {
            self.send(&Message::Listeners { offer }, sockets).await?;
        }
        Ok(())
    }

    async fn send(&self, message: &Message, descriptors: &[BorrowedFd<'_>]) -> Result<(), Fault> {
        let step = self.machine.step();
        match timeout(step.deadline(), self.link.send(message, descriptors)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Fault::Link {
                step,
                source: error.into(),
            }),
            Err(_) => Err(Fault::Timeout { step }),
        }
    }

    /// Stops accepting, sends the clients, and makes the other process responsible. If that fails,
    /// connections are accepted again.
    async fn commit(&mut self) -> Result<(), Fault> {
        let Handover {
            clients,
            operations,
            ..
        } = self.handover;
        let pause = async {
            let operations = operations.pause().await?;
            Some((operations, clients.pause().await?))
        };
        let step = Step::Pause;
        let paused = timeout(step.deadline(), pause).await;
        let paused = paused.map_err(|_| Fault::Timeout { step })?;
        let _guards = paused.ok_or(Fault::Stopping)?;
        if let Some(version) = self.relocation {
            self.send_clients(version).await?;
        }
        // A stop that begins now waits until this is decided.
        let is_handed_over = clients.hand_over(|| self.link.send_at_once(&Message::Commit));
        match is_handed_over.map_err(Fault::Commit)? {
            false => Err(Fault::Stopping),
            true => {
                self.machine.committed();
                operations.leave_at_once();
                Ok(())
            }
        }
    }
}

/// Receives a message within the deadline of the step.
async fn receive(link: &mut Link, machine: &mut Predecessor) -> Result<PredecessorEvent, Fault> {
    let step = machine.step();
    let received = timeout(step.deadline(), link.receive()).await;
    let received = received.map_err(|_| Fault::Timeout { step })?;
    let (message, descriptors) = received.map_err(|source| Fault::Link { step, source })?;
    machine.handle_message(message, descriptors.len())
}

/// Waits for the confirmation of the process that has taken over, for the log.
async fn confirm(link: &mut Link, mut machine: Predecessor, new: u32, paused: Option<Instant>) {
    let confirmed = receive(link, &mut machine).await;
    let paused = paused.map(|since| since.elapsed().as_secs_f64());
    match confirmed {
        Ok(_) => tracing::info!(new, paused_s = paused, "takeover: the new process serves"),
        Err(fault) => tracing::error!(
            new,
            reason = with_causes(&fault),
            "the new process has not confirmed that it serves; it must be restarted if it has died"
        ),
    }
}
