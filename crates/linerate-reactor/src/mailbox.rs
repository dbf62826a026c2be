//! Mailboxes: what other threads send to a worker.

use std::{
    io,
    net::SocketAddr,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rustix::event::{EventfdFlags, eventfd};

use crate::{adoption::Adoption, outbound::dialer::Pending, topics::burst::Burst};

/// Maximum number of pending requests to resume connections of one worker.
const RESUMES_MAX: usize = 65_536;

/// Memory that a mailbox keeps while it is empty, in bytes.
const KEPT_BYTES_MAX: usize = 256 << 10;

/// A bounded mailbox with an eventfd that wakes its worker, once for everything that waits.
#[derive(Debug)]
pub(crate) struct Mailbox {
    wake: OwnedFd,
    mail: Mutex<Mail>,
}

/// The content of a mailbox, which waits for a worker.
#[derive(Debug, Default)]
pub(crate) struct Mail {
    /// In order with respect to each publisher.
    pub(crate) bursts: Vec<Arc<Burst>>,
    /// The memory that the bursts use.
    bytes: usize,
    /// Index and serial number of the connections whose input is to be resumed.
    pub(crate) resumes: Vec<(u32, u32)>,
    /// Connections to be opened; their number is limited by the connection limit.
    pub(crate) connects: Vec<Pending>,
    /// Connections that another server has accepted; their number is limited in the same way.
    pub(crate) adoptions: Vec<Adoption>,
    pub(crate) lookups: Vec<LookupResult>,
    pub(crate) shutdown: bool,
    /// True if the worker has been woken for this mail.
    woken: bool,
}

/// The result of a name lookup that the worker has requested.
#[derive(Debug)]
pub(crate) struct LookupResult {
    /// The number of the lookup.
    pub(crate) number: u64,
    pub(crate) found: io::Result<Arc<[SocketAddr]>>,
}

impl Mailbox {
    pub(crate) fn new() -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self {
            wake,
            mail: Mutex::default(),
        })
    }

    /// Leaves publications if they fit; returns whether they did. An empty mailbox accepts a burst
    /// of any size.
    ///
    /// The lock is held only while a pointer is added. A lock-free queue would not shorten that by
    /// much, because waking the worker takes longer.
    pub(crate) fn publish(&self, burst: &Arc<Burst>, bytes_max: usize) -> bool {
        let bytes = burst.bytes();
        let mut fits = false;
        self.post(|mail| {
            fits = mail.bursts.is_empty() || mail.bytes + bytes <= bytes_max;
            if fits {
                mail.bytes += bytes;
                mail.bursts.push(burst.clone());
            }
        });
        fits
    }

    /// Requests that a connection's input be resumed; returns whether there was room for the
    /// request.
    pub(crate) fn resume(&self, index: u32, serial: u32) -> bool {
        let mut room = false;
        self.post(|mail| {
            room = mail.resumes.len() < RESUMES_MAX;
            if room {
                mail.resumes.push((index, serial));
            }
        });
        room
    }

    /// Requests a connection, which must have been counted.
    pub(crate) fn connect(&self, pending: Pending) {
        self.post(|mail| mail.connects.push(pending));
    }

    /// Hands over a connection, which must have been counted.
    pub(crate) fn adopt(&self, adoption: Adoption) {
        self.post(|mail| mail.adoptions.push(adoption));
    }

    /// Delivers the result of a lookup that the worker has requested.
    pub(crate) fn finish_lookup(&self, result: LookupResult) {
        self.post(|mail| mail.lookups.push(result));
    }

    /// Asks the worker to close its connections and stop.
    pub(crate) fn shut_down(&self) {
        self.post(|mail| mail.shutdown = true);
    }

    /// Takes the content; `mail` is emptied and becomes the new mailbox.
    pub(crate) fn take(&self, mail: &mut Mail) {
        // An error means that there was nothing to read.
        _ = rustix::io::read(&self.wake, &mut [0; 8]);
        mail.bursts.clear();
        mail.bursts
            .shrink_to(KEPT_BYTES_MAX / size_of::<Arc<Burst>>());
        mail.bytes = 0;
        mail.resumes.clear();
        mail.resumes
            .shrink_to(KEPT_BYTES_MAX / size_of::<(u32, u32)>());
        mail.connects = Vec::new();
        mail.adoptions = Vec::new();
        mail.lookups = Vec::new();
        (mail.shutdown, mail.woken) = (false, false);
        std::mem::swap(&mut *self.lock(), mail);
    }

    fn post(&self, add: impl FnOnce(&mut Mail)) {
        let mut mail = self.lock();
        add(&mut mail);
        if !std::mem::replace(&mut mail.woken, true) {
            // This fails only if the counter is at its maximum, and then the worker wakes up
            // anyway.
            _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Mail> {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for Mailbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use linerate_proto::engine::MessageKind;

    use super::*;

    #[test]
    fn publications_beyond_the_limit_are_refused() {
        let mailbox = Mailbox::new().unwrap();
        let mut burst = Burst::default();
        burst.push("t", MessageKind::Text, &[b'x'; 100]);
        let burst = Arc::new(burst);
        // An empty mailbox accepts any burst.
        assert!(mailbox.publish(&burst, 0));
        assert!(!mailbox.publish(&burst, 2 * burst.bytes() - 1));
        assert!(mailbox.publish(&burst, 2 * burst.bytes()));
        let mut mail = Mail::default();
        mailbox.take(&mut mail);
        assert_eq!(mail.bursts.len(), 2);
        mailbox.take(&mut mail);
        assert!(mail.bursts.is_empty());
        assert_eq!(Arc::strong_count(&burst), 1);
        assert!(mailbox.publish(&burst, 0));
    }

    #[test]
    fn resumes_are_bounded() {
        let mailbox = Mailbox::new().unwrap();
        for index in 0..RESUMES_MAX as u32 {
            assert!(mailbox.resume(index, 0));
        }
        assert!(!mailbox.resume(0, 0));
        let mut mail = Mail::default();
        mailbox.take(&mut mail);
        assert_eq!(mail.resumes.len(), RESUMES_MAX);
        assert!(mailbox.resume(0, 0));
    }
}
