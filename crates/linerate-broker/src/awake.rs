//! Measures time only while this process runs, for judging whether peers are silent.
//!
//! A process that was stopped, or whose machine was suspended, wakes up with all its deadlines
//! passed and with everything that its peers have sent still unread. By the wall clock, a healthy
//! server would then look dead.

use std::time::Duration;

use tokio::time::sleep;

/// The most that one slice of waiting counts, however long it took.
const SLICE: Duration = Duration::from_millis(250);

/// Waits until this process has been running for `duration`.
pub async fn sleep_awake(duration: Duration) {
    let mut left = duration;
    while !left.is_zero() {
        let slice = left.min(SLICE);
        sleep(slice).await;
        left -= slice;
    }
}

/// Runs `future` until it completes, or returns `None` once this process has been running for
/// `duration`.
pub async fn timeout_awake<T>(duration: Duration, future: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        done = future => Some(done),
        () = sleep_awake(duration) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::{
        sync::oneshot,
        time::{Instant, advance, sleep},
    };

    use super::{SLICE, sleep_awake, timeout_awake};

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn without_a_stall_it_is_an_ordinary_timeout() {
        let begun = Instant::now();
        assert_eq!(timeout_awake(2 * SECOND, sleep(3 * SECOND)).await, None);
        assert!(begun.elapsed() - 2 * SECOND < SECOND / 10);
        let answered = timeout_awake(2 * SECOND, sleep(SECOND)).await;
        assert_eq!(answered, Some(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stall_of_this_process_counts_as_one_slice() {
        let (answer, answered) = oneshot::channel();
        let waiting = tokio::spawn(timeout_awake(2 * SECOND, answered));
        tokio::task::yield_now().await;
        // The process is stopped. The answer arrives, but is read only later.
        advance(14 * SECOND).await;
        sleep(SLICE).await;
        answer.send(7).unwrap();
        assert_eq!(waiting.await.unwrap(), Some(Ok(7)));
        let begun = Instant::now();
        sleep_awake(Duration::ZERO).await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }
}
