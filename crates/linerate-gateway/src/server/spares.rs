//! File descriptors to fall back on: with one of them, all who wait are told at once that there is no room, rather than
//! left waiting.

use std::{
    fs::File,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{net::TcpListener, time::timeout};

/// Those who wait that are turned away in one go: more than that, and a storm of them would spin.
const TURNED_AWAY_MAX: u64 = 4_096;

/// The spare descriptors of all workers.
///
/// A descriptor that one worker lets go for a moment, another may take for a connection of its own. That connection is
/// then given up for it: otherwise nobody who waits would ever be told again.
#[derive(Debug)]
pub struct Spares {
    files: Mutex<Vec<File>>,
    missing: AtomicUsize,
}

impl Spares {
    /// Opens one for each worker, as far as there are any.
    pub(super) fn new(workers: usize) -> Self {
        let spares = Self {
            files: Mutex::default(),
            missing: AtomicUsize::new(workers),
        };
        spares.restore();
        spares
    }

    /// Returns what was accepted, unless it has to be given up for a spare descriptor that is missing.
    pub(super) fn spare<T>(&self, accepted: T) -> Option<T> {
        if self.restore() {
            return Some(accepted);
        }
        drop(accepted);
        self.restore();
        None
    }

    /// Closes the connections of those who wait, one after the other on the same descriptor; returns how many.
    pub(super) async fn turn_away(&self, listener: &TcpListener) -> u64 {
        self.restore();
        let spare = self.files().pop();
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

    /// Opens those that are missing; returns whether none is any more.
    fn restore(&self) -> bool {
        if self.missing.load(Ordering::Relaxed) == 0 {
            return true;
        }
        let mut files = self.files();
        while self.missing.load(Ordering::Relaxed) > 0 {
            let Ok(file) = File::open("/dev/null") else {
                return false;
            };
            files.push(file);
            self.missing.fetch_sub(1, Ordering::Relaxed);
        }
        true
    }

    fn files(&self) -> std::sync::MutexGuard<'_, Vec<File>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
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
        assert_eq!(spares.files().len(), 2);
        assert_eq!(spares.missing.load(Ordering::Relaxed), 0);
        assert_eq!(spares.spare("stream"), Some("stream"));
    }
}
