//! The start and the failure of TLS on a connection.

use std::io;

use super::{parts::Parts, request};
use crate::{
    connection::{Connection, Stage},
    outbound::error::ConnectError,
    tls::{Tls, outcome::Failed},
};

/// Starts TLS on an outbound connection or, for `ws://`, the opening handshake.
pub(super) fn start_client(parts: &mut Parts, connection: &mut Connection) {
    let Stage::Connecting(attempt) = &connection.stage else {
        return;
    };
    let io = &mut parts.core.io;
    let Some(peer) = attempt.pending.destination.peer() else {
        return request::send(&mut parts.core, connection);
    };
    match Tls::client(peer, &mut io.sealed) {
        Ok(tls) => {
            connection.tls = Some(tls);
            io.flush(connection, &[], &[]);
        }
        Err(failed) => fail(parts, connection, failed),
    }
}

/// Ends a connection whose peer violates the TLS protocol. Replies to earlier input are sent first,
/// then the alert.
pub(super) fn fail(
    parts: &mut Parts,
    connection: &mut Connection,
    Failed { alert, cause }: Failed,
) {
    let Parts {
        core, handshakes, ..
    } = parts;
    core.io.flush(connection, &[], &[]);
    core.io.end_tls(connection, alert);
    match connection.stage {
        // Without this, closing could reset the connection before the peer has read the alert.
        Stage::Opening(_) => handshakes.begin_refusal(core, connection),
        Stage::Connecting(_) => {
            let cause = cause.unwrap_or_else(|| io::ErrorKind::InvalidData.into());
            request::cancel(connection, ConnectError::Tls(cause));
        }
        Stage::Open { .. } | Stage::Refused { .. } | Stage::Streaming { .. } => {
            connection.lost = true;
        }
    }
}
