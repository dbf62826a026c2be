//! Errors of the opening handshake (RFC 6455 §4), and of building its messages.

use core::time::Duration;

/// The reason why an opening handshake failed.
///
/// A server answers with [`status`](Self::status), preferably through
/// [`Refusal::from`](super::Refusal). A client closes the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// The response's `Sec-WebSocket-Accept` does not match our key (RFC 6455 §4.1).
    #[error("the Sec-WebSocket-Accept header does not match the key that was sent")]
    AcceptMismatch,
    /// An upgrade request announces a body, whose bytes could not be told from frames without
    /// parsing it.
    #[error("an upgrade request must not have a body")]
    BodyUnexpected,
    /// An extended CONNECT is for a protocol other than `websocket` (RFC 8441 §4).
    #[error("the CONNECT request is for a protocol other than websocket")]
    ConnectProtocolUnsupported,
    /// `Connection` does not contain the token `Upgrade`.
    #[error("the Connection header lacks the token upgrade")]
    ConnectionNotUpgrade,
    /// `Content-Length` is not one plain decimal number (RFC 9112 §6.3).
    #[error("the Content-Length header is invalid")]
    ContentLengthInvalid,
    /// The client's extension offers have more parameters than allowed.
    #[error("{parameters} extension parameters, at most {parameters_max} allowed")]
    ExtensionParametersTooMany {
        /// The number of parameters counted before stopping.
        parameters: usize,
        /// The limit.
        parameters_max: usize,
    },
    /// The server's response has an extension parameter that is not valid for our offer (RFC 7692
    /// §7.1).
    #[error("the server's extension parameter {name} does not match any offer")]
    ExtensionParameterInvalid {
        /// The parameter's name; `unknown` if the extension has no parameter with that name.
        name: &'static str,
    },
    /// The server selected an extension that we did not offer (RFC 6455 §4.1).
    #[error("the server chose an extension that was not offered")]
    ExtensionUnoffered,
    /// `Sec-WebSocket-Extensions` does not conform to its grammar (RFC 6455 §9.1).
    #[error("the Sec-WebSocket-Extensions header is malformed at byte {offset}")]
    ExtensionsMalformed {
        /// The index of the invalid byte in the header's value.
        offset: usize,
    },
    /// The client offers more extensions than allowed.
    #[error("{extensions} extensions offered, at most {extensions_max} allowed")]
    ExtensionsTooMany {
        /// The number of offers counted before stopping.
        extensions: usize,
        /// The limit.
        extensions_max: usize,
    },
    /// A byte is not allowed at its position: a control character, a bare CR or LF, or the white
    /// space of a folded line (RFC 9112 §2.2, §5.2).
    #[error("invalid byte in the head at {offset}")]
    HeadByteInvalid {
        /// The index of the byte in the head.
        offset: usize,
    },
    /// The head is longer than allowed.
    #[error("a head of {head_bytes} bytes or more, at most {head_bytes_max} allowed")]
    HeadTooLarge {
        /// The number of bytes received before stopping.
        head_bytes: usize,
        /// The limit, in bytes.
        head_bytes_max: usize,
    },
    /// The connection ended in the middle of the head.
    #[error("the connection ended inside a head, after {head_bytes} bytes")]
    HeadTruncated {
        /// The number of bytes received.
        head_bytes: usize,
    },
    /// A header that may appear only once appears twice (RFC 6455 §11.3, RFC 9112 §3.2).
    #[error("the {name} header appears twice")]
    HeaderDuplicate {
        /// The header's name, in our spelling.
        name: &'static str,
    },
    /// A required header is missing.
    #[error("the {name} header is missing")]
    HeaderMissing {
        /// The header's name, in our spelling.
        name: &'static str,
    },
    /// A header line has no name, a name that is not a token, or white space before its colon
    /// (RFC 9112 §5.1).
    #[error("a header has an invalid name")]
    HeaderNameInvalid,
    /// A header's value contains invalid bytes.
    #[error("a header has an invalid value")]
    HeaderValueInvalid,
    /// The head has more header lines than allowed.
    #[error("{headers} headers or more, at most {headers_max} allowed")]
    HeadersTooMany {
        /// The number of lines counted before stopping.
        headers: usize,
        /// The limit.
        headers_max: usize,
    },
    /// `Host` is not a valid host with an optional port (RFC 9112 §3.2).
    #[error("the Host header is invalid")]
    HostInvalid,
    /// The peer uses HTTP/2 on a port for HTTP/1.1 (RFC 9113 §3.4).
    #[error("this port does not accept HTTP/2")]
    Http2Preface,
    /// The HTTP version does not support upgrades (RFC 6455 §4.2.1).
    #[error("the WebSocket handshake requires HTTP/1.1")]
    HttpVersionUnsupported,
    /// The server sent more interim responses than allowed.
    #[error("{responses} interim responses, at most {responses_max} allowed")]
    InterimResponsesTooMany {
        /// The number of interim responses counted before stopping.
        responses: usize,
        /// The limit.
        responses_max: usize,
    },
    /// `Sec-WebSocket-Key` is not the base64 of sixteen bytes (RFC 6455 §4.2.1).
    #[error("a Sec-WebSocket-Key of {value_bytes} characters is not the base64 of 16 bytes")]
    KeyInvalid {
        /// The length of the header's value, in bytes.
        value_bytes: usize,
    },
    /// Over HTTP/2, the method is not CONNECT or there is no `:protocol` (RFC 8441 §4).
    #[error("a WebSocket over HTTP/2 requires the method CONNECT with a :protocol")]
    MethodNotConnect,
    /// The method of an upgrade request is not GET (RFC 6455 §4.2.1).
    #[error("the WebSocket handshake requires the method GET")]
    MethodNotGet,
    /// The policy does not allow the origin (RFC 6455 §10.2).
    #[error("the origin is not allowed")]
    OriginDenied,
    /// The request line or status line is malformed (RFC 9112 §3, §4).
    #[error("the first line is malformed")]
    StartLineInvalid,
    /// The server answered with a status other than 101; redirects are not followed.
    #[error("the server answered with status {status} instead of 101")]
    StatusUnexpected {
        /// The status.
        status: u16,
    },
    /// The client offers the same subprotocol twice (RFC 6455 §4.1).
    #[error("subprotocol {index} in the list repeats an earlier one")]
    SubprotocolDuplicate {
        /// The index of the second occurrence in the list of offers.
        index: usize,
    },
    /// The server selected a subprotocol that we did not offer (RFC 6455 §4.1).
    #[error("the server chose a subprotocol that was not offered")]
    SubprotocolUnoffered,
    /// `Sec-WebSocket-Protocol` is not a list of tokens (RFC 6455 §4.1).
    #[error("the Sec-WebSocket-Protocol header is malformed at element {index}")]
    SubprotocolsMalformed {
        /// The index of the invalid element, not counting empty ones.
        index: usize,
    },
    /// The client offers more subprotocols than allowed.
    #[error("{subprotocols} subprotocols offered, at most {subprotocols_max} allowed")]
    SubprotocolsTooMany {
        /// The number of offers counted before stopping.
        subprotocols: usize,
        /// The limit.
        subprotocols_max: usize,
    },
    /// The request target is not a path, or is a URI whose authority differs from `Host`
    /// (RFC 9112 §3.2).
    #[error("the request target is invalid")]
    TargetInvalid,
    /// The handshake took too long.
    #[error("the handshake took longer than {} ms", .time_max.as_millis())]
    TimedOut {
        /// The limit.
        time_max: Duration,
    },
    /// The peer uses TLS on a port for plain HTTP.
    #[error("this port does not accept TLS")]
    TlsClientHello,
    /// `Transfer-Encoding` is not exactly `chunked`, or is not allowed in this request (RFC 9112
    /// §6.1).
    #[error("the Transfer-Encoding header is invalid")]
    TransferEncodingInvalid,
    /// `Upgrade` does not contain the token `websocket`.
    #[error("the Upgrade header lacks the token websocket")]
    UpgradeNotWebSocket,
    /// `Sec-WebSocket-Version` is missing or not 13 (RFC 6455 §4.2.2).
    #[error("the Sec-WebSocket-Version header must be 13")]
    WebSocketVersionUnsupported,
}

impl HandshakeError {
    /// Returns the HTTP status with which a server refuses the handshake.
    ///
    /// Errors that only a client can encounter (an invalid response) map to 502, which a gateway
    /// would answer in that situation; the client itself does not send a status.
    pub fn status(&self) -> u16 {
        match self {
            Self::BodyUnexpected
            | Self::ConnectionNotUpgrade
            | Self::ContentLengthInvalid
            | Self::ExtensionsMalformed { .. }
            | Self::HeadByteInvalid { .. }
            | Self::HeadTruncated { .. }
            | Self::HeaderDuplicate { .. }
            | Self::HeaderMissing { .. }
            | Self::HeaderNameInvalid
            | Self::HeaderValueInvalid
            | Self::HostInvalid
            | Self::Http2Preface
            | Self::KeyInvalid { .. }
            | Self::MethodNotConnect
            | Self::StartLineInvalid
            | Self::SubprotocolDuplicate { .. }
            | Self::SubprotocolsMalformed { .. }
            | Self::TargetInvalid
            | Self::TlsClientHello
            | Self::TransferEncodingInvalid
            | Self::UpgradeNotWebSocket => 400,
            Self::OriginDenied => 403,
            Self::MethodNotGet => 405,
            Self::TimedOut { .. } => 408,
            Self::WebSocketVersionUnsupported => 426,
            Self::ExtensionParametersTooMany { .. }
            | Self::ExtensionsTooMany { .. }
            | Self::HeadTooLarge { .. }
            | Self::HeadersTooMany { .. }
            | Self::SubprotocolsTooMany { .. } => 431,
            Self::AcceptMismatch
            | Self::ExtensionParameterInvalid { .. }
            | Self::ExtensionUnoffered
            | Self::InterimResponsesTooMany { .. }
            | Self::StatusUnexpected { .. }
            | Self::SubprotocolUnoffered => 502,
            Self::ConnectProtocolUnsupported => 501,
            Self::HttpVersionUnsupported => 505,
        }
    }
}

/// The reason why a handshake message cannot be built as requested; nothing is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The body of a refusal is too long.
    #[error("body has {bytes} bytes, at most {bytes_max} allowed; refer to a page instead")]
    BodyTooLarge {
        /// The length of the body.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// The header's name is not a token (RFC 9110 §5.1).
    #[error("the header name is not a token: invalid byte {offset}")]
    HeaderNameInvalid {
        /// The index of the invalid byte; 0 for an empty name.
        offset: usize,
    },
    /// The handshake sets this header itself.
    #[error("the handshake sets this header itself")]
    HeaderReserved,
    /// The header's value contains CR, LF, NUL or another control character (RFC 9110 §5.5).
    #[error("the header value contains a control character at byte {offset}")]
    HeaderValueInvalid {
        /// The index of the invalid byte.
        offset: usize,
    },
    /// The host is not a valid host with an optional port.
    #[error("the host is not a valid name or address with an optional port")]
    HostInvalid,
    /// The origin is not `http` or `https` with a host and an optional port (RFC 6454 §6.2).
    #[error("the origin is not http or https with a host and an optional port")]
    OriginInvalid,
    /// The status cannot be that of a response with a body: 200 to 599, except 204, 205 and 304.
    #[error("status {status} has no body; use 200 to 599, except 204, 205 and 304")]
    ResponseStatusInvalid {
        /// The requested status.
        status: u16,
    },
    /// The status cannot refuse a request; only 300 to 599 can, except 304.
    #[error("status {status} cannot refuse a request; use 300 to 599, except 304")]
    StatusInvalid {
        /// The requested status.
        status: u16,
    },
    /// The subprotocol is already in the list (RFC 6455 §4.1).
    #[error("the subprotocol is already in the list")]
    SubprotocolDuplicate,
    /// The subprotocol is not a token (RFC 6455 §4.1).
    #[error("the subprotocol is not a token")]
    SubprotocolInvalid,
    /// The client did not offer this subprotocol (RFC 6455 §4.2.2).
    #[error("the client did not offer the subprotocol")]
    SubprotocolNotOffered,
    /// The target does not start with `/`, or contains a space, a control character, `#` or a
    /// non-ASCII byte.
    #[error("the target is not a path with an optional query: invalid byte {offset}")]
    TargetInvalid {
        /// The index of the invalid byte.
        offset: usize,
    },
}
