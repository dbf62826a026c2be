//! Handling of ^C: the first one ends a run gracefully, the second one immediately.

use std::{
    io, process,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use linerate_bench::server;

use crate::platform::StopSignals;

/// The exit status that a shell reports for a process ended by ^C (128 + SIGINT).
const INTERRUPTED: i32 = 130;

/// Starts listening for ^C and SIGTERM. The returned flag becomes true when the first one arrives.
pub(super) fn on_signal() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut signals = runtime.block_on(async { StopSignals::new() })?;
    let asked = Arc::clone(&stop);
    thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            runtime.block_on(async {
                loop {
                    signals.recv().await;
                    if asked.swap(true, Ordering::Relaxed) {
                        server::end_all();
                        process::exit(INTERRUPTED);
                    }
                    eprintln!(
                        "\nStopping after the current measurement; press ^C again to stop immediately."
                    );
                }
            });
        })?;
    Ok(stop)
}
