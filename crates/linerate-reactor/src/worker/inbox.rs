//! The worker's side of its mailbox.

use std::{io, os::fd::AsFd};

use crate::{
    core::Core,
    driver::{
        Watch,
        event::{Interest, Source, TOKEN_MAX},
    },
    mailbox::Mail,
};

/// The token of the mailbox; no connection has this index.
pub(super) const MAILBOX: u64 = TOKEN_MAX - 1;

/// What other threads have left for a worker.
pub(super) struct Inbox {
    watch: Watch,
    /// Empty mail, whose memory is reused.
    spare: Mail,
}

impl Inbox {
    pub(super) fn new(core: &mut Core) -> io::Result<Self> {
        let mailbox = core.reactor.mailboxes[usize::from(core.number)].as_fd();
        let driver = &mut core.io.driver;
        Ok(Self {
            watch: driver.add(Source::Wake, mailbox, MAILBOX, Interest::READ)?,
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

    /// Keeps watching the mailbox for further mail.
    pub(super) fn watch(&mut self, core: &mut Core, is_over: bool) -> io::Result<()> {
        if is_over {
            self.watch.input_is_over();
        }
        let mailbox = core.reactor.mailboxes[usize::from(core.number)].as_fd();
        let driver = &mut core.io.driver;
        driver.update(mailbox, MAILBOX, &mut self.watch, Interest::READ)
    }
}
