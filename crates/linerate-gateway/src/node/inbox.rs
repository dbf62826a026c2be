//! The bounded queue between the broker's reader and a worker.

use std::{
    collections::VecDeque,
    fmt, mem,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use linerate_broker::Gap;
use linerate_hub::{ChannelName, Publication};
use tokio::sync::Notify;

use super::Worker;

/// Publications that a worker may have waiting before the broker's reader has to wait.
const PUBLICATIONS_MAX: usize = 16_384;

/// Bytes of payload that a worker may have waiting before the broker's reader has to wait.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// Jobs that a worker may have waiting.
const JOBS_MAX: usize = 4_096;

/// What a worker's thread is to do, with everything that it holds.
pub(crate) type Job = Box<dyn FnOnce(&Worker) + Send>;

/// Something for the hub of a worker.
#[derive(Clone, Debug)]
pub(crate) enum Arrival {
    /// Publications may have been missed.
    Gap(Gap),
    /// A publication in a channel with subscribers on the worker, and when it came from the broker.
    Publication(ChannelName, Publication, Instant),
}

/// What waits for a worker.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    queue: Mutex<Queue>,
    /// The shortest interval of batches on the worker in microseconds, plus one; 0 without subscriptions.
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
}

/// A worker has more jobs waiting than it may have, or has ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("worker has ended, or has {JOBS_MAX} jobs waiting already")]
pub(crate) struct Busy;

impl Inbox {
    /// Adds what arrived together, with one wake; waits for room first.
    pub(crate) async fn deliver(&self, arrivals: Vec<Arrival>) {
        let bytes = arrivals.iter().map(Arrival::bytes).sum();
        let mut arrivals = Some(arrivals);
        loop {
            // Registered before the look, so that no room is missed.
            let room = self.room.notified();
            if self.offer(&mut arrivals, bytes) {
                return;
            }
            room.await;
        }
    }

    /// Takes note of the shortest interval of batches that a subscription on the worker has.
    pub(crate) fn set_batch_interval(&self, interval: Option<Duration>) {
        let micros = interval.map_or(0, |interval| interval.as_micros() as u64 + 1);
        self.batch_interval.store(micros, Ordering::Relaxed);
    }

    /// Returns the shortest interval of batches that a subscription on the worker has.
    pub(crate) fn batch_interval(&self) -> Option<Duration> {
        let micros = self.batch_interval.load(Ordering::Relaxed).checked_sub(1);
        micros.map(Duration::from_micros)
    }

    /// Adds a job for the worker's thread.
    pub(crate) fn submit(&self, job: Job) -> Result<(), Busy> {
        let mut queue = self.queue();
        if queue.is_closed || queue.jobs.len() == JOBS_MAX {
            return Err(Busy);
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

    /// Takes everything that waits, and says so to who waits for room. `into` is empty.
    pub(crate) fn take(&self, into: &mut VecDeque<Arrival>) {
        debug_assert!(into.is_empty());
        let mut queue = self.queue();
        mem::swap(&mut queue.arrivals, into);
        queue.bytes = 0;
        drop(queue);
        if !into.is_empty() {
            self.room.notify_one();
        }
    }

    /// Takes the oldest job.
    pub(crate) fn take_job(&self) -> Option<Job> {
        self.queue().jobs.pop_front()
    }

    /// Ends the queue: what waits is dropped, and what is added from now on as well.
    pub(crate) fn close(&self) {
        let mut queue = self.queue();
        queue.is_closed = true;
        queue.bytes = 0;
        let dropped = (mem::take(&mut queue.arrivals), mem::take(&mut queue.jobs));
        drop(queue);
        drop(dropped);
        self.room.notify_one();
    }

    /// Returns how many publications and how many bytes of them wait.
    pub(crate) fn waiting(&self) -> (usize, usize) {
        let queue = self.queue();
        (queue.arrivals.len(), queue.bytes)
    }

    /// Takes `arrivals` if there is room; a burst larger than all room is taken when nothing else waits.
    fn offer(&self, arrivals: &mut Option<Vec<Arrival>>, bytes: usize) -> bool {
        let mut queue = self.queue();
        let count = arrivals.as_ref().map_or(0, Vec::len);
        let fits =
            queue.arrivals.len() + count <= PUBLICATIONS_MAX && queue.bytes + bytes <= BYTES_MAX;
        if !queue.is_closed && !fits && !queue.arrivals.is_empty() {
            return false;
        }
        let arrivals = arrivals.take().unwrap_or_default();
        if !queue.is_closed {
            queue.bytes += bytes;
            queue.arrivals.extend(arrivals);
            drop(queue);
            self.arrived.notify_one();
        }
        true
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Arrival {
    fn bytes(&self) -> usize {
        match self {
            Self::Gap(_) => 0,
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

    use linerate_hub::{ChannelName, Publication};
    use tokio::time::timeout;

    use super::{Arrival, BYTES_MAX, Busy, Inbox, JOBS_MAX, PUBLICATIONS_MAX};

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
        let early = timeout(Duration::from_secs(1), &mut delivered).await;
        assert!(early.is_err(), "it has to wait for room");
        inbox.take(&mut VecDeque::new());
        delivered.await.unwrap();
        assert_eq!(inbox.waiting().0, count);
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
        assert_eq!(inbox.submit(Box::new(|_| ())), Err(Busy));
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
