//! Spare file descriptors. With one of them, all pending connections can be closed at once when
//! descriptors run out, rather than left waiting.

use std::{
    fs::File,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{net::TcpListener, time::timeout};

/// Maximum number of pending connections closed at a time; without a limit, a storm of connections
/// would keep the loop busy.
const TURNED_AWAY_MAX: u64 = 4_096;

/// The spare descriptors of all workers.
///
/// When one worker closes a spare descriptor for a moment, another worker can take it for a
/// connection. That connection is then closed to get the spare back; otherwise no pending
/// connection could ever be closed again.
#[derive(Debug)]
pub(crate) struct Spares {
    files: Mutex<Vec<File>>,
    missing: AtomicUsize,
}

impl Spares {
    /// Opens one spare descriptor for each worker, as far as descriptors are available.
    pub(super) fn new(workers: usize) -> Self {
        let spares = Self {
            files: Mutex::default(),
            missing: AtomicUsize::new(workers),
        };
        spares.restore();
        spares
    }

    /// Returns the accepted connection, or closes it if a spare descriptor is missing.
    pub(super) fn spare<T>(&self, accepted: T) -> Option<T> {
        if self.restore() {
            return Some(accepted);
        }
        drop(accepted);
        self.restore();
        None
    }

    /// Closes pending connections, one after the other with the same descriptor, and returns their
    /// number.
    pub(super) async fn turn_away(&self, listener: &TcpListener) -> u64 {
        self.restore();
        let spare = self.files.lock().pop();
        if spare.is_none() {
            return 0;
        }
        drop(spare);
        let mut count = 0;
        let accept = || timeout(Duration::from_millis(1), listener.accept());
        while count < TURNED_AWAY_MAX && matches!(accept().await, Ok(Ok(_))) {
            count += 1;
        }
        self.missing.fetch_add(1, Ordering::Relaxed);
        self.restore();
        count
    }

    /// Opens missing spare descriptors, and returns whether all are open.
    fn restore(&self) -> bool {
        if self.missing.load(Ordering::Relaxed) == 0 {
            return true;
        }
        let mut files = self.files.lock();
        while self.missing.load(Ordering::Relaxed) > 0 {
            let Ok(file) = File::open("/dev/null") else {
                return false;
            };
            files.push(file);
            self.missing.fetch_sub(1, Ordering::Relaxed);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use tokio::net::{TcpListener, TcpStream};

    use super::Spares;

    #[tokio::test]
    async fn all_who_wait_are_turned_away_and_the_spare_comes_back() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut waiting = Vec::new();
        for _ in 0..50 {
            waiting.push(TcpStream::connect(address).await.unwrap());
        }
        let spares = Spares::new(2);
        assert_eq!(spares.turn_away(&listener).await, 50);
        assert_eq!(spares.turn_away(&listener).await, 0);
        assert_eq!(spares.files.lock().len(), 2);
        assert_eq!(spares.missing.load(Ordering::Relaxed), 0);
        assert_eq!(spares.spare("stream"), Some("stream"));
    }
}
