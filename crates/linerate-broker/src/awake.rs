//! Time that counts only while this process runs, for judging whether others are silent.
//!
//! A process that was stopped, or whose machine was, wakes with all of its deadlines passed and with everything that
//! the others have sent unread. Whoever judges by the clock then finds a healthy server dead.

use std::time::Duration;

use tokio::time::sleep;

/// As much as one slice of waiting counts at most, however long it took.
const SLICE: Duration = Duration::from_millis(250);

/// Waits until this process has been awake for `duration`.
pub async fn sleep_awake(duration: Duration) {
    let mut left = duration;
    while !left.is_zero() {
        let slice = left.min(SLICE);
        sleep(slice).await;
        left -= slice;
    }
}

/// Runs `future` for as long as this process has been awake for `duration`; `None` if that was not long enough.
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
    async fn a_stall_of_our_own_counts_as_one_slice() {
        let (answer, answered) = oneshot::channel();
        let waiting = tokio::spawn(timeout_awake(2 * SECOND, answered));
        tokio::task::yield_now().await;
        // The process is stopped; the answer has come, but only later somebody reads it.
        advance(14 * SECOND).await;
        sleep(SLICE).await;
        answer.send(7).unwrap();
        assert_eq!(waiting.await.unwrap(), Some(Ok(7)));
        let begun = Instant::now();
        sleep_awake(Duration::ZERO).await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }
}
