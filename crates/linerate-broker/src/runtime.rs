//! The thread of a broker.

use std::{future::Future, io, thread};

use tokio::{runtime, sync::oneshot};

/// A thread with a runtime of its own, so that what a broker does neither waits for clients nor delays them.
///
/// Ends when its future does, or when this is dropped.
#[derive(Debug)]
pub struct BrokerThread {
    _alive: oneshot::Sender<()>,
}

impl BrokerThread {
    /// Starts a thread that drives `future`, and the tasks that it spawns.
    ///
    /// # Errors
    /// The system gives no thread, or no descriptors for its runtime.
    pub fn spawn(
        name: &str,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<Self> {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (alive, dropped) = oneshot::channel();
        let drive = async {
            tokio::select! {
                () = future => (),
                _ = dropped => (),
            }
        };
        thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || runtime.block_on(drive))?;
        Ok(Self { _alive: alive })
    }
}
