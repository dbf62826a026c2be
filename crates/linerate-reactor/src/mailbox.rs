//! Mailboxes: what other threads send to a worker.

mod reachable;

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use linerate_proto::{CloseCode, engine::Message};

use self::reachable::{Reach, Reachable};
use crate::{
    adoption::Adoption,
    commands::{Commands, ConnectionHandle},
    connection::id::{ConnectionId, Slot},
    driver::waker::Waker,
    outbound::dialer::Pending,
    topics::burst::Burst,
};

/// Maximum number of pending requests to resume connections of one worker.
const RESUMES_MAX: usize = 65_536;

/// Memory that a mailbox keeps while it is empty, in bytes.
const KEPT_BYTES_MAX: usize = 256 << 10;

/// A bounded mailbox that wakes its worker, once for everything that waits.
///
/// Its methods are of three kinds: leaving something for the worker, reaching one connection, and
/// the worker's side of both.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    /// Set by the worker when it starts.
    waker: OnceLock<Waker>,
    content: Mutex<Content>,
}

#[derive(Debug, Default)]
struct Content {
    mail: Mail,
    /// Messages and Close frames for single connections, in order with respect to each sender.
    commands: Commands,
    reachable: Reachable,
    /// True if the worker has been woken for this content.
    woken: bool,
}

/// The reason why a mailbox does not take something for a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum NotTaken {
    /// The connection has ended or is closing.
    Closed,
    /// The backlog of the connection has reached its limit.
    Congested,
    /// There is no room for this many bytes.
    Full(usize),
}

/// The content of a mailbox, which waits for a worker.
#[derive(Debug, Default)]
pub(crate) struct Mail {
    /// In order with respect to each publisher.
    pub(crate) bursts: Vec<Arc<Burst>>,
    /// The memory that the bursts use.
    bytes: usize,
    /// The connections whose input is to be resumed.
    pub(crate) resumes: Vec<Slot>,
    /// Connections to be opened; their number is limited by the connection limit.
    pub(crate) connects: Vec<Pending>,
    /// Connections that another server has accepted; their number is limited in the same way.
    pub(crate) adoptions: Vec<Adoption>,
    pub(crate) lookups: Vec<LookupResult>,
    pub(crate) shutdown: bool,
}

/// The result of a name lookup that the worker has requested.
#[derive(Debug)]
pub(crate) struct LookupResult {
    /// The number of the lookup.
    pub(crate) number: u64,
    pub(crate) found: io::Result<Arc<[SocketAddr]>>,
}

impl Mailbox {
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
    pub(crate) fn resume(&self, slot: Slot) -> bool {
        let mut room = false;
        self.post(|mail| {
            room = mail.resumes.len() < RESUMES_MAX;
            if room {
                mail.resumes.push(slot);
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

    /// Leaves a message for a connection. If no other command waits, any message is accepted.
    ///
    /// The payload is copied while the lock is held. That takes less time than to allocate memory
    /// for it, except for long messages, of which only a few fit into the mailbox.
    pub(crate) fn send(
        &self,
        id: ConnectionId,
        message: Message<'_>,
        bytes_max: usize,
    ) -> Result<(), NotTaken> {
        let mut content = self.lock();
        match content.reachable.find(id.slot) {
            Reach::Closed => return Err(NotTaken::Closed),
            Reach::Congested => return Err(NotTaken::Congested),
            Reach::Open => {}
        }
        let commands = &mut content.commands;
        let bytes = Commands::bytes_for(message.as_bytes());
        if !commands.is_empty() && commands.bytes() + bytes > bytes_max {
            return Err(NotTaken::Full(bytes));
        }
        ConnectionHandle::new(commands, id.slot).send(message);
        self.wake(&mut content);
        Ok(())
    }

    /// Leaves a Close frame for a connection, which is closed for other threads from now on. There
    /// is always room for one for each connection.
    pub(crate) fn close(
        &self,
        id: ConnectionId,
        code: CloseCode,
        reason: &str,
    ) -> Result<(), NotTaken> {
        let mut content = self.lock();
        if content.reachable.find(id.slot) == Reach::Closed {
            return Err(NotTaken::Closed);
        }
        content.reachable.close(id.slot);
        ConnectionHandle::new(&mut content.commands, id.slot).close(code, reason);
        self.wake(&mut content);
        Ok(())
    }

    /// Returns whether other threads can reach this connection.
    pub(crate) fn is_open(&self, id: ConnectionId) -> bool {
        self.lock().reachable.find(id.slot) != Reach::Closed
    }

    /// Sets what wakes the worker, and wakes it, because there may be mail already.
    pub(crate) fn set_waker(&self, waker: Waker) {
        let mut content = self.lock();
        _ = self.waker.set(waker);
        self.wake(&mut content);
    }

    /// Returns what wakes the worker.
    pub(crate) fn waker(&self) -> Option<&Waker> {
        self.waker.get()
    }

    /// Records that a connection of the worker has opened.
    pub(crate) fn record_open(&self, slot: Slot) {
        self.lock().reachable.open(slot);
    }

    /// Records that a connection has reached the limit of its backlog, or has written it.
    pub(crate) fn record_congested(&self, slot: Slot, congested: bool) {
        self.lock().reachable.set_congested(slot, congested);
    }

    /// Records that a connection has ended.
    pub(crate) fn record_closed(&self, slot: Slot) {
        self.lock().reachable.close(slot);
    }

    /// Takes the commands for single connections; `commands` must be empty and is filled next.
    pub(crate) fn take_commands(&self, commands: &mut Commands) {
        std::mem::swap(&mut self.lock().commands, commands);
    }

    /// Takes the mail; `mail` is emptied and becomes the new mailbox. Commands stay.
    pub(crate) fn take(&self, mail: &mut Mail) {
        if let Some(waker) = self.waker.get() {
            waker.reset();
        }
        mail.bursts.clear();
        mail.bursts
            .shrink_to(KEPT_BYTES_MAX / size_of::<Arc<Burst>>());
        mail.bytes = 0;
        mail.resumes.clear();
        mail.resumes.shrink_to(KEPT_BYTES_MAX / size_of::<Slot>());
        mail.connects = Vec::new();
        mail.adoptions = Vec::new();
        mail.lookups = Vec::new();
        mail.shutdown = false;
        let mut content = self.lock();
        content.woken = false;
        std::mem::swap(&mut content.mail, mail);
    }

    fn post(&self, add: impl FnOnce(&mut Mail)) {
        let mut content = self.lock();
        add(&mut content.mail);
        self.wake(&mut content);
    }

    /// Wakes the worker, unless it has been woken for this content already.
    fn wake(&self, content: &mut Content) {
        if !content.woken
            && let Some(waker) = self.waker.get()
        {
            // If this fails, the next mail tries it again.
            content.woken = waker.wake().is_ok();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use linerate_proto::engine::MessageKind;

    use super::*;

    #[test]
    fn publications_beyond_the_limit_are_refused() {
        let mailbox = Mailbox::default();
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
        let mailbox = Mailbox::default();
        let slot = Slot {
            index: 0,
            serial: 0,
        };
        for index in 0..RESUMES_MAX as u32 {
            assert!(mailbox.resume(Slot { index, serial: 0 }));
        }
        assert!(!mailbox.resume(slot));
        let mut mail = Mail::default();
        mailbox.take(&mut mail);
        assert_eq!(mail.resumes.len(), RESUMES_MAX);
        assert!(mailbox.resume(slot));
    }

    #[test]
    fn messages_beyond_the_limit_are_refused_and_a_close_is_not() {
        let mailbox = Mailbox::default();
        let id = ConnectionId {
            worker: 0,
            slot: Slot {
                index: 5,
                serial: 1,
            },
        };
        let payload = [b'x'; 100];
        let message = Message::Binary(&payload);
        let bytes = Commands::bytes_for(&payload);
        assert_eq!(mailbox.send(id, message, 1 << 20), Err(NotTaken::Closed));
        mailbox.record_open(id.slot);
        // An empty mailbox accepts any message.
        assert_eq!(mailbox.send(id, message, 0), Ok(()));
        let full = Err(NotTaken::Full(bytes));
        assert_eq!(mailbox.send(id, message, 2 * bytes - 1), full);
        assert_eq!(mailbox.send(id, message, 2 * bytes), Ok(()));
        mailbox.record_congested(id.slot, true);
        assert_eq!(
            mailbox.send(id, message, 9 * bytes),
            Err(NotTaken::Congested)
        );
        assert!(mailbox.is_open(id));
        assert_eq!(mailbox.close(id, CloseCode::NORMAL, "bye"), Ok(()));
        assert!(!mailbox.is_open(id));
        for _ in 0..2 {
            assert_eq!(mailbox.send(id, message, 9 * bytes), Err(NotTaken::Closed));
            let closed = mailbox.close(id, CloseCode::NORMAL, "bye");
            assert_eq!(closed, Err(NotTaken::Closed));
            mailbox.record_congested(id.slot, false);
        }
        let mut commands = Commands::default();
        mailbox.take_commands(&mut commands);
        assert_eq!(commands.iter().count(), 3);
    }
}
