//! Attachments of binary events. On the wire, an attachment follows the JSON of its packet, in
//! which the placeholder `{"_placeholder":true,"num":0}` stands for it. Where JSON is all there is,
//! as in publications and for backends, the placeholder contains the bytes instead:
//! `{"_placeholder":true,"base64":"AQID"}`.
//!
//! JSON with placeholders is parsed and written again: its numbers have the precision of 64 bits.

use std::convert::Infallible;

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use serde_json::{Map, Value, json};

/// The maximum number of attachments of a packet to a client: `socket.io-parser` refuses more.
const SENT_MAX: usize = 10;

/// The key that marks a placeholder.
const MARK: &str = "_placeholder";

/// Why attachments do not belong to the JSON of their packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum IllegalAttachments {
    /// The text is not JSON, or has a number that is out of range.
    #[error("packet with attachments is not JSON, or has a number that is out of range")]
    Json,
    /// A placeholder does not name an attachment, or names one that an earlier one has named.
    #[error("placeholder does not name one of the {attachments} attachments, each of them once")]
    Placeholder {
        /// The number of attachments.
        attachments: usize,
    },
}

/// Puts attachments into the placeholders of `json` that name them.
///
/// # Errors
/// A placeholder names no attachment, or one that an earlier placeholder has named: the size of
/// what is returned is limited by the size of what has arrived.
pub(crate) fn fill(json: &[u8], attachments: &[Bytes]) -> Result<Vec<u8>, IllegalAttachments> {
    let mut value = serde_json::from_slice(json).map_err(|_| IllegalAttachments::Json)?;
    let mut left: Vec<_> = attachments.iter().map(Some).collect();
    let illegal = IllegalAttachments::Placeholder {
        attachments: attachments.len(),
    };
    replace(&mut value, &mut |placeholder| {
        let index = placeholder.get("num").and_then(Value::as_u64);
        let index = index.and_then(|index| usize::try_from(index).ok());
        let attachment = index.and_then(|index| left.get_mut(index)?.take());
        let text = STANDARD.encode(attachment.ok_or(illegal)?);
        Ok(json!({ MARK: true, "base64": text }))
    })?;
    Ok(value.to_string().into_bytes())
}

/// Returns `json` with attachments taken out of its placeholders, and the attachments; `None` if it
/// has none. A placeholder without valid Base64, or after the tenth, becomes `null` if there are
/// others, because clients refuse the whole packet otherwise.
pub(crate) fn take_out(json: &[u8]) -> Option<(Vec<u8>, Vec<Bytes>)> {
    let text = std::str::from_utf8(json).ok()?;
    let may_be = text.contains(MARK);
    let mut value = may_be.then(|| serde_json::from_str(text).ok())??;
    let mut attachments: Vec<Bytes> = Vec::new();
    let replaced = replace::<Infallible>(&mut value, &mut |placeholder| {
        let text = placeholder.get("base64").and_then(Value::as_str);
        let text = text.filter(|_| attachments.len() < SENT_MAX);
        let Some(bytes) = text.and_then(|text| STANDARD.decode(text).ok()) else {
            return Ok(Value::Null);
        };
        attachments.push(bytes.into());
        Ok(json!({ MARK: true, "num": attachments.len() - 1 }))
    });
    match replaced {
        Ok(()) if attachments.is_empty() => None,
        Ok(()) => Some((value.to_string().into_bytes(), attachments)),
    }
}

/// The placeholder of the first attachment on the wire.
pub(super) const FIRST: &[u8] = br#"{"_placeholder":true,"num":0}"#;

/// Returns what takes the place of a placeholder, given its members.
type Replace<'a, E> = dyn FnMut(&Map<String, Value>) -> Result<Value, E> + 'a;

/// Replaces each placeholder.
fn replace<E>(value: &mut Value, with: &mut Replace<'_, E>) -> Result<(), E> {
    match value {
        Value::Array(elements) => elements.iter_mut().try_for_each(|one| replace(one, with)),
        Value::Object(members) if members.get(MARK) == Some(&Value::Bool(true)) => {
            *value = with(members)?;
            Ok(())
        }
        Value::Object(members) => members.values_mut().try_for_each(|one| replace(one, with)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::{Value, json};

    use super::{IllegalAttachments, fill, take_out};

    fn filled(json: &str, attachments: &[&'static [u8]]) -> Result<Value, IllegalAttachments> {
        let attachments = attachments.iter().copied().map(Bytes::from_static);
        let filled = fill(json.as_bytes(), &attachments.collect::<Vec<_>>())?;
        Ok(serde_json::from_slice(&filled).unwrap())
    }

    fn taken(json: &Value) -> Option<(Value, Vec<Bytes>)> {
        let (out, attachments) = take_out(json.to_string().as_bytes())?;
        Some((serde_json::from_slice(&out).unwrap(), attachments))
    }

    #[test]
    fn attachments_are_put_into_their_placeholders_and_taken_out_again() {
        let wire = r#"[{"a":{"_placeholder":true,"num":1},"n":1.0},[{"_placeholder":true,"num":0}],12345678901234567890]"#;
        let whole = filled(wire, &[b"\x01\x02\x03", b""]).unwrap();
        let expected = json!([
            {"a": {"_placeholder": true, "base64": ""}, "n": 1.0},
            [{"_placeholder": true, "base64": "AQID"}],
            12_345_678_901_234_567_890_u64,
        ]);
        assert_eq!(whole, expected);
        let (out, attachments) = taken(&whole).unwrap();
        assert_eq!(attachments, [&b""[..], b"\x01\x02\x03"]);
        let expected = json!([
            {"a": {"_placeholder": true, "num": 0}, "n": 1.0},
            [{"_placeholder": true, "num": 1}],
            12_345_678_901_234_567_890_u64,
        ]);
        assert_eq!(out, expected);
    }

    #[test]
    fn a_placeholder_that_names_no_attachment_is_illegal() {
        let illegal = Err(IllegalAttachments::Placeholder { attachments: 1 });
        for json in [
            r#"[{"_placeholder":true,"num":1}]"#,
            r#"[{"_placeholder":true,"num":-1}]"#,
            r#"[{"_placeholder":true,"num":0.5}]"#,
            r#"[{"_placeholder":true,"num":"0"}]"#,
            r#"[{"\u005fplaceholder":true}]"#,
            r#"[{"_placeholder":true,"num":0},{"_placeholder":true,"num":0}]"#,
        ] {
            assert_eq!(filled(json, &[b"a"]), illegal, "{json}");
        }
        for json in ["[", "[1e999]"] {
            assert_eq!(filled(json, &[b"a"]), Err(IllegalAttachments::Json));
        }
    }

    #[test]
    fn other_json_stays_what_it_is() {
        for json in [
            json!([{"_placeholder": false, "num": 0}]),
            json!(["_placeholder"]),
            json!([{"a": "\"_placeholder\":true"}]),
        ] {
            assert_eq!(filled(&json.to_string(), &[]).unwrap(), json);
            assert_eq!(taken(&json), None);
        }
        assert_eq!(taken(&json!([{"_placeholder": true, "base64": "!"}])), None);
    }

    #[test]
    fn clients_are_not_sent_placeholders_that_they_would_refuse() {
        let whole = json!({"_placeholder": true, "base64": "AQ=="});
        let illegal = r#"{"\u005fplaceholder":true,"num":7,"a":{"_placeholder":true}}"#;
        let text = format!("[{whole},{illegal},[{{\"_placeholder\":true}}]]");
        let (out, attachments) = take_out(text.as_bytes()).unwrap();
        let out: Value = serde_json::from_slice(&out).unwrap();
        let expected = json!([{"_placeholder": true, "num": 0}, null, [null]]);
        assert_eq!((out, attachments.len()), (expected, 1));
        let (out, attachments) = taken(&Value::from(vec![whole; 11])).unwrap();
        assert_eq!(attachments.len(), 10);
        assert_eq!(out[9], json!({"_placeholder": true, "num": 9}));
        assert_eq!(out[10], Value::Null);
    }

    #[test]
    fn deep_json_has_no_attachments() {
        let deep = format!(
            "{}{{\"_placeholder\":true,\"base64\":\"AQ==\"}}{}",
            "[".repeat(100_000),
            "]".repeat(100_000)
        );
        assert_eq!(take_out(deep.as_bytes()), None);
    }
}
