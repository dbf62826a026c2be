//! Buffers for large messages, which all threads share: it is seldom that one is taken, and what is kept does not grow
//! with the number of threads. Who had a crowd of large messages once does not pay for it for ever: what nobody has
//! taken for a while is freed.

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

/// What is kept in all, in bytes. Several of the largest messages, because connections that receive such at the same
/// time would otherwise grow a buffer each time, and copy the message so.
const KEPT_BYTES_MAX: usize = 64 << 20;

/// How long a buffer is kept that nobody takes; up to twice as long.
const KEPT_FOR: Duration = Duration::from_secs(5);

static KEPT: Mutex<Kept> = Mutex::new(Kept {
    buffers: VecDeque::new(),
    bytes: 0,
    is_swept: false,
});

struct Kept {
    /// With when they were given back, the oldest first.
    buffers: VecDeque<(Instant, Vec<u8>)>,
    /// Their capacities.
    bytes: usize,
    is_swept: bool,
}

/// Returns a buffer with a capacity of `bytes` or more: one with the least that fits.
pub(super) fn take(bytes: usize) -> Option<Vec<u8>> {
    kept().take(bytes)
}

/// Takes an empty buffer back. Outside a runtime, where nobody would free it later, that is done at once.
pub(super) fn give(buffer: Vec<u8>) {
    let Ok(runtime) = Handle::try_current() else {
        return;
    };
    let mut kept = kept();
    if let Err(buffer) = kept.give(buffer, Instant::now()) {
        drop(kept);
        return drop(buffer);
    }
    if !mem::replace(&mut kept.is_swept, true) {
        drop(kept);
        runtime.spawn(sweep(Sweeper { is_done: false }));
    }
}

/// Frees all of them.
pub(super) fn free() {
    let mut kept = kept();
    kept.bytes = 0;
    let buffers = mem::take(&mut kept.buffers);
    drop(kept);
    drop(buffers);
}

fn kept() -> MutexGuard<'static, Kept> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Kept {
    fn take(&mut self, bytes: usize) -> Option<Vec<u8>> {
        let capacities = self.buffers.iter().map(|(_, buffer)| buffer.capacity());
        let fitting = capacities
            .enumerate()
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

    /// Takes out what nobody has taken for too long.
    fn take_old(&mut self, now: Instant) -> Vec<Vec<u8>> {
        let is_old = |(since, _): &(Instant, _)| *since + KEPT_FOR <= now;
        let count = self.buffers.partition_point(is_old);
        let old = self.buffers.drain(..count);
        let old: Vec<_> = old.map(|(_, buffer)| buffer).collect();
        self.bytes -= old.iter().map(Vec::capacity).sum::<usize>();
        old
    }
}

/// Who frees what is not taken.
struct Sweeper {
    is_done: bool,
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        // It ends with its runtime; another may begin.
        if !self.is_done {
            kept().is_swept = false;
        }
    }
}

/// Frees what is not taken, until there is nothing more.
async fn sweep(mut sweeper: Sweeper) {
    while !sweeper.is_done {
        sleep(KEPT_FOR).await;
        let mut kept = kept();
        let old = kept.take_old(Instant::now());
        kept.is_swept = !(old.is_empty() && kept.buffers.is_empty());
        sweeper.is_done = !kept.is_swept;
        drop(kept);
        // Not under the lock: so much memory goes back to the kernel.
        drop(old);
    }
    // What was freed has been with the allocator for a while. One that gives memory back late, as mimalloc does, does so
    // when it is asked for a page, and a server that has become idle does not ask.
    drop(black_box(Vec::<u8>::with_capacity(BYTES_MAX)));
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn empty() -> Kept {
        Kept {
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
        let (mut kept, now) = (empty(), Instant::now());
        for capacity in [5 * MIB, 2 * MIB, 9 * MIB] {
            kept.give(Vec::with_capacity(capacity), now).unwrap();
        }
        assert!(kept.take(9 * MIB + 1).is_none());
        assert_eq!(kept.take(2 * MIB + 1).unwrap().capacity(), 5 * MIB);
        assert_eq!(kept.take(2 * MIB + 1).unwrap().capacity(), 9 * MIB);
        assert!(kept.take(2 * MIB + 1).is_none());
        assert_eq!(kept.take(1).unwrap().capacity(), 2 * MIB);
        assert_eq!(kept.bytes, 0);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let (mut kept, now) = (empty(), Instant::now());
        let mut given = 0;
        while kept.give(Vec::with_capacity(3 * MIB), now).is_ok() {
            given += 1;
        }
        assert_eq!(given, KEPT_BYTES_MAX / (3 * MIB));
        assert!(kept.give(Vec::with_capacity(MIB), now).is_ok());
        assert!(kept.give(Vec::with_capacity(MIB), now).is_err());
    }

    #[test]
    fn what_nobody_takes_is_freed() {
        let (mut kept, begin) = (empty(), Instant::now());
        for second in [0, 1, 7] {
            let buffer = Vec::with_capacity((second as usize + 1) * MIB);
            kept.give(buffer, begin + Duration::from_secs(second))
                .unwrap();
        }
        // Who takes it and gives it back has it kept.
        let buffer = kept.take(1).unwrap();
        kept.give(buffer, begin + Duration::from_secs(8)).unwrap();
        let at = |seconds| begin + Duration::from_secs(seconds);
        assert!(kept.take_old(at(5)).is_empty());
        assert_eq!(capacities(&kept.take_old(at(6))), [2 * MIB]);
        assert_eq!(capacities(&kept.take_old(at(13))), [8 * MIB, MIB]);
        assert_eq!(kept.bytes, 0);
    }
}
