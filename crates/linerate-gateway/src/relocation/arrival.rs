//! Clients that come from another process.

use std::{hint::black_box, os::fd::OwnedFd, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, future::join_all, stream};
use linerate_broker::BrokerError;
use linerate_hub::ChannelName;
use tokio::{task::JoinHandle, time::timeout};

use super::{
    Relocation,
    fleet::Crew,
    parcel::{Contents, ParcelError, read_names, unpack, worker_of},
};
use crate::{
    node::{InterestGuard, intake::IntakeError, splice::Trail},
    server::ConnectionGuard,
};

/// How long the mark may take through the broker.
const MARK_MAX: Duration = Duration::from_secs(5);

/// The number of channels that are subscribed concurrently.
const SUBSCRIBES_AT_ONCE: usize = 256;

/// About how much memory a client takes while it is unpacked and continued, in bytes.
const CLIENT_BYTES: usize = 12 << 10;

/// The maximum size of the memory that a worker touches before its clients come, in bytes.
const WARM_BYTES_MAX: usize = 256 << 20;

/// The size of the blocks of this memory, in bytes: about that of what clients take, so that
/// allocators use the same memory for them.
const WARM_BLOCK_BYTES: usize = 2 << 10;

/// The clients of another process that come to this one.
#[derive(Debug)]
pub(crate) struct Arrival {
    relocation: Relocation,
    /// Keeps the channels subscribed until clients do.
    held: Vec<InterestGuard>,
    mark: Bytes,
    /// Memory that each worker frees before its clients take it.
    warm: Vec<Vec<Vec<u8>>>,
    unpacking: Vec<Unpacking>,
    /// The publications that the other process has passed on.
    passed: Trail,
    /// What has come for each worker.
    contents: Vec<Vec<Contents>>,
    /// True if everything has come.
    is_complete: bool,
}

/// A parcel that a worker unpacks.
#[derive(Debug)]
struct Unpacking {
    worker: usize,
    contents: JoinHandle<Option<Result<Contents, ParcelError>>>,
}

/// The reason why clients cannot be continued.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArrivalError {
    #[error(transparent)]
    Broker(#[from] BrokerError),
    #[error(transparent)]
    Intake(#[from] IntakeError),
    #[error(transparent)]
    Parcel(#[from] ParcelError),
    /// A parcel is for a worker that does not exist.
    #[error("parcel is for worker {index}, which this process does not have")]
    Worker { index: u16 },
    /// A worker has ended.
    #[error("worker has ended")]
    Ended,
}

impl Arrival {
    /// Holds back all publications until the clients have come, and what is stored about them at
    /// the broker. Waits until all workers run.
    pub(crate) async fn begin(relocation: Relocation) -> Self {
        relocation.fleet.complete(relocation.workers).await;
        let mark = Bytes::from(format!("takeover {}", uuid::Uuid::new_v4()));
        relocation.intake.hold_from(mark.clone()).await;
        relocation.node.presence.hold_entries();
        Self {
            contents: std::iter::repeat_with(Vec::new)
                .take(relocation.workers)
                .collect(),
            relocation,
            held: Vec::new(),
            mark,
            warm: Vec::new(),
            unpacking: Vec::new(),
            passed: Trail::default(),
            is_complete: false,
        }
    }

    /// Returns the number of workers of this process.
    pub(crate) fn workers(&self) -> usize {
        self.relocation.workers
    }

    /// Returns the mark that the other process must look for.
    pub(crate) const fn mark(&self) -> &Bytes {
        &self.mark
    }

    /// Subscribes at the broker to the channels that the other process has named.
    ///
    /// # Errors
    /// A name is invalid, or the broker is unavailable or refuses.
    pub(crate) async fn subscribe(&mut self, names: &[u8]) -> Result<(), ArrivalError> {
        let channels = read_names(names).map_err(ParcelError::from)?;
        let settings = self.relocation.environment.settings_full();
        let held = stream::iter(&channels).map(|channel: &ChannelName| {
            let options = settings.channel(channel).stream();
            self.relocation.node.hold(channel, options)
        });
        let held = held.buffer_unordered(SUBSCRIBES_AT_ONCE);
        let held: Vec<_> = held.try_collect().await?;
        self.held.extend(held);
        Ok(())
    }

    /// Touches about as much memory as `clients` clients will take, so that the kernel does not
    /// have to provide it while they wait.
    pub(crate) async fn warm_up(&mut self, clients: u32) {
        let clients = usize::try_from(clients).unwrap_or(usize::MAX);
        let bytes = clients.saturating_mul(CLIENT_BYTES) / self.relocation.workers.max(1);
        let blocks = bytes.min(WARM_BYTES_MAX) / WARM_BLOCK_BYTES;
        let touched = self.relocation.fleet.run(move |_| async move {
            let block = || black_box(vec![1_u8; WARM_BLOCK_BYTES]);
            std::iter::repeat_with(block).take(blocks).collect()
        });
        let touched = touched.await.into_iter();
        self.warm = touched.map(Option::unwrap_or_default).collect();
    }

    /// Sends the mark by way of the broker, and waits until it arrives here. Call this when the
    /// other process looks for it.
    ///
    /// # Errors
    /// The broker is unavailable or refuses.
    pub(crate) async fn send_mark(&self) -> Result<(), ArrivalError> {
        let (broker, mark) = (&self.relocation.node.broker, self.mark.clone());
        broker.send_control(None, mark).await?;
        // Without it, the clients are not continued.
        _ = timeout(MARK_MAX, self.relocation.intake.marked()).await;
        Ok(())
    }

    /// Receives a parcel, which its worker unpacks.
    ///
    /// # Errors
    /// The parcel is for a worker that this process does not have.
    pub(crate) fn receive(
        &mut self,
        parcel: Vec<u8>,
        sockets: Vec<OwnedFd>,
    ) -> Result<(), ArrivalError> {
        let index = worker_of(&parcel).map_err(ParcelError::from)?;
        let mut workers = self.relocation.fleet.workers().into_iter();
        let worker = workers.find(|worker| worker.index == index);
        let worker = worker.ok_or(ArrivalError::Worker { index })?;
        let index = usize::from(index);
        let warm = self.warm.get_mut(index).map(std::mem::take);
        let contents = async move {
            let unpacked = worker.run(async move |_| {
                drop(warm);
                unpack(&parcel, sockets)
            });
            unpacked.await
        };
        self.unpacking.push(Unpacking {
            worker: index,
            contents: tokio::spawn(contents),
        });
        Ok(())
    }

    /// Checks that the clients can be continued, now that everything has come.
    ///
    /// # Errors
    /// A parcel is invalid, or too much has arrived from the broker.
    pub(crate) async fn complete(&mut self) -> Result<(), ArrivalError> {
        for unpacking in self.unpacking.drain(..) {
            let unpacked = unpacking.contents.await.ok().flatten();
            let mut contents = unpacked.ok_or(ArrivalError::Ended)??;
            if let Some(passed) = contents.passed.take() {
                self.passed.join(passed);
            }
            if let Some(of_worker) = self.contents.get_mut(unpacking.worker) {
                of_worker.push(contents);
            }
        }
        self.relocation.intake.check().await?;
        self.is_complete = true;
        Ok(())
    }

    /// Continues the clients that have left the other process, which no longer serves them, if all
    /// of them have come. Returns their number.
    pub(crate) async fn finish(self) -> usize {
        let Relocation {
            fleet,
            intake,
            node,
            ..
        } = self.relocation;
        let mut clients = 0;
        if self.is_complete {
            let workers = fleet.workers();
            let restoring = workers.iter().zip(self.contents).map(|(worker, contents)| {
                clients += contents.iter().map(|it| it.clients.len()).sum::<usize>();
                worker.run(async move |crew| restore(&crew, contents).await)
            });
            for (worker, restored) in workers.iter().zip(join_all(restoring).await) {
                if restored.is_none() {
                    let index = worker.index;
                    tracing::error!(worker = index, "clients lost: their worker has ended");
                }
            }
            intake.resume_after(self.passed).await;
        } else {
            intake.resume().await;
        }
        node.presence.release_entries();
        clients
    }
}

async fn restore(crew: &Crew, mut contents: Vec<Contents>) {
    for (channel, state) in contents.iter_mut().flat_map(|it| it.channels.drain(..)) {
        let restored = crew.worker.shard().hub.restore(channel, state);
        if let Err(error) = restored {
            tracing::warn!(%error, "channel has another number after a takeover");
        }
    }
    let Some(open) = crew.open.upgrade() else {
        return;
    };
    crew.clients.pause();
    for moved in contents.into_iter().flat_map(|it| it.clients) {
        let address = moved.client.address();
        let guard = ConnectionGuard::of_another_process(&crew.frontend, address, open.clone());
        crew.clients.restore(moved, guard).await;
    }
    crew.worker.shard().hub.end_restoring();
    crew.clients.serve_again();
}
