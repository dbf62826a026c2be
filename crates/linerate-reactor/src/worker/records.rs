//! TLS between the socket and what reads plaintext.

use super::{Core, Worker};
use crate::{
    connection::{Connection, Stage},
    tls::{Alert, Failed, Outcome, Plaintext},
};

impl Worker {
    /// Decrypts what a read gave, and hands it over.
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
                // What follows the end of the stream is nobody's (RFC 8446 §6.1), nor is what
                // follows a refused request.
                return;
            }
            let taken = tls.take(&mut input[at..], &mut core.output.sealed, &mut core.pool);
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
                Outcome::Failed(Failed(alert)) => return self.fail_tls(key, alert),
            }
        }
    }

    /// Ends a connection whose peer does not speak TLS as it must: what was received before that is
    /// answered, then the alert follows.
    fn fail_tls(&mut self, key: usize, alert: Option<Alert>) {
        let core = &mut self.core;
        let connection = &mut self.connections[key];
        let is_opening = matches!(connection.stage, Stage::Opening(_));
        core.flush(connection, &[], &[]);
        core.close_tls(connection, alert);
        if is_opening {
            // So that closing does not reset the connection before the peer has read the alert.
            self.begin_refusal(key);
        } else {
            self.connections[key].lost = true;
        }
    }
}

impl Core {
    /// Ends the stream to the peer, if that is encrypted: nothing follows, or there is something to
    /// be told first.
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
