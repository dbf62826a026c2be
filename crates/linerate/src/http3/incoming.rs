//! A stream that a client has opened, until it is a WebSocket or refused.

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

/// How long a client that is refused may leave its window closed to the answer.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// A stream that a client has opened.
pub(crate) struct Incoming {
    pub(super) connection: Connection,
    pub(super) send: SendStream,
    pub(super) recv: RecvStream,
    pub(super) place: Place,
    pub(super) header_list_bytes_max: u32,
}

/// What a client asks for.
pub(crate) enum Asked {
    Request(RequestHead),
    /// Its fields are more than may be.
    TooLarge,
}

impl Incoming {
    /// Reads the request.
    ///
    /// # Errors
    /// It is malformed, or the stream or the connection was lost.
    pub(crate) async fn read(&mut self) -> Result<Asked, Failure> {
        let section = read_section(&mut self.recv, self.header_list_bytes_max).await?;
        let incomplete = Fault::stream(Code::REQUEST_INCOMPLETE, "request without fields");
        match section.ok_or(incomplete)? {
            Section::Fields(fields) => Ok(Asked::Request(RequestHead::of(fields)?)),
            Section::TooLarge => Ok(Asked::TooLarge),
        }
    }

    /// Opens the WebSocket with the fields of the response, for which the client has to have room in time.
    ///
    /// # Errors
    /// The stream or the connection was lost.
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

    /// Refuses the request. The rest of it is not read.
    pub(crate) async fn refuse(mut self, refusal: &Refusal) {
        let mut response = Vec::new();
        put(&mut response, HEADERS, &message::refusal(refusal));
        if !refusal.text().is_empty() {
            put(&mut response, DATA, refusal.text().as_bytes());
        }
        let sent = timeout(REFUSAL_TIMEOUT, self.send.write_all(&response)).await;
        if !matches!(sent, Ok(Ok(()))) || self.send.finish().is_err() {
            tracing::debug!("refusal not delivered");
            return self.give_up(Code::REQUEST_CANCELLED);
        }
        // RFC 9114 §4.1: "the server MAY send a STOP_SENDING frame … with an error code of
        // H3_NO_ERROR". It fails if all of the request has come.
        _ = self.recv.stop(Code::NO_ERROR.into());
    }

    /// Gives up the stream, and the connection if that is what `failure` comes to.
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

    /// Gives up the stream of a client that takes too long to say what it wants.
    pub(crate) fn time_out(self) {
        self.give_up(Code::REQUEST_INCOMPLETE);
    }

    fn give_up(mut self, code: Code) {
        // These fail for what is over.
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
