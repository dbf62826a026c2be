//! What remains to be done for a connection after it was handled.

use linerate_proto::{Role, engine::State};

use super::{input::Input, parts::Parts};
use crate::{
    connection::{Connection, Stage},
    core::Core,
    driver::socket,
    wheel::tick_after,
};

/// Writes the output that callbacks have left and updates everything that depends on the state of
/// the connection. Returns whether the connection is over and has to be ended.
pub(super) fn settle(input: &mut Input, parts: &mut Parts, connection: &mut Connection) -> bool {
    input.handle_held(parts, connection);
    let Parts { core, routes, .. } = parts;
    let is_open = matches!(connection.stage, Stage::Open { .. });
    if is_open && connection.engine.wants_transmit() {
        connection.engine.poll_transmit(&mut core.io.cork.bytes);
    }
    if !core.io.is_flushed() {
        core.io.flush(connection, &[], &[]);
    }
    if connection.congested && !connection.congestion_reported {
        connection.congestion_reported = true;
        core.mailbox().record_congested(connection.slot, true);
        routes.congested(core, connection);
        core.io.flush(connection, &[], &[]);
    }
    if !connection.lost && (is_over(connection) || ends_output(connection)) {
        core.io.end_tls(connection, None);
    }
    let ends = !connection.lost && is_over(connection);
    // Queued output keeps a connection alive. A backlog does not, once the connection is over.
    let waits = ends && connection.backlog.is_empty() && !core.io.write_queued(connection);
    if connection.lost || (ends && !waits) {
        return true;
    }
    if !connection.output_ended && ends_output(connection) && core.io.write_queued(connection) {
        connection.output_ended = true;
        socket::end_output(&connection.socket);
    }
    let wanted = connection.wanted();
    let updated = core.io.driver.update(
        &connection.socket,
        connection.slot.token(),
        &mut connection.watch,
        wanted,
    );
    if updated.is_err() {
        return true;
    }
    core.io.memory.used.charge(connection);
    let is_timed = set_message_due(core, connection);
    let is_closing = match connection.stage {
        Stage::Open { .. } => connection.engine.is_output_over(),
        _ => ends_output(connection),
    };
    if connection.alarm == 0 || wanted.write || is_timed || is_closing {
        core.deadlines.schedule(connection);
    }
    false
}

/// Sets the time by which the message that is arriving must be complete, if it has just begun;
/// returns whether it did so.
#[inline]
fn set_message_due(core: &Core, connection: &mut Connection) -> bool {
    if connection.partial.is_none() {
        connection.message_due = 0;
        return false;
    }
    let Some(timeout) = core.message_timeout else {
        return false;
    };
    if connection.message_due != 0 {
        return false;
    }
    connection.message_due = tick_after(core.now + timeout);
    true
}

/// Returns whether nothing remains to be done for a connection except to close its socket.
fn is_over(connection: &Connection) -> bool {
    let written = connection.backlog.is_empty();
    match connection.stage {
        // Input that arrived before the end is still handled.
        Stage::Open { .. } if !connection.held.is_empty() => false,
        Stage::Open { .. } if connection.ended => written || !connection.engine.is_input_over(),
        // §7.1.1: the server closes the TCP connection first. Both Close frames have been
        // exchanged, so that there is no unread input that would cause a reset. A client waits for
        // the server to close.
        Stage::Open { .. } => {
            written
                && connection.engine.state() == State::Closed
                && connection.role() == Role::Server
        }
        // The reader of a stream that has closed its side is gone: no HTTP client does so before.
        Stage::Connecting(_) | Stage::Opening(_) | Stage::Streaming { .. } => connection.ended,
        Stage::Refused { .. } => connection.ended && written,
    }
}

/// Returns whether our output ends once it is written, while input is still read and ignored.
/// Otherwise closing could reset the connection before the peer has read the reason.
fn ends_output(connection: &Connection) -> bool {
    match connection.stage {
        Stage::Open { .. } => connection.engine.ends_stream(),
        Stage::Connecting(_) | Stage::Opening(_) => false,
        Stage::Refused { .. } => true,
        Stage::Streaming { due } => due != 0,
    }
}
