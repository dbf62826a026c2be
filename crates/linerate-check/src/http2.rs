//! HTTP/2, spoken correctly or incorrectly, and the WebSockets on its streams (RFC 9113, RFC 8441).
//!
//! | module | purpose |
//! | --- | --- |
//! | `expect` | the expected and the actual fate of streams |
//! | `frame` | frames, valid and invalid |
//! | `hpack` | encoding and decoding of header fields |
//! | `session` | the frames of a server, and checks that it may send them |
//! | `tunnel` | a stream that carries a WebSocket, as a byte stream |

mod expect;
pub(crate) mod frame;
pub(crate) mod hpack;
mod huffman;
mod session;
mod tunnel;

pub use expect::{Fate, Http2Outcome, StreamOutcome};
pub(crate) use session::{Session, Stream};
pub(crate) use tunnel::{Tunnel, fields_with};

/// The connection preface: the first bytes that a client sends (RFC 9113 §3.4).
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The initial window of a stream and of a connection, in bytes (RFC 9113 §6.9.2).
const INITIAL_WINDOW_BYTES: i64 = 65_535;

/// The default limit of a frame's payload, in bytes (RFC 9113 §4.2).
pub(crate) const FRAME_BYTES_MAX: usize = 16_384;

/// The parts of a request for a WebSocket.
#[derive(Clone, Debug)]
pub struct Request {
    /// `http` or `https`.
    pub scheme: String,
    /// Host and port.
    pub authority: String,
    /// Path and query.
    pub path: String,
    /// Additional fields, with lower-case names.
    pub fields: Vec<(String, String)>,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            scheme: "http".into(),
            authority: "example.com".into(),
            path: "/".into(),
            fields: Vec::new(),
        }
    }
}

/// The names and values of header fields.
pub(crate) type Fields = Vec<(Vec<u8>, Vec<u8>)>;

impl Request {
    /// Returns the fields of an extended CONNECT (RFC 8441 §4, §5).
    pub(crate) fn connect(&self) -> Fields {
        let fields = [
            (":method", "CONNECT"),
            (":protocol", "websocket"),
            (":scheme", &self.scheme),
            (":path", &self.path),
            (":authority", &self.authority),
            ("sec-websocket-version", "13"),
        ];
        let more = self.fields.iter().map(|(name, value)| (&**name, &**value));
        let fields = fields.into_iter().chain(more);
        fields
            .map(|(name, value)| (name.into(), value.into()))
            .collect()
    }
}
