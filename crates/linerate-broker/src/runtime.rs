//! The thread of a broker.

use std::{future::Future, io, thread};

use tokio::{
    runtime::{Builder, Handle, Runtime},
    sync::watch,
};

/// A thread with its own runtime, so that a broker neither waits for clients nor delays them.
///
/// The thread ends when its future completes, when [`stop`](Self::stop) is called, or when this is
/// dropped.
#[derive(Debug)]
pub struct BrokerThread {
    is_stopped: watch::Sender<bool>,
}

impl BrokerThread {
    /// Creates a runtime for [`spawn`](Self::spawn).
    ///
    /// # Errors
    /// Returns an error if the system has no file descriptors left for it.
    pub fn runtime() -> io::Result<Runtime> {
        Builder::new_current_thread().enable_all().build()
    }

    /// Starts a thread that drives `future` and the tasks spawned on `runtime`.
    ///
    /// # Errors
    /// Returns an error if the system cannot start a thread.
    pub fn spawn(
        name: &str,
        runtime: Runtime,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<Self> {
        let (is_stopped, stop) = watch::channel(false);
        let drive = until_stopped(stop, future);
        thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || runtime.block_on(drive))?;
        Ok(Self { is_stopped })
    }

    /// Drives `future` on another runtime until this thread is stopped.
    pub fn spawn_on(&self, runtime: &Handle, future: impl Future<Output = ()> + Send + 'static) {
        runtime.spawn(until_stopped(self.is_stopped.subscribe(), future));
    }

    /// Ends the thread and everything that runs on it, as soon as it waits for something.
    pub fn stop(&self) {
        self.is_stopped.send_replace(true);
    }
}

async fn until_stopped(mut stop: watch::Receiver<bool>, future: impl Future<Output = ()>) {
    tokio::select! {
        () = future => (),
        _ = stop.wait_for(|is_stopped| *is_stopped) => (),
    }
}
