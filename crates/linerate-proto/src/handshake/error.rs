//! Why a handshake was refused (RFC 6455 §4), and what we cannot be asked to send in one.

use core::fmt;
use core::time::Duration;

/// Says why an opening handshake failed.
///
/// A server answers with [`status`](Self::status), best by way of
/// [`Refusal::from`](super::Refusal). A client closes the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HandshakeError {
    /// The response's `Sec-WebSocket-Accept` does not answer our key (RFC 6455 §4.1).
    AcceptMismatch,
    /// A request for an upgrade announces a body, whose end we would have to find to tell its
    /// bytes from frames.
    BodyUnexpected,
    /// An extended CONNECT asks for another protocol than `websocket` (RFC 8441 §4).
    ConnectProtocolUnsupported,
    /// `Connection` lacks the token `Upgrade`.
    ConnectionNotUpgrade,
    /// `Content-Length` is not one plain decimal number (RFC 9112 §6.3).
    ContentLengthInvalid,
    /// The client's extension offers carry more parameters than allowed.
    ExtensionParametersTooMany {
        /// Parameters counted when we stopped.
        parameters: usize,
        /// The limit.
        parameters_max: usize,
    },
    /// The server's answer has a parameter of an extension that can't answer what we offered (RFC
    /// 7692 §7.1).
    ExtensionParameterInvalid {
        /// The parameter's name, `unknown` if the extension has none of its name.
        name: &'static str,
    },
    /// The server chose an extension that we had not offered (RFC 6455 §4.1).
    ExtensionUnoffered,
    /// `Sec-WebSocket-Extensions` does not conform to its grammar (RFC 6455 §9.1).
    ExtensionsMalformed {
        /// Index of the offending byte in the header's value.
        offset: usize,
    },
    /// The client offers more extensions than allowed.
    ExtensionsTooMany {
        /// Offers counted when we stopped.
        extensions: usize,
        /// The limit.
        extensions_max: usize,
    },
    /// A byte that cannot stand where it stands: a control character, a bare CR or LF, or the
    /// white space of a folded line (RFC 9112 §2.2, §5.2).
    HeadByteInvalid {
        /// Index of the byte in the head.
        offset: usize,
    },
    /// The head is longer than allowed.
    HeadTooLarge {
        /// Bytes received when we stopped.
        head_bytes: usize,
        /// The limit.
        head_bytes_max: usize,
    },
    /// The connection ended within the head.
    HeadTruncated {
        /// Bytes received until then.
        head_bytes: usize,
    },
    /// A header that must be single appears twice (RFC 6455 §11.3, RFC 9112 §3.2).
    HeaderDuplicate {
        /// The header's name, in our spelling.
        name: &'static str,
    },
    /// A required header is absent.
    HeaderMissing {
        /// The header's name, in our spelling.
        name: &'static str,
    },
    /// A header line has no name, or a name that is no token, or white space before its colon
    /// (RFC 9112 §5.1).
    HeaderNameInvalid,
    /// A header's value holds bytes that no value may hold.
    HeaderValueInvalid,
    /// The head has more header lines than allowed.
    HeadersTooMany {
        /// Lines counted when we stopped.
        headers: usize,
        /// The limit.
        headers_max: usize,
    },
    /// `Host` is no host with an optional port (RFC 9112 §3.2).
    HostInvalid,
    /// The peer speaks HTTP/2 to a port for HTTP/1.1 (RFC 9113 §3.4).
    Http2Preface,
    /// The HTTP version cannot switch protocols (RFC 6455 §4.2.1).
    HttpVersionUnsupported,
    /// The server sent more interim responses than we skip.
    InterimResponsesTooMany {
        /// Interim responses counted when we stopped.
        responses: usize,
        /// The limit.
        responses_max: usize,
    },
    /// `Sec-WebSocket-Key` is not the base64 of sixteen bytes (RFC 6455 §4.2.1).
    KeyInvalid {
        /// Length of the header's value.
        value_bytes: usize,
    },
    /// Over HTTP/2 the method is not CONNECT, or has no `:protocol` (RFC 8441 §4).
    MethodNotConnect,
    /// The method of a request for an upgrade is not GET (RFC 6455 §4.2.1).
    MethodNotGet,
    /// The origin is not one that the policy allows (RFC 6455 §10.2).
    OriginDenied,
    /// The request line or status line is malformed (RFC 9112 §3, §4).
    StartLineInvalid,
    /// The server answered with a status other than 101; redirects are not followed.
    StatusUnexpected {
        /// The status.
        status: u16,
    },
    /// The client offers one subprotocol twice (RFC 6455 §4.1).
    SubprotocolDuplicate {
        /// Index of the second mention among the offers.
        index: usize,
    },
    /// The server chose a subprotocol that we had not offered (RFC 6455 §4.1).
    SubprotocolUnoffered,
    /// `Sec-WebSocket-Protocol` is no list of tokens (RFC 6455 §4.1).
    SubprotocolsMalformed {
        /// Index of the offending element, empty ones not counted.
        index: usize,
    },
    /// The client offers more subprotocols than allowed.
    SubprotocolsTooMany {
        /// Offers counted when we stopped.
        subprotocols: usize,
        /// The limit.
        subprotocols_max: usize,
    },
    /// The request target is no path, or is a URI whose authority is not that of `Host`
    /// (RFC 9112 §3.2).
    TargetInvalid,
    /// The handshake was not over in time.
    TimedOut {
        /// The limit.
        time_max: Duration,
    },
    /// The peer speaks TLS to a port for plain HTTP.
    TlsClientHello,
    /// `Transfer-Encoding` is not the one coding `chunked`, or has no business here
    /// (RFC 9112 §6.1).
    TransferEncodingInvalid,
    /// `Upgrade` lacks the token `websocket`.
    UpgradeNotWebSocket,
    /// `Sec-WebSocket-Version` is absent or not 13 (RFC 6455 §4.2.2).
    WebSocketVersionUnsupported,
}

impl HandshakeError {
    /// Returns the HTTP status with which a server refuses the handshake.
    ///
    /// What only a client can meet (a response that breaks the rules) maps to 502, the answer of
    /// a gateway in that place; the client itself sends nothing.
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

impl fmt::Display for HandshakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::AcceptMismatch => {
                f.write_str("the Sec-WebSocket-Accept header does not answer our key")
            }
            Self::BodyUnexpected => f.write_str("a request for an upgrade must not have a body"),
            Self::ConnectProtocolUnsupported => {
                f.write_str("CONNECT asks for another protocol than websocket")
            }
            Self::ConnectionNotUpgrade => {
                f.write_str("the Connection header lacks the token upgrade")
            }
            Self::ContentLengthInvalid => f.write_str("the Content-Length header is invalid"),
            Self::ExtensionParameterInvalid { name } => {
                write!(
                    f,
                    "the server's extension parameter {name} answers no offer"
                )
            }
            Self::ExtensionParametersTooMany {
                parameters,
                parameters_max,
            } => {
                write!(
                    f,
                    "{parameters} extension parameters, at most {parameters_max} allowed"
                )
            }
            Self::ExtensionUnoffered => {
                f.write_str("the server chose an extension that was not offered")
            }
            Self::ExtensionsMalformed { offset } => {
                write!(
                    f,
                    "the Sec-WebSocket-Extensions header is malformed at byte {offset}"
                )
            }
            Self::ExtensionsTooMany {
                extensions,
                extensions_max,
            } => {
                write!(
                    f,
                    "{extensions} extensions offered, at most {extensions_max} allowed"
                )
            }
            Self::HeadByteInvalid { offset } => write!(f, "invalid byte in the head at {offset}"),
            Self::HeadTooLarge {
                head_bytes,
                head_bytes_max,
            } => {
                write!(
                    f,
                    "a head of {head_bytes} bytes or more, at most {head_bytes_max} allowed"
                )
            }
            Self::HeadTruncated { head_bytes } => {
                write!(f, "the connection ended after {head_bytes} bytes of a head")
            }
            Self::HeaderDuplicate { name } => write!(f, "the {name} header appears twice"),
            Self::HeaderMissing { name } => write!(f, "the {name} header is missing"),
            Self::HeaderNameInvalid => f.write_str("a header has an invalid name"),
            Self::HeaderValueInvalid => f.write_str("a header has an invalid value"),
            Self::HeadersTooMany {
                headers,
                headers_max,
            } => {
                write!(
                    f,
                    "{headers} headers or more, at most {headers_max} allowed"
                )
            }
            Self::HostInvalid => f.write_str("the Host header is invalid"),
            Self::Http2Preface => f.write_str("HTTP/2 is not spoken on this port"),
            Self::HttpVersionUnsupported => {
                f.write_str("the WebSocket handshake needs HTTP version 1.1")
            }
            Self::InterimResponsesTooMany {
                responses,
                responses_max,
            } => {
                write!(
                    f,
                    "{responses} interim responses, at most {responses_max} allowed"
                )
            }
            Self::KeyInvalid { value_bytes } => write!(
                f,
                "a Sec-WebSocket-Key of {value_bytes} characters is not the base64 of 16 bytes"
            ),
            Self::MethodNotConnect => {
                f.write_str("a WebSocket over HTTP/2 needs the method CONNECT with a :protocol")
            }
            Self::MethodNotGet => f.write_str("the WebSocket handshake needs the method GET"),
            Self::OriginDenied => f.write_str("the origin is not allowed"),
            Self::StartLineInvalid => f.write_str("the first line is malformed"),
            Self::StatusUnexpected { status } => {
                write!(f, "the server answered with status {status} instead of 101")
            }
            Self::SubprotocolDuplicate { index } => {
                write!(f, "subprotocol {index} in the list repeats an earlier one")
            }
            Self::SubprotocolUnoffered => {
                f.write_str("the server chose a subprotocol that was not offered")
            }
            Self::SubprotocolsMalformed { index } => {
                write!(
                    f,
                    "the Sec-WebSocket-Protocol header is malformed at element {index}"
                )
            }
            Self::SubprotocolsTooMany {
                subprotocols,
                subprotocols_max,
            } => {
                write!(
                    f,
                    "{subprotocols} subprotocols offered, at most {subprotocols_max} allowed"
                )
            }
            Self::TargetInvalid => f.write_str("the request target is invalid"),
            Self::TimedOut { time_max } => {
                write!(
                    f,
                    "the handshake was not over after {} ms",
                    time_max.as_millis()
                )
            }
            Self::TlsClientHello => f.write_str("TLS is not spoken on this port"),
            Self::TransferEncodingInvalid => f.write_str("the Transfer-Encoding header is invalid"),
            Self::UpgradeNotWebSocket => {
                f.write_str("the Upgrade header lacks the token websocket")
            }
            Self::WebSocketVersionUnsupported => {
                f.write_str("the Sec-WebSocket-Version header must be 13")
            }
        }
    }
}

impl core::error::Error for HandshakeError {}

/// Says why a handshake message cannot be built as asked; nothing of it reaches the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// The header's name is no token (RFC 9110 §5.1).
    HeaderNameInvalid {
        /// Index of the offending byte; 0 for an empty name.
        offset: usize,
    },
    /// The handshake sets this header itself.
    HeaderReserved,
    /// The header's value holds CR, LF, NUL or another control character (RFC 9110 §5.5).
    HeaderValueInvalid {
        /// Index of the offending byte.
        offset: usize,
    },
    /// The host is no host with an optional port.
    HostInvalid,
    /// The origin is not `http` or `https` with a host and an optional port (RFC 6454 §6.2).
    OriginInvalid,
    /// The status is none with which to refuse a request: those are 300 to 599, but for 304.
    StatusInvalid {
        /// The status asked for.
        status: u16,
    },
    /// The subprotocol is already in the list (RFC 6455 §4.1).
    SubprotocolDuplicate,
    /// The subprotocol is no token (RFC 6455 §4.1).
    SubprotocolInvalid,
    /// The client did not offer this subprotocol (RFC 6455 §4.2.2).
    SubprotocolNotOffered,
    /// The target does not start with `/`, or holds a space, a control character, `#` or a byte
    /// beyond ASCII.
    TargetInvalid {
        /// Index of the offending byte.
        offset: usize,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::HeaderNameInvalid { offset } => {
                write!(f, "the header name is no token: see byte {offset}")
            }
            Self::HeaderReserved => f.write_str("the handshake sets this header itself"),
            Self::HeaderValueInvalid { offset } => {
                write!(
                    f,
                    "the header value holds a control character at byte {offset}"
                )
            }
            Self::HostInvalid => f.write_str("the host is no host with an optional port"),
            Self::OriginInvalid => f.write_str("the origin is no scheme, host and optional port"),
            Self::StatusInvalid { status } => {
                write!(f, "status {status} cannot refuse a request")
            }
            Self::SubprotocolDuplicate => f.write_str("the subprotocol is already in the list"),
            Self::SubprotocolInvalid => f.write_str("the subprotocol is no token"),
            Self::SubprotocolNotOffered => f.write_str("the client did not offer the subprotocol"),
            Self::TargetInvalid { offset } => {
                write!(
                    f,
                    "the target is no path with an optional query: see byte {offset}"
                )
            }
        }
    }
}

impl core::error::Error for BuildError {}
