//! TLS between the socket and the code that handles plaintext.

use std::io;

use super::{Core, Worker};
use crate::{
    ConnectError,
    connection::{Connection, Stage},
    tls::{Alert, Failed, Outcome, Plaintext, Tls},
};

impl Worker {
    /// Decrypts the bytes that a read returned, and handles the plaintext.
    pub(super) fn take_records(&mut self, key: usize, input: &mut [u8]) {
        let mut at = 0;
        while at < input.len() {
            let core = &mut self.core;
            let connection = &mut self.connections[key];
            let is_refused = matches!(connection.stage, Stage::Refused { .. });
            let Some(tls) = &mut connection.tls else {
                return;
            };
            if connection.ended || connection.lost || is_refused {
                // Anything after the end of the stream is ignored (RFC 8446 §6.1), as is anything
                // after a refused request.
                return;
            }
            let was_open = tls.is_open();
            let taken = tls.take(&mut input[at..], &mut core.output.sealed, &mut core.pool);
            if tls.is_open() && !was_open {
                self.send_request(key);
            }
            match taken.plaintext {
                Plaintext::InPlace(bytes) => self.take_plain(key, &mut input[at..at + bytes]),
                Plaintext::Joined(mut record, bytes) => {
                    self.take_plain(key, &mut record[..bytes]);
                    self.core.pool.give(record);
                }
            }
            at += taken.bytes;
            match taken.outcome {
                Outcome::Continues => {}
                Outcome::Ended => self.connections[key].ended = true,
                Outcome::Failed(failed) => return self.fail_tls(key, failed),
            }
        }
    }

    /// Ends a connection whose peer violates the TLS protocol. Replies to earlier input are sent
    /// first, then the alert.
    fn fail_tls(&mut self, key: usize, Failed { alert, cause }: Failed) {
        let core = &mut self.core;
        let connection = &mut self.connections[key];
        core.flush(connection, &[], &[]);
        core.close_tls(connection, alert);
        match connection.stage {
            // Without this, closing could reset the connection before the peer has read the alert.
            Stage::Opening(_) => self.begin_refusal(key),
            Stage::Connecting(_) => {
                let cause = cause.unwrap_or_else(|| io::ErrorKind::InvalidData.into());
                self.give_up(key, ConnectError::Tls(cause));
            }
            Stage::Open { .. } | Stage::Refused { .. } => connection.lost = true,
        }
    }

    /// Starts TLS on an outbound connection or, for `ws://`, the opening handshake.
    pub(super) fn begin_request(&mut self, key: usize) {
        let core = &mut self.core;
        let connection = &mut self.connections[key];
        let Stage::Connecting(attempt) = &connection.stage else {
            return;
        };
        let Some(peer) = attempt.pending.destination.peer() else {
            return self.send_request(key);
        };
        match Tls::client(peer, &mut core.output.sealed) {
            Ok(tls) => {
                connection.tls = Some(tls);
                core.flush(connection, &[], &[]);
            }
            Err(failed) => self.fail_tls(key, failed),
        }
    }

    /// Starts the opening handshake on an outbound connection.
    fn send_request(&mut self, key: usize) {
        let core = &mut self.core;
        let connection = &mut self.connections[key];
        if let Stage::Connecting(attempt) = &connection.stage {
            attempt.handshake.encode(&mut core.output.cork);
            core.flush(connection, &[], &[]);
        }
    }
}

impl Core {
    /// Ends an encrypted stream to the peer with `alert`, or with close_notify if there is none.
    pub(super) fn close_tls(&mut self, connection: &mut Connection, alert: Option<Alert>) {
        if let Some(tls) = &mut connection.tls {
            tls.close(
                alert.unwrap_or(Alert::CLOSE_NOTIFY),
                &mut self.output.sealed,
            );
            self.flush(connection, &[], &[]);
        }
    }
}
