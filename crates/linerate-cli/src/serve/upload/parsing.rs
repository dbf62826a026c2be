//! The threads that parse logs and answer questions about them.

use std::{io, num::NonZero, sync::LazyLock, thread, time::Duration};

use thread_priority::{
    NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};
use tokio::{
    runtime::{Builder, Runtime},
    sync::OwnedSemaphorePermit,
    task::JoinHandle,
};

/// How long a thread without work stays. The allocator keeps what other threads free of a thread's memory until that thread
/// allocates again or ends.
const IDLE_MAX: Duration = Duration::from_secs(1);

/// Its threads are only for this work, one for each core: they run when no other thread wants it.
static THREADS: LazyLock<io::Result<Runtime>> = LazyLock::new(|| {
    Builder::new_current_thread()
        .thread_name("logs")
        .max_blocking_threads(thread::available_parallelism().map_or(1, NonZero::get))
        .thread_keep_alive(IDLE_MAX)
        .on_thread_start(step_back)
        .build()
});

/// Does some work on such a thread, which ends the turn.
pub(super) fn spawn<T: Send + 'static>(
    turn: Option<OwnedSemaphorePermit>,
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let work = move || {
        let _turn = turn;
        work()
    };
    match &*THREADS {
        Ok(threads) => threads.spawn_blocking(work),
        Err(_) => tokio::task::spawn_blocking(work),
    }
}

/// Lets all other threads go before this one from now on: parsing takes all of a processor for as long as there is a log.
/// A lower priority (nice) is not enough, because the scheduler lets a thread finish its slice of milliseconds.
pub(in crate::serve) fn step_back() {
    let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
    let result = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle);
    if let Err(error) = result {
        tracing::debug!(?error, "thread keeps its priority");
    }
}
