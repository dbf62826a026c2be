//! A stream that a client has opened, until it becomes a WebSocket or is refused.

use std::{io, time::Duration};

use linerate_proto::handshake::Refusal;
use quinn::{Connection, RecvStream, SendStream};
use tokio::time::timeout;

use super::{
    exchange::read_section,
    fault::{Code, Failure, Fault},
    frame::{DATA, HEADERS, Head},
    message::{self, RequestHead},
    qpack::Section,
    stream::{Owner, Stream},
};
use crate::places::Place;

/// How long a client may keep its window closed to a refusal.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// A stream that a client has opened.
pub(crate) struct Incoming {
    pub(super) connection: Connection,
    pub(super) send: SendStream,
    pub(super) recv: RecvStream,
    pub(super) place: Place,
    pub(super) header_list_bytes_max: u32,
}

/// The request of a client.
pub(crate) enum Asked {
    Request(RequestHead),
    /// The header fields exceed the limit.
    TooLarge,
}

impl Incoming {
    /// Reads the request.
    ///
    /// # Errors
    /// Returns an error if the request is malformed, or if the stream or the connection is lost.
    pub(crate) async fn read(&mut self) -> Result<Asked, Failure> {
        let section = read_section(&mut self.recv, self.header_list_bytes_max).await?;
        let incomplete = Fault::stream(Code::REQUEST_INCOMPLETE, "request without fields");
        match section.ok_or(incomplete)? {
            Section::Fields(fields) => Ok(Asked::Request(RequestHead::of(fields)?)),
            Section::TooLarge => Ok(Asked::TooLarge),
        }
    }

    /// Opens the WebSocket with the header fields of the response. The client's window must have
    /// room for them within `budget`.
    ///
    /// # Errors
    /// Returns an error if the client does not make room in time, or if the stream or the
    /// connection is lost.
    pub(crate) async fn accept(mut self, section: &[u8], budget: Duration) -> io::Result<Stream> {
        let mut response = Vec::new();
        put(&mut response, HEADERS, section);
        let sent = timeout(budget, self.send.write_all(&response)).await;
        let error = match sent {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.into()),
            Err(_) => Some(io::ErrorKind::TimedOut.into()),
        };
        if let Some(error) = error {
            self.give_up(Code::REQUEST_CANCELLED);
            return Err(error);
        }
        let owner = Owner::Server(self.place);
        Ok(Stream::new(self.connection, (self.send, self.recv), owner))
    }

    /// Refuses the request without reading the rest of it.
    pub(crate) async fn refuse(mut self, refusal: &Refusal) {
        let mut response = Vec::new();
        put(&mut response, HEADERS, &message::refusal(refusal));
        if !refusal.text().is_empty() {
            put(&mut response, DATA, refusal.text().as_bytes());
        }
        let sent = timeout(REFUSAL_TIMEOUT, self.send.write_all(&response)).await;
        if !matches!(sent, Ok(Ok(()))) || self.send.finish().is_err() {
            tracing::debug!("failed to send the refusal");
            return self.give_up(Code::REQUEST_CANCELLED);
        }
        // RFC 9114 §4.1: "the server MAY send a STOP_SENDING frame … with an error code of
        // H3_NO_ERROR". This fails if the whole request has arrived.
        _ = self.recv.stop(Code::NO_ERROR.into());
    }

    /// Resets the stream, and closes the connection if `failure` requires it.
    pub(crate) fn fail(self, failure: &Failure) {
        let code = match failure {
            Failure::Fault(fault) => {
                fault.close(&self.connection);
                fault.code
            }
            Failure::Lost(_) => Code::REQUEST_CANCELLED,
        };
        self.give_up(code);
    }

    /// Resets the stream of a client that takes too long to send its request.
    pub(crate) fn time_out(self) {
        self.give_up(Code::REQUEST_INCOMPLETE);
    }

    fn give_up(mut self, code: Code) {
        // These fail if the stream has already ended.
        _ = self.send.reset(code.into());
        _ = self.recv.stop(code.into());
        self.place.note_reset();
    }
}

/// Appends a frame.
pub(super) fn put(output: &mut Vec<u8>, kind: u64, payload: &[u8]) {
    let head = Head {
        kind,
        payload_bytes: payload.len() as u64,
    };
    head.encode(output);
    output.extend_from_slice(payload);
}
