//! Returns freed memory to the system even while the process is idle.

use std::{hint::black_box, io, thread, time::Duration};

/// How often freed memory is returned.
const INTERVAL: Duration = Duration::from_secs(1);

/// Large enough that the allocator does not treat the block as a small allocation. It stays in use
/// if the allocator takes it from memory that is about to be returned.
const BLOCK_BYTES: usize = 1 << 20;

/// Starts a thread that makes the allocator return freed memory.
///
/// The allocator keeps freed memory for a while, because it may be needed again, and checks what to
/// return only when a large block is freed. An idle process never frees one, so this thread does.
pub(crate) fn give_back() -> io::Result<()> {
    let thread = thread::Builder::new().name("memory".into());
    thread.spawn(|| {
        loop {
            thread::sleep(INTERVAL);
            drop(black_box(Vec::<u8>::with_capacity(BLOCK_BYTES)));
        }
    })?;
    Ok(())
}
