//! Memory that nothing needs any more goes back to the system also while nothing happens.

use std::{hint::black_box, io, thread, time::Duration};

/// How often memory is given back.
const INTERVAL: Duration = Duration::from_secs(1);

/// More than what the allocator keeps for small things.
const BLOCK_BYTES: usize = 8 << 20;

/// Gives it back from now on.
///
/// The allocator waits a little until it returns what was freed, because it may be wanted again, and looks at
/// what has waited when something large is freed. In a process that has become idle nothing ever is.
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
