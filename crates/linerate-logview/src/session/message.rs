//! The JSON messages of the upload protocol.

use std::io;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::{Limits, SessionError, Uploads};
use crate::{
    query::Rows,
    summary::{Changes, LatencySeries, Rates, Summary, ValueList},
};

/// A text message from a client.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum ClientMessage {
    Cancel,
    Drop {
        seq: u64,
    },
    Finish,
    Follow {
        name: String,
    },
    Resume {
        id: String,
    },
    Start(StartRequest),
    Stop,
    View {
        name: String,
    },
    #[serde(untagged)]
    Ask(Question),
}

/// A client's question. Its query is parsed when it is answered, so that a malformed one is refused
/// and the session continues.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum Question {
    /// Asks what has changed between two periods.
    Changes { seq: u64, query: Value },
    /// Asks how long requests took over time.
    Latency { seq: u64, query: Value },
    /// Asks for the figures of some requests.
    Query { seq: u64, query: Value },
    /// Asks which clients exceed a limit.
    Rates(RatesRequest),
    /// Asks for lines.
    Rows(RowsRequest),
    /// Asks for the values of a field.
    Values { seq: u64, query: Value },
}

/// The lines that a client requests.
#[derive(Debug, Deserialize)]
pub(super) struct RowsRequest {
    pub(super) seq: u64,
    pub(super) query: Value,
    /// A text that the lines must contain; empty if any will do.
    #[serde(default)]
    pub(super) containing: String,
    /// How many of the selected lines to skip.
    #[serde(default)]
    pub(super) offset: u64,
    /// The most lines to return.
    pub(super) limit: usize,
}

/// The limit whose effect a client requests.
#[derive(Debug, Deserialize)]
pub(super) struct RatesRequest {
    pub(super) seq: u64,
    pub(super) query: Value,
    pub(super) rates: Value,
}

/// The files that a client is about to send.
#[derive(Debug, Deserialize)]
pub(super) struct StartRequest {
    pub(super) files: Vec<File>,
    /// The name of a format, or `auto`.
    #[serde(default = "auto")]
    pub(super) format: String,
    /// True if the lines are kept so that they can be requested.
    #[serde(default)]
    pub(super) rows: bool,
}

/// One file.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct File {
    pub(super) name: String,
    /// Its size in bytes, or `None` (`null`) if the client cannot know it.
    #[serde(deserialize_with = "size")]
    pub(super) size: Option<u64>,
}

impl ClientMessage {
    /// Parses a text message. Fails if it exceeds the length limit.
    pub(super) fn parse(text: &str, limits: &Limits) -> Result<Self, SessionError> {
        if text.len() > limits.text_bytes_max {
            return Err(SessionError::TextTooLong {
                bytes: text.len(),
                bytes_max: limits.text_bytes_max,
            });
        }
        serde_json::from_str(text).map_err(|_| SessionError::UnknownMessage)
    }
}

fn auto() -> String {
    "auto".to_owned()
}

/// Parses a size that may be `null` but not absent, so that it cannot be forgotten by mistake.
fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Option::deserialize(deserializer)
}

/// A message from the server.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum ServerMessage {
    Ack {
        bytes: u64,
    },
    Changes {
        seq: u64,
        changes: Box<Changes>,
    },
    Error {
        code: &'static str,
        message: String,
    },
    Figures {
        seq: u64,
        summary: Box<Summary>,
    },
    Files {
        files: Vec<String>,
        uploads: Uploads,
        kept_s: u64,
    },
    Latency {
        seq: u64,
        latency: Box<LatencySeries>,
    },
    Rates {
        seq: u64,
        rates: Box<Rates>,
    },
    Ready {
        id: String,
        window_bytes: u64,
        bytes: u64,
        /// The name by which others view the upload.
        #[serde(skip_serializing_if = "Option::is_none")]
        view: Option<String>,
        /// The files of an upload that was announced on another connection.
        #[serde(skip_serializing_if = "Option::is_none")]
        files: Option<Vec<File>>,
    },
    Refused {
        seq: u64,
        code: &'static str,
        message: String,
        #[serde(flatten)]
        place: Option<FilterPosition>,
    },
    Rows {
        seq: u64,
        #[serde(flatten)]
        rows: Rows,
    },
    Searching {
        seq: u64,
        fraction: f64,
    },
    Snapshot {
        #[serde(rename = "final")]
        is_final: bool,
        summary: Box<Summary>,
    },
    Values {
        seq: u64,
        list: Box<ValueList>,
    },
}

/// The position of a mistake in a filter.
#[derive(Debug, Serialize)]
pub(super) struct FilterPosition {
    /// The index of the filter in the query, from 0.
    pub(super) filter: usize,
    /// The column in characters, from 1.
    pub(super) column: usize,
}

impl ServerMessage {
    /// Returns the message if it is at most `bytes_max` bytes long. Stops serializing beyond that.
    pub(super) fn to_json_within(&self, bytes_max: usize) -> Option<String> {
        let mut json = BoundedWriter {
            bytes: Vec::new(),
            bytes_max,
        };
        serde_json::to_writer(&mut json, self).ok()?;
        String::from_utf8(json.bytes).ok()
    }

    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("all map keys are strings, so replies always serialize")
    }
}

impl SessionError {
    /// Returns the message that tells the client why the session is over, as JSON, for a caller
    /// that ends a session itself.
    pub fn to_json(&self) -> String {
        let reply = ServerMessage::Error {
            code: self.code(),
            message: self.to_string(),
        };
        reply.to_json()
    }
}

/// A writer that fails once it has received more than `bytes_max` bytes.
struct BoundedWriter {
    bytes: Vec<u8>,
    bytes_max: usize,
}

impl io::Write for BoundedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.bytes_max - self.bytes.len() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{ClientMessage, Question, ServerMessage};
    use crate::session::{Limits, SessionError};

    #[test]
    fn reply_at_the_limit_is_built_and_one_byte_more_refused() {
        let reply = ServerMessage::Ack { bytes: 1_048_576 };
        let json = reply.to_json();
        assert_eq!(reply.to_json_within(json.len()), Some(json.clone()));
        assert_eq!(reply.to_json_within(json.len() - 1), None);
        assert_eq!(reply.to_json_within(0), None);
    }

    fn parse(text: &str) -> Option<ClientMessage> {
        match ClientMessage::parse(text, &Limits::default()) {
            Ok(request) => Some(request),
            Err(error) => {
                assert_eq!(error, SessionError::UnknownMessage);
                None
            }
        }
    }

    #[test]
    fn start_is_parsed_and_unknown_members_are_ignored() {
        let text = r#" {"files":[{"size":5,"name":"\u00e4.log","y":1},{"name":"-","size":null}],"type":"start","x":[]} "#;
        let Some(ClientMessage::Start(start)) = parse(text) else {
            panic!("not a start message");
        };
        assert_eq!(start.files[0].name, "ä.log");
        assert_eq!(start.files[0].size, Some(5));
        assert_eq!(start.files[1].size, None);
        assert_eq!(start.format, "auto");
    }

    #[test]
    fn requests_without_a_file_are_parsed() {
        assert!(matches!(
            parse(r#"{"type":"finish"}"#),
            Some(ClientMessage::Finish)
        ));
        assert!(matches!(
            parse(r#"{"type":"cancel"}"#),
            Some(ClientMessage::Cancel)
        ));
        let resume = parse(r#"{"type":"resume","id":"0f"}"#);
        assert!(matches!(resume, Some(ClientMessage::Resume { id }) if id == "0f"));
        let follow = parse(r#"{"type":"follow","name":"a"}"#);
        assert!(matches!(follow, Some(ClientMessage::Follow { name }) if name == "a"));
        let query = parse(r#"{"type":"query","seq":7,"query":{}}"#);
        let Some(ClientMessage::Ask(Question::Query { seq: 7, .. })) = query else {
            panic!("not a query: {query:?}");
        };
        for kind in ["changes", "latency", "values"] {
            let question = parse(&format!(r#"{{"type":"{kind}","seq":8,"query":[]}}"#));
            assert!(matches!(question, Some(ClientMessage::Ask(_))), "{kind}");
        }
    }

    #[test]
    fn other_messages_are_refused() {
        for text in [
            "",
            "{}",
            "[]",
            "start",
            r#"{"type":"start"}"#,
            r#"{"type":"start","name":"a","size":1}"#,
            r#"{"type":"start","files":[{"name":"a"}]}"#,
            r#"{"type":"start","files":[{"name":"a","size":-1}]}"#,
            r#"{"type":"start","files":[{"name":"a","size":1.5}]}"#,
            r#"{"type":"start","files":[{"name":"a","size":"1"}]}"#,
            r#"{"type":"start","files":[{"name":"a","size":18446744073709551616}]}"#,
            r#"{"type":"start","files":[{"name":null,"size":1}]}"#,
            r#"{"type":"Start","files":[]}"#,
            r#"{"type":"resume"}"#,
            r#"{"type":"view"}"#,
            r#"{"type":"view","name":7}"#,
            r#"{"type":"query"}"#,
            r#"{"type":"changes","seq":-1,"query":{}}"#,
            r#"{"type":"finish"}{"type":"finish"}"#,
        ] {
            assert!(parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_refused_without_overflowing_the_stack() {
        let text = format!(r#"{{"type":"finish","x":{}"#, "[".repeat(8_000));
        assert!(parse(&text).is_none());
    }
}
