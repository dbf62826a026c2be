//! The JSON of the upload protocol.

use serde::{Deserialize, Serialize};

use crate::summary::Summary;

/// What a client says in text.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum Request {
    Cancel,
    Finish,
    Start { name: String, size: u64 },
}

impl Request {
    /// Parses a text message; `None` if it is none of ours.
    pub(super) fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

/// What the server says.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum Reply {
    Ack {
        bytes: u64,
    },
    Error {
        code: &'static str,
        message: String,
    },
    Ready {
        window_bytes: u64,
    },
    Snapshot {
        #[serde(rename = "final")]
        is_final: bool,
        summary: Box<Summary>,
    },
}

impl Reply {
    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("maps have text keys, so replies are always JSON")
    }
}

#[cfg(test)]
mod tests {
    use super::Request;

    #[test]
    fn requests_are_parsed_and_unknown_members_ignored() {
        let text = r#" {"size":5,"name":"\u00e4.log","type":"start","x":[]} "#;
        let request = Request::parse(text);
        assert!(matches!(request, Some(Request::Start { name, size: 5 }) if name == "ä.log"));
        assert!(matches!(
            Request::parse(r#"{"type":"finish"}"#),
            Some(Request::Finish)
        ));
        assert!(matches!(
            Request::parse(r#"{"type":"cancel"}"#),
            Some(Request::Cancel)
        ));
    }

    #[test]
    fn anything_else_is_none() {
        for text in [
            "",
            "{}",
            "[]",
            "start",
            r#"{"type":"start"}"#,
            r#"{"type":"start","name":"a"}"#,
            r#"{"type":"start","name":"a","size":-1}"#,
            r#"{"type":"start","name":"a","size":1.5}"#,
            r#"{"type":"start","name":"a","size":"1"}"#,
            r#"{"type":"start","name":"a","size":18446744073709551616}"#,
            r#"{"type":"start","name":null,"size":1}"#,
            r#"{"type":"Start","name":"a","size":1}"#,
            r#"{"type":"resume"}"#,
            r#"{"type":"finish"}{"type":"finish"}"#,
        ] {
            assert!(Request::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_refused_without_overflowing_the_stack() {
        let text = format!(r#"{{"type":"finish","x":{}"#, "[".repeat(8_000));
        assert!(Request::parse(&text).is_none());
    }
}
