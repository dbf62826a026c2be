//! A request, until it becomes a WebSocket or is refused.

use std::{future::poll_fn, io};

use bytes::Bytes;
use h2::{RecvStream, server::SendResponse};
use http::Response;
use linerate_http::Place;
use linerate_proto::handshake::{HandshakeError, HandshakeLimits, Refusal, Request};

use crate::{
    guard::Overflows,
    linger::linger,
    request,
    stream::{Stream, into_io},
};

/// A request whose header fields have arrived, but not its body.
#[derive(Debug)]
pub struct Incoming {
    pub(crate) head: http::request::Parts,
    pub(crate) body: RecvStream,
    pub(crate) respond: SendResponse<Bytes>,
    pub(crate) place: Place,
    /// The streams of the connection whose windows are open too far.
    pub(crate) overflows: Overflows,
}

impl Incoming {
    /// Returns the request in the form that the handshake rules expect.
    ///
    /// # Errors
    /// The request exceeds a limit or is malformed.
    pub fn request(&self, limits: HandshakeLimits) -> Result<Request, HandshakeError> {
        request::request(&self.head, None, limits)
    }

    /// Waits until the client has reset the stream or the connection is lost.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn gone(&mut self) {
        // Both a reset and an error mean that nothing can be sent any more.
        _ = poll_fn(|cx| self.respond.poll_reset(cx)).await;
        self.place.note_reset();
    }

    /// Opens the WebSocket with this [`response`](crate::response()).
    ///
    /// # Errors
    /// The client has reset the stream, or the connection is lost.
    pub fn accept(mut self, response: Response<()>) -> io::Result<Stream> {
        match self.respond.send_response(response, false) {
            Ok(send) => Ok(Stream::new(send, self.body, Some(self.place))),
            Err(error) => {
                self.place.note_reset();
                Err(into_io(error))
            }
        }
    }

    /// Refuses the request. If it has not arrived completely, a task reads the rest of it for a
    /// moment, and the stream keeps its place in the meantime.
    ///
    /// Must be called within a tokio runtime.
    ///
    /// # Errors
    /// The client has reset the stream, or the connection is lost.
    pub fn refuse(mut self, refusal: &Refusal) -> io::Result<()> {
        if let Err(error) = request::refuse(&mut self.respond, refusal) {
            self.place.note_reset();
            return Err(into_io(error));
        }
        if !self.body.is_end_stream() {
            tokio::spawn(async move {
                linger(
                    self.body,
                    &mut self.respond,
                    &self.overflows,
                    &mut self.place,
                )
                .await;
            });
        }
        Ok(())
    }
}
