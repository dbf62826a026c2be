//! The worker's side of its mailbox.

use std::io;

use crate::{core::Core, driver::event::TOKEN_MAX, mailbox::Mail};

/// The token of the mailbox; no connection has this index.
pub(super) const MAILBOX: u64 = TOKEN_MAX - 1;

/// What other threads have left for a worker.
pub(super) struct Inbox {
    /// Empty mail, whose memory is reused.
    spare: Mail,
}

impl Inbox {
    pub(super) fn new(core: &mut Core) -> io::Result<Self> {
        let waker = core.io.driver.add_waker(MAILBOX)?;
        core.mailbox().set_waker(waker);
        Ok(Self {
            spare: Mail::default(),
        })
    }

    /// Takes everything that other threads have left.
    pub(super) fn take(&mut self, core: &Core) -> Mail {
        let mut mail = std::mem::take(&mut self.spare);
        core.mailbox().take(&mut mail);
        mail
    }

    /// Keeps the memory of mail that was processed.
    pub(super) fn give_back(&mut self, mail: Mail) {
        self.spare = mail;
    }
}

/// Watches the mailbox for further mail, after an event with
/// [`Event::is_over`](crate::driver::event::Event::is_over).
pub(super) fn watch(core: &mut Core) {
    let mailbox = &core.reactor.mailboxes[usize::from(core.number)];
    if let Some(waker) = mailbox.waker() {
        core.io.driver.renew_waker(waker, MAILBOX);
    }
}
