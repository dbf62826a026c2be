//! Connections that arrive.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    sync::atomic::Ordering,
};

use linerate_proto::{Engine, Role, handshake::RequestReader};

use super::{Core, LISTENER, Worker, token};
use crate::{
    ConnectionId,
    backlog::Backlog,
    connection::{Connection, Opening, Stage},
    driver::Interest,
    remainder::Remainder,
    side::Side,
    socket::{self, Accepted},
    wheel::tick_after,
};

/// Connections accepted before the open ones have their turn.
const ACCEPTS_MAX: usize = 64;

impl Worker {
    /// Accepts connections that wait.
    pub(super) fn accept(&mut self) -> io::Result<()> {
        for _ in 0..ACCEPTS_MAX {
            let Some(listener) = &mut self.listener else {
                break;
            };
            match socket::accept(&listener.socket) {
                Ok(Accepted::Connection(socket)) => self.start(socket),
                Ok(Accepted::Nothing) => break,
                Ok(Accepted::Shortage) => {
                    // The listener stays ready; to be told so again and again would be to spin.
                    self.core.driver.update(
                        listener.socket.as_fd(),
                        LISTENER,
                        &mut listener.watch,
                        Interest::NONE,
                    )?;
                    self.accept_due = Some(tick_after(self.core.now));
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Goes on accepting after a shortage.
    pub(super) fn resume_accepting(&mut self) -> io::Result<()> {
        if let (Some(listener), Some(_)) = (&mut self.listener, self.accept_due.take()) {
            self.core.driver.update(
                listener.socket.as_fd(),
                LISTENER,
                &mut listener.watch,
                Interest::READ,
            )?;
        }
        Ok(())
    }

    /// Starts with a connection that was accepted.
    pub(super) fn start(&mut self, socket: OwnedFd) {
        let key = self.connections.next_index();
        let id = ConnectionId {
            worker: self.number,
            index: key as u32,
            serial: self.next_serial,
        };
        self.next_serial = self.next_serial.wrapping_add(1);
        let added = self
            .core
            .driver
            .add(socket.as_fd(), token(id), Interest::READ);
        let Ok(watch) = added else {
            return;
        };
        let Core { shared, now, .. } = &self.core;
        let open = shared.counters.connections.fetch_add(1, Ordering::Relaxed);
        let time_max = shared.options.handshake.time_max;
        let connection = Connection {
            socket,
            id,
            stage: Stage::Opening(Box::new(Opening {
                reader: RequestReader::new(shared.options.handshake),
                due: *now + time_max,
            })),
            engine: Engine::new(Side(Role::Server), shared.config.clone(), *now),
            gather: None,
            backlog: Backlog::default(),
            held: Remainder::default(),
            stall_due: 0,
            alarm: 0,
            watch,
            paused: false,
            congested: false,
            gathering: false,
            lost: false,
            ended: false,
            output_ended: false,
        };
        let is_overload = open >= shared.options.connections_max;
        self.connections.insert(connection);
        if is_overload {
            self.refuse_overload(key);
        }
        self.settle(key);
    }
}
