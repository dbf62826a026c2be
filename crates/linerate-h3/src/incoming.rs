//! A stream that a client has opened, until it becomes a WebSocket or is refused.

use std::{io, time::Duration};

use linerate_http::Place;
use linerate_proto::handshake::{HandshakeError, HandshakeLimits, Refusal, Request};
use quinn::{Connection, RecvStream, SendStream};
use tokio::time::timeout;

use crate::{
    exchange::read_section,
    fault::{Code, Failure, Fault},
    frame::{DATA, HEADERS, put},
    message::{self, RequestHead},
    qpack::Section,
    stream::{Owner, Stream},
};

/// How long a client may keep its window closed to a refusal.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// A stream that a client has opened.
#[derive(Debug)]
pub struct Incoming {
    pub(crate) connection: Connection,
    pub(crate) send: SendStream,
    pub(crate) recv: RecvStream,
    pub(crate) place: Place,
    pub(crate) header_list_bytes_max: u32,
}

impl Incoming {
    /// Reads the request, which has to arrive within `budget`, and returns it in the form that the
    /// handshake rules expect, or the reason to refuse it.
    ///
    /// # Errors
    /// Returns an error if the request is malformed or takes too long, or if the stream or the
    /// connection is lost. The stream has been reset, and the connection closed if the client
    /// violated its rules.
    pub async fn read(
        mut self,
        budget: Duration,
        limits: HandshakeLimits,
    ) -> io::Result<(Result<Request, HandshakeError>, Self)> {
        match timeout(budget, self.read_head()).await {
            Ok(Ok(head)) => Ok((head.and_then(|head| head.request(limits)), self)),
            Ok(Err(failure)) => {
                self.fail(&failure);
                Err(failure.into())
            }
            Err(_) => {
                self.give_up(Code::REQUEST_INCOMPLETE);
                Err(io::ErrorKind::TimedOut.into())
            }
        }
    }

    /// Returns the connection of the stream.
    pub const fn connection(&self) -> &Connection {
        &self.connection
    }

    async fn read_head(&mut self) -> Result<Result<RequestHead, HandshakeError>, Failure> {
        let bytes_max = self.header_list_bytes_max;
        let section = read_section(&mut self.recv, bytes_max).await?;
        let incomplete = Fault::stream(Code::REQUEST_INCOMPLETE, "request without fields");
        match section.ok_or(incomplete)? {
            Section::Fields(fields) => Ok(Ok(RequestHead::of(fields)?)),
            Section::TooLarge => Ok(Err(message::too_large(bytes_max))),
        }
    }

    /// Waits until the client has cancelled the request or the connection is lost.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn gone(&mut self) {
        // A client cancels by resetting its side of the stream, by stopping ours, or both. An error
        // means that the connection is lost. The end of the client's side is not a reset.
        let reset = async {
            if let Ok(None) = self.recv.received_reset().await {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            _ = self.send.stopped() => {}
            () = reset => {}
        }
        self.place.note_reset();
    }

    /// Opens the WebSocket with these header fields of the [`response`](crate::response()). The
    /// client's window must have room for them within `budget`.
    ///
    /// # Errors
    /// Returns an error if the client does not make room in time, or if the stream or the
    /// connection is lost.
    pub async fn accept(mut self, section: &[u8], budget: Duration) -> io::Result<Stream> {
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
    pub async fn refuse(mut self, refusal: &Refusal) {
        let mut response = Vec::new();
        put(&mut response, HEADERS, &message::refusal(refusal));
        if !refusal.body().is_empty() {
            put(&mut response, DATA, refusal.body());
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
    fn fail(self, failure: &Failure) {
        let code = match failure {
            Failure::Fault(fault) => {
                fault.close(&self.connection);
                fault.code
            }
            Failure::Lost(_) => Code::REQUEST_CANCELLED,
        };
        self.give_up(code);
    }

    fn give_up(mut self, code: Code) {
        // These fail if the stream has already ended.
        _ = self.send.reset(code.into());
        _ = self.recv.stop(code.into());
        self.place.note_reset();
    }
}
