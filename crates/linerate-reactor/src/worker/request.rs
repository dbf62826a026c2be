//! Opening handshakes with servers.

use linerate_proto::handshake::Negotiated;

use crate::{
    connection::{Connection, Stage},
    core::Core,
    handler::Opened,
    outbound::error::ConnectError,
    route::routes::Routes,
};

/// Sends the request of an outbound connection.
pub(super) fn send(core: &mut Core, connection: &mut Connection) {
    if let Stage::Connecting(attempt) = &connection.stage {
        attempt.handshake.encode(&mut core.io.cork.bytes);
        core.io.flush(connection, &[], &[]);
    }
}

/// Handles input of the opening handshake; returns how many bytes belonged to it.
pub(super) fn handle_input(
    core: &mut Core,
    routes: &mut Routes,
    connection: &mut Connection,
    input: &[u8],
) -> usize {
    let Stage::Connecting(attempt) = &mut connection.stage else {
        return 0;
    };
    match attempt.handshake.handle_input(input) {
        Ok(None) => input.len(),
        Ok(Some((response, head_bytes))) => {
            open(core, routes, connection, &response);
            head_bytes
        }
        Err(error) => {
            cancel(connection, ConnectError::Handshake(error));
            input.len()
        }
    }
}

/// Cancels an attempt that has begun; the caller settles the connection.
pub(super) fn cancel(connection: &mut Connection, error: ConnectError) {
    if let Stage::Connecting(attempt) = &mut connection.stage {
        attempt.failure = Some(error);
        connection.lost = true;
    }
}

fn open(core: &mut Core, routes: &mut Routes, connection: &mut Connection, response: &Negotiated) {
    // A placeholder; `Routes::open` sets the stage below.
    let stage = std::mem::replace(&mut connection.stage, Stage::Refused { due: 0 });
    let Stage::Connecting(attempt) = stage else {
        return;
    };
    core.dialer.under_way -= 1;
    let opened = Opened::Connected {
        destination: &attempt.pending.destination,
        response,
    };
    core.renew_engine(connection);
    #[cfg(feature = "deflate")]
    core.set_deflate(connection, response.deflate());
    routes.open(core, connection, attempt.pending.route, opened);
}
