//! The JSON messages of the protocol.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::ProtocolError;

/// The name of the WebSocket subprotocol.
pub const SUBPROTOCOL: &str = "linerate.upload.v1";

/// A text message from a client. `upload` is a number that the client chose.
#[derive(Debug, Deserialize, Eq, PartialEq)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(crate) enum ClientMessage {
    Cancel {
        upload: u64,
    },
    /// The binary messages that follow are bytes of this upload.
    Data {
        upload: u64,
        offset: u64,
    },
    Resume {
        upload: u64,
        id: String,
        name: String,
        size: u64,
    },
    Start {
        upload: u64,
        name: String,
        size: u64,
    },
}

/// A text message to a client.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(crate) enum ServerMessage<'a> {
    Ack {
        upload: u64,
        bytes: u64,
    },
    Done {
        upload: u64,
        result: &'a Value,
    },
    Error {
        #[serde(skip_serializing_if = "Option::is_none")]
        upload: Option<u64>,
        code: &'a str,
        message: String,
    },
    Hello {
        file_bytes_max: u64,
        idle_s: u64,
        uploads_max: usize,
        window_bytes: u64,
    },
    Ready {
        upload: u64,
        id: String,
        offset: u64,
    },
}

impl ClientMessage {
    pub(crate) fn parse(text: &str) -> Result<Self, ProtocolError> {
        serde_json::from_str(text).map_err(|_| ProtocolError::UnknownMessage)
    }
}

impl ServerMessage<'_> {
    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("the keys of all maps are text")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_parsed_and_unknown_members_are_ignored() {
        let start = ClientMessage::parse(
            r#" {"size":5,"type":"start","upload":1,"name":"\u00e4/../\u0000","x":[]} "#,
        );
        let name = "ä/../\0".to_owned();
        assert_eq!(
            start,
            Ok(ClientMessage::Start {
                upload: 1,
                name,
                size: 5
            })
        );
        assert_eq!(
            ClientMessage::parse(r#"{"type":"data","upload":1,"offset":18446744073709551615}"#),
            Ok(ClientMessage::Data {
                upload: 1,
                offset: u64::MAX
            })
        );
    }

    #[test]
    fn other_messages_are_refused() {
        for text in [
            "",
            "{}",
            "[]",
            r#"{"type":"start"}"#,
            r#"{"type":"start","upload":1,"name":"a"}"#,
            r#"{"type":"start","upload":1,"name":"a","size":-1}"#,
            r#"{"type":"start","upload":1,"name":"a","size":1.5}"#,
            r#"{"type":"start","upload":1,"name":"a","size":18446744073709551616}"#,
            r#"{"type":"start","upload":-1,"name":"a","size":1}"#,
            r#"{"type":"start","upload":1,"name":null,"size":1}"#,
            r#"{"type":"data","upload":1,"offset":-1}"#,
            r#"{"type":"data","upload":1,"offset":"0"}"#,
            r#"{"type":"Data","upload":1,"offset":0}"#,
            r#"{"type":"cancel","upload":1}{"type":"cancel","upload":1}"#,
        ] {
            let parsed = ClientMessage::parse(text);
            assert_eq!(parsed, Err(ProtocolError::UnknownMessage), "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_refused_without_overflowing_the_stack() {
        let text = format!(r#"{{"type":"cancel","upload":1,"x":{}"#, "[".repeat(8_000));
        assert!(ClientMessage::parse(&text).is_err());
    }

    #[test]
    fn error_of_the_connection_names_no_upload() {
        let error = ServerMessage::Error {
            upload: None,
            code: "protocol",
            message: "…".to_owned(),
        };
        assert_eq!(
            error.to_json(),
            r#"{"type":"error","code":"protocol","message":"…"}"#
        );
    }
}
