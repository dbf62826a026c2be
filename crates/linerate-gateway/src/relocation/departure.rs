//! Clients that leave for another process.

use std::{collections::BTreeSet, time::Duration};

use bytes::Bytes;
use linerate_hub::ChannelName;
use linerate_proto::portable::Version;
use tokio::time::{sleep, timeout};

use super::{
    Relocation,
    fleet::{CHECK, Crew},
    parcel::{Packer, Parcel, pack_trail},
};
use crate::{node::intake::IntakeError, session::Settings};

/// How long sessions have to come to rest. Those that still wait for something stay.
const SETTLE_MAX: Duration = Duration::from_secs(1);

/// How long the mark may take through the broker, and the workers to pass on what has arrived.
const PASS_MAX: Duration = Duration::from_secs(5);

/// The clients of a process that leave for another one.
#[derive(Clone, Debug)]
pub(crate) struct Departure(pub(crate) Relocation);

/// What leaves: the clients, and which publications were passed on to them.
#[derive(Debug)]
pub(crate) struct Departed {
    /// The number of clients.
    pub(crate) clients: usize,
    pub(crate) parcels: Vec<Parcel>,
}

/// The reason why no client can leave.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum DepartureError {
    #[error(transparent)]
    Intake(#[from] IntakeError),
    /// Workers have not passed on in time what has arrived.
    #[error("workers have not passed on in {} s what has arrived", PASS_MAX.as_secs())]
    Busy,
    /// A worker has ended.
    #[error("worker has ended")]
    Ended,
}

impl Departure {
    /// Checks whether a process with `workers` workers can continue the clients. Returns the reason
    /// if it cannot.
    pub(crate) fn check(&self, workers: u16) -> Result<(), &'static str> {
        if self.0.workers != usize::from(workers) {
            return Err("the new process has another number of workers");
        }
        match self.0.node.broker.name() {
            "memory" => Err("publications are kept in this process; configure a broker"),
            _ => Ok(()),
        }
    }

    /// Notes what is passed on from now on, and looks for the mark that the other process will
    /// send.
    pub(crate) async fn begin(&self, mark: Bytes) {
        self.0.intake.follow(mark).await;
    }

    /// Returns the number of clients, and the channels that clients are subscribed to.
    pub(crate) async fn channels(&self) -> Result<(u32, Vec<ChannelName>), DepartureError> {
        let channels = self.0.fleet.run(async |crew: Crew| {
            let shard = crew.worker.shard();
            let channels = shard.channels.keys().cloned();
            (crew.clients.count(), channels.collect::<Vec<_>>())
        });
        let (mut clients, mut all) = (0, BTreeSet::new());
        for (clients_here, channels_here) in of_all(channels.await)? {
            clients += clients_here;
            all.extend(channels_here);
        }
        let clients = u32::try_from(clients).unwrap_or(u32::MAX);
        Ok((clients, all.into_iter().collect()))
    }

    /// Stops reading from clients, and waits until their sessions are at rest.
    pub(crate) async fn settle(&self) -> Result<(), DepartureError> {
        let fleet = &self.0.fleet;
        of_all(fleet.run(async |crew: Crew| crew.clients.settle()).await)?;
        let settled = fleet.wait_for(|crew| crew.clients.are_settled());
        // The clients whose sessions still wait for something stay.
        _ = timeout(SETTLE_MAX, settled).await;
        Ok(())
    }

    /// Stops passing on publications, and takes out the clients with everything that was passed on
    /// to them. If this fails, call [`take_back`](Self::take_back).
    ///
    /// # Errors
    /// The mark has not arrived, or workers have not passed on in time what has arrived.
    pub(crate) async fn leave(&self, version: Version) -> Result<Departed, DepartureError> {
        let marked = timeout(PASS_MAX, self.0.intake.marked());
        marked.await.map_err(|_| IntakeError::Unmarked)?;
        let passed = self.0.intake.stop().await?;
        let fleet = &self.0.fleet;
        let absorbed = async {
            while !self.0.intake.has_handled_control() {
                sleep(CHECK).await;
            }
            fleet.wait_for(|crew| crew.worker.has_absorbed_all()).await;
        };
        let absorbed = timeout(PASS_MAX, absorbed).await;
        absorbed.map_err(|_| DepartureError::Busy)?;
        let settings = self.0.environment.settings_full();
        let leaving = fleet.run(move |crew| {
            let settings = settings.clone();
            async move { pack(&crew, &settings, version) }
        });
        let (mut clients, mut parcels) = (0, pack_trail(passed, version));
        for (clients_here, parcels_here) in of_all(leaving.await)? {
            clients += clients_here;
            parcels.extend(parcels_here);
        }
        Ok(Departed { clients, parcels })
    }

    /// Continues all clients here. Everything that left must have been dropped.
    pub(crate) async fn take_back(&self) {
        let taken = self
            .0
            .fleet
            .run(async |crew: Crew| crew.clients.take_back());
        // A worker that has ended has no clients.
        taken.await;
        self.0.intake.resume().await;
    }

    /// Forgets the clients that the other process has taken over. Those that stayed are served as
    /// before. The broker lists all of them as present until
    /// [`leave_presence`](Self::leave_presence) is called.
    pub(crate) async fn end(&self) {
        self.0.node.presence.hold_entries();
        // A worker that has ended has no clients.
        let forgotten = self
            .0
            .fleet
            .run(async |crew: Crew| crew.clients.forget_moved());
        forgotten.await;
        self.0.intake.resume().await;
    }

    /// Removes the clients that have left from the lists of who is present, now that the other
    /// process has stored them.
    pub(crate) fn leave_presence(&self) {
        self.0.node.presence.release_entries();
    }
}

/// Takes the clients out of a worker, and packs them with the state of the channels. Returns their
/// number, and the parcels.
fn pack(crew: &Crew, settings: &Settings, version: Version) -> (usize, Vec<Parcel>) {
    let mut packer = Packer::new(version, crew.worker.index);
    let clients = &crew.clients;
    clients.suspend(version, |session, connection| {
        packer.client(session, connection);
    });
    let shard = crew.worker.shard();
    for channel in shard.channels.keys() {
        let Some(mut state) = shard.hub.channel_state(channel.as_str()) else {
            continue;
        };
        if !settings.channel(channel).durable {
            // Each node numbers the publications of these channels by itself.
            state.position = None;
        }
        packer.channel(channel, &state);
    }
    packer.finish()
}

/// Returns the results of all workers.
fn of_all<T>(results: Vec<Option<T>>) -> Result<Vec<T>, DepartureError> {
    let results = results.into_iter().collect::<Option<_>>();
    results.ok_or(DepartureError::Ended)
}
