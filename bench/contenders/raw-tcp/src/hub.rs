//! Passes what is published on one thread to the connections of the others.

use std::io;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, eventfd};

/// A mailbox for each thread.
#[derive(Debug)]
pub(crate) struct Hub(Vec<Mailbox>);

#[derive(Debug)]
struct Mailbox {
    posts: Mutex<Vec<Arc<[u8]>>>,
    /// Readable while there are posts.
    bell: OwnedFd,
}

impl Hub {
    pub(crate) fn new(threads: usize) -> io::Result<Self> {
        let mailbox = |_| {
            Ok(Mailbox {
                posts: Mutex::default(),
                bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            })
        };
        (0..threads)
            .map(mailbox)
            .collect::<io::Result<_>>()
            .map(Self)
    }

    /// Returns the descriptor that becomes readable when thread `number` has posts.
    pub(crate) fn bell(&self, number: usize) -> BorrowedFd<'_> {
        self.0[number].bell.as_fd()
    }

    /// Posts `bytes` to all threads except `sender`; all share one copy.
    pub(crate) fn post(&self, sender: usize, bytes: &[u8]) -> io::Result<()> {
        if self.0.len() == 1 {
            return Ok(());
        }
        let post: Arc<[u8]> = bytes.into();
        for (number, mailbox) in self.0.iter().enumerate() {
            if number == sender {
                continue;
            }
            let mut posts = mailbox.lock();
            posts.push(post.clone());
            // The first post rings the bell; `take` silences it under the same lock.
            if posts.len() == 1 {
                rustix::io::write(&mailbox.bell, &1u64.to_ne_bytes())?;
            }
        }
        Ok(())
    }

    /// Removes the posts for thread `number`, oldest first.
    pub(crate) fn take(&self, number: usize) -> io::Result<Vec<Arc<[u8]>>> {
        let mailbox = &self.0[number];
        let mut posts = mailbox.lock();
        match rustix::io::read(&mailbox.bell, &mut [0; 8]) {
            Ok(_) | Err(rustix::io::Errno::AGAIN) => Ok(mem::take(&mut posts)),
            Err(error) => Err(error.into()),
        }
    }
}

impl Mailbox {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<[u8]>>> {
        // The list is consistent between any two of its methods.
        self.posts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn posts_come_to_all_others_in_order() {
        let hub = Hub::new(3).unwrap();
        hub.post(1, b"first").unwrap();
        hub.post(1, b"second").unwrap();
        for number in [0, 2] {
            let posts = hub.take(number).unwrap();
            assert_eq!(posts, [b"first"[..].into(), b"second"[..].into()]);
            assert!(hub.take(number).unwrap().is_empty());
        }
        assert!(hub.take(1).unwrap().is_empty());
    }
}
