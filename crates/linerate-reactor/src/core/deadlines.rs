//! The deadlines of connections.

use crate::{
    connection::{Connection, Stage},
    wheel::{Tick, Wheel, tick_after},
};

/// When to check the deadlines of connections. Each connection is scheduled at most once.
pub(crate) struct Deadlines(Wheel);

impl Deadlines {
    pub(super) fn new() -> Self {
        Self(Wheel::new())
    }

    /// Schedules a check of the connection for when its next deadline has passed.
    pub(crate) fn schedule(&mut self, connection: &mut Connection) {
        let Some(due) = next_deadline(connection) else {
            return;
        };
        if connection.alarm == 0 || due < connection.alarm {
            self.cancel(connection);
            connection.alarm = self.0.push(due, connection.slot.index);
        }
    }

    /// Cancels the scheduled check of the connection.
    pub(crate) fn cancel(&mut self, connection: &mut Connection) {
        let alarm = std::mem::take(&mut connection.alarm);
        if alarm != 0 {
            self.0.remove(alarm, connection.slot.index);
        }
    }

    /// Removes and returns the key of a connection that is to be checked now.
    pub(crate) fn pop(&mut self, now: Tick) -> Option<usize> {
        self.0.pop(now).map(|key| key as usize)
    }

    /// Returns whether checks are left that were already due when [`pop`](Self::pop) was last
    /// called.
    pub(crate) fn is_behind(&self) -> bool {
        self.0.is_behind()
    }

    /// Returns whether no check is scheduled.
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Returns the tick of a connection's next deadline.
fn next_deadline(connection: &Connection) -> Option<Tick> {
    let stall = connection.backlog.stall_due();
    let message = (connection.message_due != 0).then_some(connection.message_due);
    let stage = match &connection.stage {
        Stage::Connecting(attempt) if connection.connecting => {
            Some(tick_after(attempt.address_due))
        }
        Stage::Connecting(attempt) => Some(tick_after(attempt.due)),
        Stage::Opening(opening) => Some(tick_after(opening.due)),
        Stage::Refused { due } => Some(*due),
        Stage::Open { .. } if connection.engine_has_deadline() => {
            connection.engine.poll_timeout().map(tick_after)
        }
        Stage::Streaming { due } if *due != 0 => Some(*due),
        Stage::Open { .. } | Stage::Streaming { .. } => None,
    };
    stall.into_iter().chain(message).chain(stage).min()
}
