//! HTTP/2 as no client would speak it, and the WebSockets on its streams (RFC 9113, RFC 8441).
//!
//! | room | what happens there |
//! | --- | --- |
//! | `expect` | what has to become of streams and connections |
//! | `frame` | frames, right and wrong |
//! | `hpack` | header fields as bytes |
//! | `judge` | from what came back to a verdict |
//! | `session` | what a server says, and what it may not say |
//! | `talk` | a conversation of frames |
//! | `tunnel` | a stream that carries a WebSocket, as a stream of bytes |

mod expect;
pub(crate) mod frame;
pub(crate) mod hpack;
mod huffman;
mod judge;
mod session;
mod talk;
mod tunnel;

pub use expect::{Fate, Seen, SeenStream};
pub(crate) use judge::{is_settled, judge_connection, judge_endurance, judge_streams};
pub(crate) use talk::hold;
pub(crate) use tunnel::{Fault, Tunnel, fields_with};

/// What a client says first (RFC 9113 §3.4).
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The window of a stream, and of a connection, before anybody says something else (RFC 9113 §6.9.2).
const INITIAL_WINDOW_BYTES: i64 = 65_535;

/// What a frame may carry before anybody says something else (RFC 9113 §4.2).
pub(crate) const FRAME_BYTES_MAX: usize = 16_384;

/// What a request for a WebSocket is made of.
#[derive(Clone, Debug)]
pub struct Request {
    /// `http` or `https`.
    pub scheme: String,
    /// Host and port.
    pub authority: String,
    /// Path and query.
    pub path: String,
    /// More fields, their names in lower case.
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

/// Names and values.
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
