//! Buffers for large messages, shared by all threads. They are needed rarely, and in a shared pool
//! their memory does not grow with the number of threads. After a burst of large messages, buffers
//! that remain unused for a while are freed.

use std::{
    collections::VecDeque,
    hint::black_box,
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    runtime::Handle,
    time::{Instant, sleep},
};

use super::BYTES_MAX;

/// How many bytes are kept in total. This is enough for several of the largest messages, because
/// connections that receive such messages at the same time would otherwise have to grow a buffer,
/// and copy the message, each time.
const KEPT_BYTES_MAX: usize = 64 << 20;

/// How long an unused buffer is kept, at least; it is freed after at most twice that time.
const KEPT_FOR: Duration = Duration::from_secs(3);

static POOL: Mutex<LargePool> = Mutex::new(LargePool {
    buffers: VecDeque::new(),
    bytes: 0,
    is_swept: false,
});

/// The unused buffers.
struct LargePool {
    /// The buffers with the time of their return, oldest first.
    buffers: VecDeque<(Instant, Vec<u8>)>,
    /// The sum of their capacities.
    bytes: usize,
    is_swept: bool,
}

/// Returns the smallest buffer with a capacity of `bytes` or more, if there is one; of several, the
/// last that was returned, which is the likeliest to be in the cache.
pub(super) fn take(bytes: usize) -> Option<Vec<u8>> {
    pool().take(bytes)
}

/// Takes back an empty buffer. Outside a runtime, where no task could free it later, the buffer is
/// freed immediately.
pub(super) fn give(buffer: Vec<u8>) {
    let Ok(runtime) = Handle::try_current() else {
        return;
    };
    let mut pool = pool();
    if let Err(buffer) = pool.give(buffer, Instant::now()) {
        drop(pool);
        return drop(buffer);
    }
    if !mem::replace(&mut pool.is_swept, true) {
        drop(pool);
        runtime.spawn(sweep(Sweeper { is_done: false }));
    }
}

/// Frees all buffers.
pub(super) fn free() {
    let mut pool = pool();
    pool.bytes = 0;
    let buffers = mem::take(&mut pool.buffers);
    drop(pool);
    drop(buffers);
}

fn pool() -> MutexGuard<'static, LargePool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LargePool {
    fn take(&mut self, bytes: usize) -> Option<Vec<u8>> {
        let capacities = self.buffers.iter().map(|(_, buffer)| buffer.capacity());
        let fitting = capacities
            .enumerate()
            .rev()
            .filter(|(_, capacity)| *capacity >= bytes);
        let (index, capacity) = fitting.min_by_key(|(_, capacity)| *capacity)?;
        self.bytes -= capacity;
        self.buffers.remove(index).map(|(_, buffer)| buffer)
    }

    fn give(&mut self, buffer: Vec<u8>, now: Instant) -> Result<(), Vec<u8>> {
        if self.bytes + buffer.capacity() > KEPT_BYTES_MAX {
            return Err(buffer);
        }
        self.bytes += buffer.capacity();
        self.buffers.push_back((now, buffer));
        Ok(())
    }

    /// Removes the buffers that have been unused for too long.
    fn take_old(&mut self, now: Instant) -> Vec<Vec<u8>> {
        let is_old = |(since, _): &(Instant, _)| *since + KEPT_FOR <= now;
        let count = self.buffers.partition_point(is_old);
        let old = self.buffers.drain(..count);
        let old: Vec<_> = old.map(|(_, buffer)| buffer).collect();
        self.bytes -= old.iter().map(Vec::capacity).sum::<usize>();
        old
    }
}

/// Marks the sweeping task as gone when it is dropped.
struct Sweeper {
    is_done: bool,
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        // The task ended with its runtime; another one may start.
        if !self.is_done {
            pool().is_swept = false;
        }
    }
}

/// Frees unused buffers until none are left.
async fn sweep(mut sweeper: Sweeper) {
    while !sweeper.is_done {
        sleep(KEPT_FOR).await;
        let mut pool = pool();
        let old = pool.take_old(Instant::now());
        pool.is_swept = !(old.is_empty() && pool.buffers.is_empty());
        sweeper.is_done = !pool.is_swept;
        drop(pool);
        // Do this without the lock, because returning this much memory to the kernel takes time.
        drop(old);
    }
    // An allocator that returns memory late, such as mimalloc, does so only when a page is
    // requested, which an idle server never does. So request one.
    drop(black_box(Vec::<u8>::with_capacity(BYTES_MAX)));
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn empty() -> LargePool {
        LargePool {
            buffers: VecDeque::new(),
            bytes: 0,
            is_swept: false,
        }
    }

    fn capacities(buffers: &[Vec<u8>]) -> Vec<usize> {
        buffers.iter().map(Vec::capacity).collect()
    }

    #[test]
    fn the_smallest_that_is_large_enough_is_taken() {
        let (mut pool, now) = (empty(), Instant::now());
        for capacity in [5 * MIB, 2 * MIB, 9 * MIB] {
            pool.give(Vec::with_capacity(capacity), now).unwrap();
        }
        assert!(pool.take(9 * MIB + 1).is_none());
        assert_eq!(pool.take(2 * MIB + 1).unwrap().capacity(), 5 * MIB);
        assert_eq!(pool.take(2 * MIB + 1).unwrap().capacity(), 9 * MIB);
        assert!(pool.take(2 * MIB + 1).is_none());
        assert_eq!(pool.take(1).unwrap().capacity(), 2 * MIB);
        assert_eq!(pool.bytes, 0);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let (mut pool, now) = (empty(), Instant::now());
        let mut given = 0;
        while pool.give(Vec::with_capacity(3 * MIB), now).is_ok() {
            given += 1;
        }
        assert_eq!(given, KEPT_BYTES_MAX / (3 * MIB));
        assert!(pool.give(Vec::with_capacity(MIB), now).is_ok());
        assert!(pool.give(Vec::with_capacity(MIB), now).is_err());
    }

    #[test]
    fn what_nobody_takes_is_freed() {
        let (mut pool, begin) = (empty(), Instant::now());
        for second in [0, 1, 7] {
            let buffer = Vec::with_capacity((second as usize + 1) * MIB);
            pool.give(buffer, begin + Duration::from_secs(second))
                .unwrap();
        }
        // A buffer that is taken and returned counts as used.
        let buffer = pool.take(1).unwrap();
        pool.give(buffer, begin + Duration::from_secs(8)).unwrap();
        let at = |seconds| begin + Duration::from_secs(seconds);
        assert!(pool.take_old(at(3)).is_empty());
        assert_eq!(capacities(&pool.take_old(at(4))), [2 * MIB]);
        assert_eq!(capacities(&pool.take_old(at(11))), [8 * MIB, MIB]);
        assert_eq!(pool.bytes, 0);
    }
}
