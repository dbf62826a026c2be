//! The bounded queue between the broker's reader and a worker.
//!
//! A slow worker makes the reader wait, so that the broker notices the backpressure. A worker that
//! reads nothing at all delays the reader only once; after that, publications that do not fit are
//! dropped and reported as a gap, and the other workers continue.

mod dropped;

use std::{
    collections::VecDeque,
    fmt, mem,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use linerate_broker::{Gap, awake::timeout_awake};
use linerate_hub::{ChannelName, Publication};
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};

use super::shard::Shard;
use crate::clock::now;
use dropped::DroppedPublications;

/// The maximum number of publications queued for a worker before the broker's reader has to wait.
const PUBLICATIONS_MAX: usize = 16_384;

/// The maximum number of payload bytes queued for a worker before the broker's reader has to wait.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// The maximum number of publications and gaps passed to the hub before its blocks are delivered;
/// less if a ring is half full earlier. A client that keeps up is therefore never overtaken by its
/// ring.
pub(super) const ARRIVALS_A_TURN: usize = 512;

/// The maximum number of payload bytes passed to the hub before its blocks are delivered.
pub(super) const BYTES_A_TURN: usize = 512 * 1024;

/// How long the broker's reader waits for a worker that reads nothing.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// The maximum number of jobs queued for a worker.
const JOBS_MAX: usize = 4_096;

/// A job for a worker's thread. It owns everything it needs besides the worker's state.
pub(crate) type Job = Box<dyn FnOnce(&Shard) + Send>;

/// An event for the hub of a worker.
#[derive(Clone, Debug)]
pub(crate) enum Arrival {
    /// What came before is delivered before what follows, in whatever channels. The sender is
    /// dropped when everything before has been delivered.
    Barrier(Option<mpsc::Sender<()>>),
    /// Publications may have been missed.
    Gap(Gap),
    /// A publication in a channel with subscribers on the worker, and when it arrived from the
    /// broker.
    Publication(ChannelName, Publication, Instant),
}

/// Everything that is queued for a worker.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    queue: Mutex<Queue>,
    /// The shortest batch interval on the worker in microseconds, plus one; 0 without
    /// subscriptions.
    batch_interval: AtomicU64,
    arrived: Notify,
    room: Notify,
}

#[derive(Default)]
struct Queue {
    arrivals: VecDeque<Arrival>,
    bytes: usize,
    jobs: VecDeque<Job>,
    is_closed: bool,
    /// What was dropped since the worker last read the queue.
    lost: Option<DroppedPublications>,
}

/// Why a worker does not accept a job.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum JobRefusal {
    /// The worker has too many queued jobs.
    #[error("worker already has {JOBS_MAX} queued jobs")]
    Busy,
    /// The worker has ended.
    #[error("worker has ended")]
    Ended,
}

impl Inbox {
    /// Adds a burst and wakes the worker once. Waits up to [`WAIT_MAX`] for room first.
    ///
    /// Returns the number of publications that were dropped instead.
    pub(crate) async fn deliver(&self, arrivals: Vec<Arrival>) -> u64 {
        let bytes = arrivals.iter().map(Arrival::bytes).sum();
        let mut arrivals = Some(arrivals);
        let taken = timeout_awake(WAIT_MAX, async {
            loop {
                // Register before checking, so that no wake-up is missed.
                let room = self.room.notified();
                if let Some(lost) = self.offer(&mut arrivals, bytes, true) {
                    return lost;
                }
                room.await;
            }
        });
        match taken.await {
            Some(lost) => lost,
            // The worker has read nothing during the whole wait.
            None => self.offer(&mut arrivals, bytes, false).unwrap_or_default(),
        }
    }

    /// Waits until less is queued than the worker takes in one turn, or the inbox is closed.
    pub(crate) async fn caught_up(&self) {
        while self.has_backlog() {
            self.room.notified().await;
        }
    }

    /// Stores the shortest batch interval of the worker's subscriptions.
    pub(crate) fn set_batch_interval(&self, interval: Option<Duration>) {
        let micros = interval.map_or(0, |interval| interval.as_micros() as u64 + 1);
        self.batch_interval.store(micros, Ordering::Relaxed);
    }

    /// Returns the shortest batch interval of the worker's subscriptions.
    pub(crate) fn batch_interval(&self) -> Option<Duration> {
        let micros = self.batch_interval.load(Ordering::Relaxed).checked_sub(1);
        micros.map(Duration::from_micros)
    }

    /// Adds a job for the worker's thread.
    pub(crate) fn submit(&self, job: Job) -> Result<(), JobRefusal> {
        let mut queue = self.queue.lock();
        if queue.is_closed {
            return Err(JobRefusal::Ended);
        }
        if queue.jobs.len() == JOBS_MAX {
            return Err(JobRefusal::Busy);
        }
        queue.jobs.push_back(job);
        drop(queue);
        self.arrived.notify_one();
        Ok(())
    }

    /// Wakes the worker.
    pub(crate) fn wake(&self) {
        self.arrived.notify_one();
    }

    /// Waits until something has arrived since the last wait.
    pub(crate) async fn arrived(&self) {
        self.arrived.notified().await;
    }

    /// Moves all queued arrivals to `into`, which must be empty, and wakes the sender that waits
    /// for room.
    pub(crate) fn take(&self, into: &mut VecDeque<Arrival>) {
        debug_assert!(into.is_empty());
        let mut queue = self.queue.lock();
        mem::swap(&mut queue.arrivals, into);
        queue.bytes = 0;
        let lost = queue.lost.take();
        drop(queue);
        if let Some(lost) = lost {
            let publications = lost.publications();
            tracing::warn!(
                publications,
                "worker did not read its inbox in time; publications dropped"
            );
            into.push_back(Arrival::Gap(lost.to_gap(now())));
        }
        if !into.is_empty() {
            self.room.notify_one();
        }
    }

    /// Removes and returns the oldest job.
    pub(crate) fn take_job(&self) -> Option<Job> {
        self.queue.lock().jobs.pop_front()
    }

    /// Closes the queue: drops everything queued, and everything added later.
    pub(crate) fn close(&self) {
        let mut queue = self.queue.lock();
        queue.is_closed = true;
        queue.bytes = 0;
        let dropped = (mem::take(&mut queue.arrivals), mem::take(&mut queue.jobs));
        drop(queue);
        drop(dropped);
        self.room.notify_one();
    }

    /// Returns the number of queued arrivals and the bytes of their payloads.
    pub(crate) fn waiting(&self) -> (usize, usize) {
        let queue = self.queue.lock();
        (queue.arrivals.len(), queue.bytes)
    }

    /// Returns whether nothing is queued.
    pub(crate) fn is_empty(&self) -> bool {
        let queue = self.queue.lock();
        queue.arrivals.is_empty() && queue.jobs.is_empty() && queue.lost.is_none()
    }

    fn has_backlog(&self) -> bool {
        let (arrivals, bytes) = self.waiting();
        arrivals >= ARRIVALS_A_TURN || bytes >= BYTES_A_TURN
    }

    /// Queues `arrivals` if there is room. A burst that exceeds the limits is accepted when the
    /// queue is empty. Once something was dropped, everything that follows is dropped as well until
    /// the worker reads the queue; otherwise it would precede the gap.
    ///
    /// Returns the number of dropped publications, or `None` if the caller must wait; only with
    /// `may_wait`.
    fn offer(
        &self,
        arrivals: &mut Option<Vec<Arrival>>,
        bytes: usize,
        may_wait: bool,
    ) -> Option<u64> {
        let mut queue = self.queue.lock();
        if queue.is_closed {
            arrivals.take();
            return Some(0);
        }
        let count = arrivals.as_ref().map_or(0, Vec::len);
        let fits =
            queue.arrivals.len() + count <= PUBLICATIONS_MAX && queue.bytes + bytes <= BYTES_MAX;
        let has_room = queue.lost.is_none() && (fits || queue.arrivals.is_empty());
        if !has_room && queue.lost.is_none() && may_wait {
            return None;
        }
        let arrivals = arrivals.take().unwrap_or_default();
        if !has_room {
            let lost = queue
                .lost
                .get_or_insert_with(|| DroppedPublications::new(now()));
            return Some(lost.add(arrivals));
        }
        queue.bytes += bytes;
        queue.arrivals.extend(arrivals);
        drop(queue);
        self.arrived.notify_one();
        Some(0)
    }
}

impl Arrival {
    fn bytes(&self) -> usize {
        match self {
            Self::Barrier(_) | Self::Gap(_) => 0,
            Self::Publication(_, publication, _) => publication.payload().len(),
        }
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("arrivals", &self.arrivals.len())
            .field("bytes", &self.bytes)
            .field("jobs", &self.jobs.len())
            .field("is_closed", &self.is_closed)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::VecDeque,
        sync::Arc,
        time::{Duration, Instant},
    };

    use linerate_broker::GapReason;
    use linerate_hub::{ChannelName, Publication};
    use tokio::time::timeout;

    use super::{
        ARRIVALS_A_TURN, Arrival, BYTES_MAX, Inbox, JOBS_MAX, JobRefusal, PUBLICATIONS_MAX,
        WAIT_MAX,
    };

    fn publications(count: usize, bytes: usize) -> Vec<Arrival> {
        let channel = ChannelName::new("news").unwrap();
        let publication = Publication::new(vec![b'x'; bytes].into());
        vec![Arrival::Publication(channel, publication, Instant::now()); count]
    }

    async fn assert_waits(inbox: &Arc<Inbox>, more: Vec<Arrival>) {
        let count = more.len();
        let mut delivered = tokio::spawn({
            let inbox = inbox.clone();
            async move { inbox.deliver(more).await }
        });
        let early = timeout(WAIT_MAX / 2, &mut delivered).await;
        assert!(early.is_err(), "the delivery must wait for room");
        inbox.take(&mut VecDeque::new());
        assert_eq!(delivered.await.unwrap(), 0);
        assert_eq!(inbox.waiting().0, count);
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_that_takes_nothing_is_waited_for_once_and_told_what_it_missed() {
        let inbox = Inbox::default();
        assert_eq!(inbox.deliver(publications(PUBLICATIONS_MAX, 1)).await, 0);
        let start = tokio::time::Instant::now();
        assert_eq!(inbox.deliver(publications(3, 1)).await, 3);
        assert_eq!(start.elapsed(), WAIT_MAX);
        assert_eq!(inbox.deliver(publications(4, 1)).await, 4);
        assert_eq!(start.elapsed(), WAIT_MAX, "other workers are not delayed");
        let mut taken = VecDeque::new();
        inbox.take(&mut taken);
        assert_eq!(taken.len(), PUBLICATIONS_MAX + 1);
        let Some(Arrival::Gap(gap)) = taken.pop_back() else {
            panic!("expected a gap after the queued publications");
        };
        assert_eq!(gap.reason, GapReason::Overflow);
        assert_eq!(gap.channels.map(|channels| channels.len()), Some(1));
        taken.clear();
        assert_eq!(inbox.deliver(publications(1, 1)).await, 0);
        inbox.take(&mut taken);
        assert!(matches!(taken.pop_back(), Some(Arrival::Publication(..))));
    }

    #[tokio::test(start_paused = true)]
    async fn the_reader_waits_when_too_many_publications_wait() {
        let inbox = Arc::new(Inbox::default());
        inbox.deliver(publications(PUBLICATIONS_MAX, 1)).await;
        assert_waits(&inbox, publications(1, 1)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn the_reader_waits_when_too_many_bytes_wait() {
        let inbox = Arc::new(Inbox::default());
        inbox.deliver(publications(1, BYTES_MAX)).await;
        assert_waits(&inbox, publications(1, 1)).await;
    }

    #[tokio::test]
    async fn a_reader_on_the_thread_of_the_worker_waits_for_more_than_a_turn() {
        let inbox = Arc::new(Inbox::default());
        inbox.deliver(publications(ARRIVALS_A_TURN - 1, 1)).await;
        inbox.caught_up().await;
        for release in [
            |inbox: &Inbox| inbox.take(&mut VecDeque::new()),
            Inbox::close,
        ] {
            inbox.deliver(publications(ARRIVALS_A_TURN, 1)).await;
            let mut caught_up = tokio::spawn({
                let inbox = inbox.clone();
                async move { inbox.caught_up().await }
            });
            let early = timeout(Duration::from_millis(20), &mut caught_up).await;
            assert!(early.is_err(), "the reader must wait for the worker");
            release(&inbox);
            caught_up.await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_burst_larger_than_all_room_is_taken_alone() {
        let inbox = Inbox::default();
        inbox.deliver(publications(PUBLICATIONS_MAX + 1, 1)).await;
        assert_eq!(inbox.waiting().0, PUBLICATIONS_MAX + 1);
    }

    #[tokio::test]
    async fn a_closed_inbox_keeps_nobody_waiting() {
        let inbox = Inbox::default();
        inbox.deliver(publications(PUBLICATIONS_MAX, 1)).await;
        inbox.close();
        inbox.deliver(publications(2, 1)).await;
        assert_eq!(inbox.waiting(), (0, 0));
        assert_eq!(inbox.submit(Box::new(|_| ())), Err(JobRefusal::Ended));
    }

    #[test]
    fn jobs_are_bounded() {
        let inbox = Inbox::default();
        for _ in 0..JOBS_MAX {
            inbox.submit(Box::new(|_| ())).unwrap();
        }
        let error = inbox.submit(Box::new(|_| ())).unwrap_err();
        assert!(error.to_string().contains("4096"), "{error}");
    }
}
