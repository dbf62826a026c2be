//! Carrying out what callbacks and other threads request for single connections.

use super::service::Service;
use crate::{
    commands::{Command, Commands},
    connection::{Connection, id::Slot},
    core::Core,
};

/// Commands are carried out before the end of a turn once they use this many bytes.
const URGENT_BYTES_MIN: usize = 256 << 10;

/// Memory in bytes that commands keep while there are none.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// The output for one connection is written early once it has this many bytes.
const CORK_BYTES_MAX: usize = 128 << 10;

/// Maximum number of commands of other threads that are carried out in one turn. If each is for
/// another connection, their writes take about 150 µs.
const COMMANDS_MAX: usize = 64;

/// Carries out the commands of callbacks in the middle of a turn if they are many.
#[inline]
pub(super) fn run_if_urgent(service: &mut Service) {
    if service.parts.core.commands.bytes() > URGENT_BYTES_MIN {
        run(service);
    }
}

/// Carries out all commands of callbacks, with one write for consecutive messages to one
/// connection.
pub(super) fn run(service: &mut Service) {
    // Handlers that are called meanwhile may request more.
    while !service.parts.core.commands.is_empty() {
        let mut commands = std::mem::take(&mut service.parts.core.commands);
        run_all(service, commands.iter());
        commands.clear(KEPT_BYTES_MAX);
        if service.parts.core.commands.is_empty() {
            service.parts.core.commands = commands;
        }
    }
}

/// The commands of other threads. They are carried out in slices, between which sockets are served.
/// Meanwhile, further commands wait in the mailbox, where they are limited.
#[derive(Default)]
pub(super) struct RemoteCommands {
    commands: Commands,
    /// The number of commands that have been carried out.
    done: usize,
    /// True if the mailbox may have further commands.
    may_have_more: bool,
}

impl RemoteCommands {
    /// Records that something has arrived in the mailbox.
    pub(super) const fn arrive(&mut self) {
        self.may_have_more = true;
    }

    /// Returns whether there may be commands to carry out.
    pub(super) const fn has_work(&self) -> bool {
        self.may_have_more || self.done < self.commands.len()
    }

    /// Carries out the next slice.
    pub(super) fn run_some(&mut self, service: &mut Service) {
        if self.done == self.commands.len() {
            self.refill(&service.parts.core);
        }
        let end = self.commands.len().min(self.done + COMMANDS_MAX);
        let slice = self.commands.iter_from(self.done);
        run_all(service, slice.take(end - self.done));
        self.done = end;
    }

    /// Carries out everything that has arrived by now.
    pub(super) fn run_all(&mut self, service: &mut Service) {
        run_all(service, self.commands.iter_from(self.done));
        self.refill(&service.parts.core);
        run_all(service, self.commands.iter());
        self.done = self.commands.len();
    }

    fn refill(&mut self, core: &Core) {
        self.commands.clear(KEPT_BYTES_MAX);
        self.done = 0;
        if std::mem::take(&mut self.may_have_more) {
            core.mailbox().take_commands(&mut self.commands);
        }
    }
}

fn run_all<'a>(service: &mut Service, commands: impl Iterator<Item = (Slot, Command<'a>)>) {
    let mut last = None;
    for (slot, command) in commands {
        if last != Some(slot)
            && let Some(last) = last.replace(slot)
        {
            service.settle_slot(last);
        }
        match service.connections.find(slot.token()) {
            Some(key) => {
                let connection = &mut service.connections[key];
                run_one(&mut service.parts.core, connection, command);
            }
            None => count_dropped(&service.parts.core, command),
        }
    }
    if let Some(last) = last {
        service.settle_slot(last);
    }
}

fn run_one(core: &mut Core, connection: &mut Connection, command: Command<'_>) {
    match command {
        Command::Message(kind, payload) => {
            let cork = &mut core.io.cork.bytes;
            // The connection may be closing; its handler knows or is about to.
            if connection.engine.send(cork, kind, payload).is_err() {
                return count_dropped(core, command);
            }
            if cork.len() >= CORK_BYTES_MAX {
                core.io.flush(connection, &[], &[]);
            }
            if connection.backlog.len() > core.reactor.options.relayed_bytes_max {
                connection.lost = true;
            }
        }
        Command::Close(code, reason) => {
            let reason = std::str::from_utf8(reason).unwrap_or_default();
            // The length of the reason was checked before.
            _ = connection.engine.close(code, reason, core.now);
        }
        Command::Pause => connection.paused = true,
        Command::Resume => connection.paused = false,
    }
}

#[cold]
fn count_dropped(core: &Core, command: Command<'_>) {
    if let Command::Message(..) = command {
        core.reactor.counters.messages_dropped.add(1);
    }
}
