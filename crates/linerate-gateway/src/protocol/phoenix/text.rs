//! Binary messages to clients as JSON, with their bytes as Base64: for clients that cannot receive
//! bytes.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Serialize;

use super::{
    binary::{BROADCAST, REPLY, texts},
    message::Answer,
};

/// Returns the text of a binary message to a client; `None` if the gateway does not write such
/// messages.
pub(super) fn of(frame: &[u8]) -> Option<String> {
    let (&kind, rest) = frame.split_first()?;
    match kind {
        BROADCAST => {
            let ([topic, event], payload) = texts(rest)?;
            let payload = BASE64_STANDARD.encode(payload);
            to_json(&((), (), topic, event, payload))
        }
        REPLY => {
            let ([join_ref, reference, topic, status], payload) = texts(rest)?;
            let response = BASE64_STANDARD.encode(payload);
            let answer = Answer { status, response };
            let [join_ref, reference] =
                [join_ref, reference].map(|text| Some(text).filter(|text| !text.is_empty()));
            to_json(&(join_ref, reference, topic, "phx_reply", answer))
        }
        _ => None,
    }
}

fn to_json(message: &impl Serialize) -> Option<String> {
    serde_json::to_string(message).ok()
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn clients_that_cannot_receive_bytes_get_them_as_base64() {
        let broadcast = of(b"\x02\x05\x05topicevent\xff\0");
        let expected = r#"[null,null,"topic","event","/wA="]"#;
        assert_eq!(broadcast.as_deref(), Some(expected));
        let reply = of(b"\x01\x00\x03\x05\x02123topicok\xff\0");
        let answer = r#"{"status":"ok","response":"/wA="}"#;
        let expected = format!(r#"[null,"123","topic","phx_reply",{answer}]"#);
        assert_eq!(reply, Some(expected));
        for frame in [
            &b""[..],
            b"\x00\x00\x00\x00\x00",
            b"\x02\x05",
            b"\x02\x01\x00\xff",
        ] {
            assert_eq!(of(frame), None, "{frame:?}");
        }
    }
}
