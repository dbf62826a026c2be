//! Carrying out the commands of callbacks for other connections.

use super::service::Service;
use crate::{
    connection::Connection,
    core::{
        Core,
        commands::{Command, Commands},
    },
};

/// Commands are carried out before the end of a turn once they use this many bytes.
const URGENT_BYTES_MIN: usize = 256 << 10;

/// Memory in bytes that commands keep while there are none.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// The output for one connection is written early once it has this many bytes.
const CORK_BYTES_MAX: usize = 128 << 10;

/// Carries out the commands in the middle of a turn if they are many.
#[inline]
pub(super) fn run_if_urgent(service: &mut Service) {
    if service.parts.core.commands.bytes() > URGENT_BYTES_MIN {
        run(service);
    }
}

/// Carries out all commands, with one write for consecutive messages to one connection.
pub(super) fn run(service: &mut Service) {
    // Handlers that are called meanwhile may request more.
    while !service.parts.core.commands.is_empty() {
        let mut commands = std::mem::take(&mut service.parts.core.commands);
        run_all(service, &commands);
        commands.clear(KEPT_BYTES_MAX);
        if service.parts.core.commands.is_empty() {
            service.parts.core.commands = commands;
        }
    }
}

fn run_all(service: &mut Service, commands: &Commands) {
    let mut last = None;
    for (id, command) in commands.iter() {
        if last != Some(id)
            && let Some(last) = last.replace(id)
        {
            service.settle_id(last);
        }
        if let Some(key) = service.connections.find(id.token()) {
            let connection = &mut service.connections[key];
            run_one(&mut service.parts.core, connection, command);
        }
    }
    if let Some(last) = last {
        service.settle_id(last);
    }
}

fn run_one(core: &mut Core, connection: &mut Connection, command: Command<'_>) {
    match command {
        Command::Message(kind, payload) => {
            let cork = &mut core.io.cork.bytes;
            // The connection may be closing; its handler knows or is about to.
            _ = connection.engine.send(cork, kind, payload);
            if cork.len() >= CORK_BYTES_MAX {
                core.io.flush(connection, &[], &[]);
            }
            if connection.backlog.len() > core.reactor.options.relayed_bytes_max {
                connection.lost = true;
            }
        }
        Command::Close(code, reason) => {
            let reason = std::str::from_utf8(reason).unwrap_or_default();
            // `ConnectionHandle::close` has checked the length of the reason.
            _ = connection.engine.close(code, reason, core.now);
        }
        Command::Pause => connection.paused = true,
        Command::Resume => connection.paused = false,
    }
}
