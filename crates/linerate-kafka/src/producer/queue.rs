//! The records that wait until Kafka has stored them, and their limits.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use linerate_budget::Lease;

use crate::produce::{ProduceError, ProducerStatus};

/// The records of a client of librdkafka, which holds them itself.
#[derive(Debug)]
pub(super) struct Queue {
    records_max: usize,
    bytes_max: usize,
    status: Arc<ProducerStatus>,
    waiting: Mutex<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    records: usize,
    bytes: usize,
    lease: Lease,
}

impl Queue {
    pub(super) fn new(
        (records_max, bytes_max): (usize, usize),
        status: Arc<ProducerStatus>,
        lease: Lease,
    ) -> Self {
        Self {
            records_max,
            bytes_max,
            status,
            waiting: Mutex::new(Waiting {
                records: 0,
                bytes: 0,
                lease,
            }),
        }
    }

    /// Adds a record of `bytes` bytes.
    ///
    /// # Errors
    /// The queue is full, or the memory budget is exhausted.
    pub(super) fn add(&self, bytes: usize) -> Result<(), ProduceError> {
        let (records_max, bytes_max) = (self.records_max, self.bytes_max);
        let mut waiting = self.lock();
        let (records, all_bytes) = (waiting.records, waiting.bytes + bytes);
        if records >= records_max {
            return Err(ProduceError::Records {
                records,
                records_max,
            });
        }
        // A record that is larger than the queue can wait alone.
        if all_bytes > bytes_max && records > 0 {
            return Err(ProduceError::Bytes {
                bytes: all_bytes,
                bytes_max,
            });
        }
        let paid = waiting.lease.grow_unless_critical(bytes as u64);
        paid.map_err(|_| ProduceError::Memory)?;
        waiting.records += 1;
        waiting.bytes = all_bytes;
        self.status.add_waiting(bytes);
        Ok(())
    }

    /// Removes a record of `bytes` bytes.
    pub(super) fn remove(&self, bytes: usize) {
        let mut waiting = self.lock();
        waiting.records -= 1;
        waiting.bytes -= bytes;
        waiting.lease.shrink(bytes as u64);
        self.status.remove_waiting(1, bytes);
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Queue {
    /// Removes records of which librdkafka has not told what became of them.
    fn drop(&mut self) {
        let waiting = self.lock();
        self.status.remove_waiting(waiting.records, waiting.bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use linerate_budget::{Budget, Consumer};

    use super::{ProduceError, ProducerStatus, Queue};

    fn queue(limits: (usize, usize), budget: &Budget) -> (Queue, Arc<ProducerStatus>) {
        let status = Arc::<ProducerStatus>::default();
        let lease = budget.lease(Consumer::Messages);
        (Queue::new(limits, status.clone(), lease), status)
    }

    #[test]
    fn records_beyond_a_limit_are_refused_with_both_numbers() {
        let (queue, status) = queue((2, 100), &Budget::unbounded());
        assert_eq!(queue.add(60), Ok(()));
        let error = queue.add(41).unwrap_err();
        let bytes = "records of 101 bytes wait for Kafka; at most 100 are allowed";
        assert_eq!(error.to_string(), bytes);
        assert_eq!(queue.add(40), Ok(()));
        let error = queue.add(0).unwrap_err();
        let records = "2 records wait for Kafka; at most 2 are allowed";
        assert_eq!(error.to_string(), records);
        queue.remove(60);
        assert_eq!(queue.add(60), Ok(()));
        assert_eq!((status.waiting(), status.waiting_bytes()), (2, 100));
        drop(queue);
        assert_eq!((status.waiting(), status.waiting_bytes()), (0, 0));
    }

    #[test]
    fn a_record_that_is_larger_than_the_queue_waits_alone() {
        let (queue, _) = queue((10, 100), &Budget::unbounded());
        assert_eq!(queue.add(101), Ok(()));
        assert!(queue.add(1).is_err());
    }

    #[test]
    fn records_take_no_more_than_the_memory_budget() {
        let budget = Budget::new(1 << 20);
        let (queue, status) = queue((usize::MAX, usize::MAX), &budget);
        let refused = (0..2_000).find_map(|_| queue.add(1_024).err());
        assert_eq!(refused, Some(ProduceError::Memory));
        assert!(status.waiting() > 100 && status.waiting_bytes() <= 1 << 20);
        drop(queue);
        assert_eq!(budget.used_total(), 0);
    }
}
