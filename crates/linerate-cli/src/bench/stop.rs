//! ^C: the first ends a run in order, the second at once.

use std::{
    io, process,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use linerate_bench::server;
use tokio::signal::unix::{SignalKind, signal};

/// What a shell reports of a process that ^C has ended.
const INTERRUPTED: i32 = 130;

/// Begins to listen to ^C and SIGTERM; what is returned becomes true with the first of them.
///
/// # Errors
///
/// The system refuses.
pub(super) fn on_signal() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let entered = runtime.enter();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    drop(entered);
    let asked = Arc::clone(&stop);
    thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            runtime.block_on(async {
                loop {
                    tokio::select! {
                        _ = interrupt.recv() => {}
                        _ = terminate.recv() => {}
                    }
                    if asked.swap(true, Ordering::Relaxed) {
                        server::end_all();
                        process::exit(INTERRUPTED);
                    }
                    eprintln!("\nEnding with the present measurement; ^C again ends at once.");
                }
            });
        })?;
    Ok(stop)
}
