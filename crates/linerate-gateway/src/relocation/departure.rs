//! Clients that leave for another process.

use std::{collections::BTreeSet, time::Duration};

use bytes::Bytes;
use linerate_hub::{ChannelName, hub::ChannelState};
use linerate_proto::portable::Version;
use tokio::time::{sleep, timeout};

use super::{
    Relocation,
    fleet::{CHECK, Crew},
};
use crate::{
    node::{intake::IntakeError, splice::Trail},
    session::Settings,
    transport::LeavingClient,
};

/// How long sessions have to come to rest. Those that still wait for something stay.
const SETTLE_MAX: Duration = Duration::from_secs(1);

/// How long the mark may take through the broker, and the workers to pass on what has arrived.
const PASS_MAX: Duration = Duration::from_secs(5);

/// The clients of a process that leave for another one.
#[derive(Clone, Debug)]
pub(crate) struct Departure(pub(crate) Relocation);

/// What leaves.
#[derive(Debug)]
pub(crate) struct Departed<C> {
    /// The publications that were passed on to the clients.
    pub(crate) passed: Trail,
    pub(crate) workers: Vec<DepartedWorker<C>>,
}

/// What leaves one worker.
#[derive(Debug)]
pub(crate) struct DepartedWorker<C> {
    pub(crate) channels: Vec<(ChannelName, ChannelState)>,
    pub(crate) clients: Vec<C>,
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

impl<C> Departed<C> {
    /// Returns the state without clients, for this number of workers.
    pub(crate) fn empty(workers: usize) -> Self {
        let empty = || DepartedWorker {
            channels: Vec::new(),
            clients: Vec::new(),
        };
        Self {
            passed: Trail::default(),
            workers: std::iter::repeat_with(empty).take(workers).collect(),
        }
    }

    /// Returns the number of clients.
    pub(crate) fn clients(&self) -> usize {
        self.workers.iter().map(|worker| worker.clients.len()).sum()
    }
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

    /// Returns the channels that clients of this process are subscribed to.
    pub(crate) async fn channels(&self) -> Result<Vec<ChannelName>, DepartureError> {
        let channels = self.0.fleet.run(async |crew: Crew| {
            let shard = crew.worker.shard();
            shard.channels.keys().cloned().collect::<Vec<_>>()
        });
        let channels: Vec<_> = of_all(channels.await)?;
        let all: BTreeSet<_> = channels.into_iter().flatten().collect();
        Ok(all.into_iter().collect())
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
    pub(crate) async fn leave(
        &self,
        version: Version,
    ) -> Result<Departed<LeavingClient>, DepartureError> {
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
            async move { DepartedWorker::of(&crew, &settings, version) }
        });
        let workers = of_all(leaving.await)?;
        Ok(Departed { passed, workers })
    }

    /// Continues all clients here. Everything that left must have been dropped.
    pub(crate) async fn take_back(&self) {
        let environment = self.0.environment.clone();
        let taken = self.0.fleet.run(move |crew| {
            let environment = environment.clone();
            async move { crew.clients.take_back(&environment) }
        });
        // A worker that has ended has no clients.
        taken.await;
        self.0.intake.resume().await;
    }

    /// Forgets the clients that the other process has taken over. Those that stayed are served as
    /// before.
    pub(crate) async fn end(&self) {
        // A worker that has ended has no clients.
        let forgotten = self
            .0
            .fleet
            .run(async |crew: Crew| crew.clients.forget_moved());
        forgotten.await;
        self.0.intake.resume().await;
    }
}

impl DepartedWorker<LeavingClient> {
    fn of(crew: &Crew, settings: &Settings, version: Version) -> Self {
        let clients = crew.clients.suspend(version);
        let shard = crew.worker.shard();
        let channels = shard.channels.keys().filter_map(|channel| {
            let mut state = shard.hub.channel_state(channel.as_str())?;
            // Each node numbers the publications of the other channels by itself.
            state
                .position
                .take_if(|_| !settings.channel(channel).durable);
            Some((channel.clone(), state))
        });
        Self {
            channels: channels.collect(),
            clients,
        }
    }
}

/// Returns the results of all workers.
fn of_all<T>(results: Vec<Option<T>>) -> Result<Vec<T>, DepartureError> {
    let results = results.into_iter().collect::<Option<_>>();
    results.ok_or(DepartureError::Ended)
}
