//! The threads that parse logs and answer questions about them.

use rustix::process::setpriority_process;
use tokio::{
    sync::OwnedSemaphorePermit,
    task::{JoinHandle, spawn_blocking},
};

/// How far these threads stay behind those that serve connections, from 0 to 19.
const NICE: i32 = 19;

/// Does some work on such a thread, which ends the turn.
pub(super) fn spawn<T: Send + 'static>(
    turn: Option<OwnedSemaphorePermit>,
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    spawn_blocking(move || {
        let _turn = turn;
        step_back();
        work()
    })
}

/// Lets other threads go before this one from now on: parsing takes all of a processor for as long as there is a log.
pub(in crate::serve) fn step_back() {
    thread_local! {
        // On Linux, the priority is one of threads, so this is about the current one. It is always allowed.
        static BEHIND: bool = setpriority_process(None, NICE).is_ok();
    }
    BEHIND.with(|_| ());
}
