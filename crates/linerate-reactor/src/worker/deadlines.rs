//! The deadlines of connections.

use std::io;

use linerate_proto::engine::Timeout;

use super::Worker;
use crate::{
    ConnectError,
    connection::{Connection, Stage},
    worker::wheel::{Tick, tick_after, tick_at},
};

/// Maximum number of deadlines that are handled before connections have their turn again. Thousands
/// of connections that opened together are due together, and each may take system calls of 10 µs.
const ALARMS_MAX: usize = 8;

impl Worker {
    /// Schedules a check of the connection for when its next deadline has passed.
    pub(super) fn set_alarm(&mut self, key: usize) {
        let connection = &mut self.connections[key];
        let Some(due) = deadline(connection) else {
            return;
        };
        if connection.alarm == 0 || due < connection.alarm {
            self.drop_alarm(key);
            self.connections[key].alarm = self.wheel.push(due, key as u32);
        }
    }

    /// Cancels the scheduled check of the connection.
    pub(super) fn drop_alarm(&mut self, key: usize) {
        let alarm = std::mem::take(&mut self.connections[key].alarm);
        if alarm != 0 {
            self.wheel.remove(alarm, key as u32);
        }
    }

    /// Handles the deadlines that have passed.
    pub(super) fn keep_deadlines(&mut self) -> io::Result<()> {
        let now = tick_at(self.core.now);
        if self.accept_due.is_some_and(|due| now >= due) {
            self.resume_accepting()?;
        }
        for _ in 0..ALARMS_MAX {
            let Some(key) = self.wheel.pop(now) else {
                break;
            };
            self.connections[key as usize].alarm = 0;
            self.ring(key as usize, now);
        }
        Ok(())
    }

    /// Checks the deadlines of one connection.
    pub(super) fn ring(&mut self, key: usize, now: Tick) {
        let connection = &mut self.connections[key];
        if !connection.backlog.is_empty() && now >= connection.stall_due {
            connection.lost = true;
        }
        match &connection.stage {
            Stage::Connecting(attempt) if self.core.now >= attempt.due => {
                let time_max = attempt.time_max;
                self.give_up(key, ConnectError::TimedOut { time_max });
            }
            Stage::Connecting(attempt)
                if connection.connecting && self.core.now >= attempt.address_due =>
            {
                return self.try_next(key, io::ErrorKind::TimedOut.into());
            }
            Stage::Opening(opening) if self.core.now >= opening.due => self.refuse_late(key),
            Stage::Refused { due } if now >= *due => connection.lost = true,
            Stage::Open { .. } if engine_has_deadline(connection) => {
                match connection.engine.handle_timeout(self.core.now) {
                    // A keepalive that failed has queued our Close frame.
                    Ok(()) | Err(Timeout::Keepalive(_)) => {}
                    Err(_) => connection.lost = true,
                }
            }
            _ => {}
        }
        self.settle(key);
    }
}

/// Returns the tick of a connection's next deadline.
fn deadline(connection: &Connection) -> Option<Tick> {
    let stall = (!connection.backlog.is_empty()).then_some(connection.stall_due);
    let stage = match &connection.stage {
        Stage::Connecting(attempt) if connection.connecting => {
            Some(tick_after(attempt.address_due))
        }
        Stage::Connecting(attempt) => Some(tick_after(attempt.due)),
        Stage::Opening(opening) => Some(tick_after(opening.due)),
        Stage::Refused { due } => Some(*due),
        Stage::Open { .. } if engine_has_deadline(connection) => {
            connection.engine.poll_timeout().map(tick_after)
        }
        Stage::Open { .. } => None,
    };
    stall.into_iter().chain(stage).min()
}

/// Returns whether the engine's deadlines apply. A peer whose input is not read cannot prove that
/// it is alive, but it has to complete the closing handshake in time.
fn engine_has_deadline(connection: &Connection) -> bool {
    !connection.is_stopped() || connection.engine.is_output_over()
}
