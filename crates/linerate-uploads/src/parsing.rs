//! The threads that parse logs and answer queries about them.

use std::{io, num::NonZero, sync::LazyLock, thread, time::Duration};

use thread_priority::ThreadPriority;
use tokio::{
    runtime::{Builder, Runtime},
    sync::OwnedSemaphorePermit,
    task::JoinHandle,
};

/// How long an idle thread is kept. It is short because memory of a thread that other threads free
/// stays in the allocator until that thread allocates again or ends.
const IDLE_MAX: Duration = Duration::from_secs(1);

/// A runtime whose threads do only this work. There is one per core, and they run only when no
/// other thread wants the core.
static THREADS: LazyLock<io::Result<Runtime>> = LazyLock::new(|| {
    Builder::new_current_thread()
        .thread_name("logs")
        .max_blocking_threads(thread::available_parallelism().map_or(1, NonZero::get))
        .thread_keep_alive(IDLE_MAX)
        .on_thread_start(lower_priority)
        .build()
});

/// Runs `work` on a parser thread. The turn ends with the work.
pub(crate) fn spawn<T: Send + 'static>(
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

/// Makes all other threads take precedence over the current one, because parsing uses a whole core
/// for as long as there is input. A lower priority (nice) is not enough: the scheduler would still
/// let the thread finish its time slice of several milliseconds.
pub(crate) fn lower_priority() {
    #[cfg(target_os = "linux")]
    let result = {
        use thread_priority::{
            NormalThreadSchedulePolicy, ThreadSchedulePolicy, set_thread_priority_and_policy,
            thread_native_id,
        };
        let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
        set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle)
    };
    // Other platforms do not have this policy.
    #[cfg(not(target_os = "linux"))]
    let result = ThreadPriority::Min.set_for_current();
    if let Err(error) = result {
        tracing::debug!(?error, "thread keeps its priority");
    }
}
