//! One stream, from the client's side.

use std::{io, time::Duration};

use linerate_http::OpenError;
use linerate_proto::{
    Role,
    handshake::{ClientHandshake, HandshakeError, HandshakeLimits, Negotiated},
};
use quinn::{Connection, RecvStream, SendStream};
use tokio::{sync::oneshot, time::timeout};

use crate::{
    exchange::read_section,
    fault::{Code, Failure, Fault},
    frame::{HEADERS, put},
    limits::Http3Limits,
    message::{ResponseHead, too_large},
    peer::{self, CloseOnDrop},
    qpack::{self, Section},
    settings::Settings,
    stream::{Owner, Stream},
};
/// How long a connection is kept after its stream has ended, so that the last bytes arrive.
const LINGER: Duration = Duration::from_secs(1);

/// A connection on which one stream can be opened.
#[derive(Debug)]
pub struct Outgoing {
    closing: CloseOnDrop,
    /// Our control stream, which must not end before the connection.
    _control: SendStream,
    header_list_bytes_max: u32,
    request_bytes_max: Option<u64>,
}

/// Starts HTTP/3 on `connection`. Returns `None` if the server does not allow WebSockets on
/// streams.
///
/// RFC 9220 §3, like RFC 8441 §3: a client "MUST NOT" use extended CONNECT before the server's
/// setting has arrived.
///
/// # Errors
/// Returns an error if the connection is lost or the server violates HTTP/3.
pub async fn connect(connection: Connection, limits: &Http3Limits) -> io::Result<Option<Outgoing>> {
    let closing = CloseOnDrop(connection.clone());
    let (settings, received) = oneshot::channel();
    tokio::spawn(peer::listen(
        connection.clone(),
        Role::Client,
        limits.ignored(),
        settings,
    ));
    let ours = Settings {
        is_connect_protocol_enabled: false,
        field_section_bytes_max: Some(limits.header_list_bytes_max.into()),
    };
    let control = peer::open_control(&connection, ours).await?;
    let Ok(settings) = received.await else {
        return Err(connection.closed().await.into());
    };
    if !settings.is_connect_protocol_enabled {
        return Ok(None);
    }
    Ok(Some(Outgoing {
        closing,
        _control: control,
        header_list_bytes_max: limits.header_list_bytes_max,
        request_bytes_max: settings.field_section_bytes_max,
    }))
}

impl Outgoing {
    /// Requests a WebSocket at `path` of `authority`.
    ///
    /// # Errors
    /// Returns an error if the server refuses the request or violates the protocol, or if the
    /// connection is lost.
    pub async fn open(
        self,
        authority: &str,
        path: &str,
        handshake: &mut ClientHandshake,
        handshake_limits: HandshakeLimits,
    ) -> Result<(Negotiated, Stream), OpenError<Stream>> {
        let request = request(authority, path, handshake, self.request_bytes_max)?;
        let connection = self.closing.0.clone();
        let (mut send, mut recv) = connection.open_bi().await.map_err(io::Error::from)?;
        send.write_all(&request).await.map_err(io::Error::from)?;
        let read = self.read_response(&mut recv, handshake_limits).await;
        let response = match read {
            Ok(response) => response,
            Err(ResponseError::Handshake(error)) => return Err(error.into()),
            Err(ResponseError::Failure(failure)) => return Err(self.fail(failure).into()),
        };
        let opened = handshake.handle_response(response.status, response.fields());
        match opened {
            Ok(negotiated) => Ok((negotiated, self.hand_over(send, recv))),
            Err(HandshakeError::StatusUnexpected { status }) => Err(OpenError::Refused {
                status,
                stream: self.hand_over(send, recv),
            }),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads the final response.
    async fn read_response(
        &self,
        recv: &mut RecvStream,
        limits: HandshakeLimits,
    ) -> Result<ResponseHead, ResponseError> {
        let bytes_max = self.header_list_bytes_max;
        for _ in 0..=limits.interim_responses_max {
            let malformed = Fault::stream(Code::MESSAGE_ERROR, "stream ends without a response");
            let section = read_section(recv, bytes_max).await?.ok_or(malformed)?;
            let Section::Fields(fields) = section else {
                return Err(ResponseError::Handshake(too_large(bytes_max)));
            };
            let response = ResponseHead::of(fields)?;
            if !(100..200).contains(&response.status) {
                return Ok(response);
            }
        }
        Err(ResponseError::Handshake(
            HandshakeError::InterimResponsesTooMany {
                responses: limits.interim_responses_max + 1,
                responses_max: limits.interim_responses_max,
            },
        ))
    }

    fn fail(&self, failure: Failure) -> io::Error {
        if let Failure::Fault(fault) = &failure {
            fault.close(&self.closing.0);
        }
        failure.into()
    }

    /// Converts the stream to a byte stream. The connection is closed when that stream ends.
    fn hand_over(self, send: SendStream, recv: RecvStream) -> Stream {
        let (dropped, is_dropped) = oneshot::channel();
        let arrived = send.stopped();
        let connection = self.closing.0.clone();
        let owner = Owner::Client { _dropped: dropped };
        let stream = Stream::new(connection, (send, recv), owner);
        tokio::spawn(async move {
            // Nothing is ever sent on this channel; it ends when the stream is dropped.
            _ = is_dropped.await;
            _ = timeout(LINGER, arrived).await;
            drop(self);
        });
        stream
    }
}

/// The reason why there is no response that could open a WebSocket.
enum ResponseError {
    Failure(Failure),
    Handshake(HandshakeError),
}

impl From<Failure> for ResponseError {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<Fault> for ResponseError {
    fn from(fault: Fault) -> Self {
        Self::Failure(fault.into())
    }
}

/// Returns the frame that requests a WebSocket (RFC 9220 §3), which must not exceed the server's
/// limit in bytes.
fn request(
    authority: &str,
    path: &str,
    handshake: &ClientHandshake,
    bytes_max: Option<u64>,
) -> Result<Vec<u8>, HandshakeError> {
    let mut fields = vec![
        (":method".to_owned(), "CONNECT".into()),
        (":protocol".to_owned(), "websocket".into()),
        (":scheme".to_owned(), "https".into()),
        (":authority".to_owned(), authority.into()),
        (":path".to_owned(), path.into()),
    ];
    let headers = handshake.fields();
    fields.extend(headers.map(|(name, value)| (name.to_ascii_lowercase(), value)));
    let sizes = fields
        .iter()
        .map(|(name, value)| name.len() + value.len() + 32);
    let head_bytes: usize = sizes.sum();
    if let Some(bytes_max) = bytes_max
        && head_bytes as u64 > bytes_max
    {
        return Err(HandshakeError::HeadTooLarge {
            head_bytes,
            head_bytes_max: bytes_max as usize,
        });
    }
    let fields = fields
        .iter()
        .map(|(name, value)| (&**name, value.as_bytes()));
    let mut frame = Vec::new();
    put(&mut frame, HEADERS, &qpack::encode(fields));
    Ok(frame)
}
