//! Attachments of binary events. On the wire, an attachment follows the JSON of its packet, in
//! which the placeholder `{"_placeholder":true,"num":0}` stands for it. Where JSON is all there is,
//! as in publications and for backends, the placeholder contains the bytes instead:
//! `{"_placeholder":true,"base64":"AQID"}`.

use std::fmt;

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

/// The maximum number of attachments of a packet to a client: `socket.io-parser` refuses more.
const SENT_MAX: usize = 10;

/// The key that marks a placeholder.
const MARK: &str = "_placeholder";

/// Why attachments do not belong to the JSON of their packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum IllegalAttachments {
    /// The text is not JSON.
    #[error("packet with attachments is not JSON")]
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
    let raw: &RawValue = serde_json::from_slice(json).map_err(|_| IllegalAttachments::Json)?;
    let mut left: Vec<_> = attachments.iter().map(Some).collect();
    let illegal = IllegalAttachments::Placeholder {
        attachments: attachments.len(),
    };
    let mut out = Vec::with_capacity(json.len());
    rewrite(raw.get(), &mut out, &mut |placeholder, out| {
        let index = placeholder.num.and_then(|num| usize::try_from(num).ok());
        let attachment = index.and_then(|index| left.get_mut(index)?.take());
        append_base64(attachment.ok_or(illegal)?, out);
        Ok(())
    })?;
    Ok(out)
}

/// Appends `json` with attachments taken out of its placeholders, and adds them to `attachments`. A
/// placeholder without valid Base64, or after the tenth, becomes `null`, because clients refuse the
/// whole packet otherwise.
pub(crate) fn take_out(json: &str, out: &mut Vec<u8>, attachments: &mut Vec<Bytes>) {
    let start = out.len();
    let taken = rewrite(json, out, &mut |placeholder, out| {
        let bytes = placeholder.base64.as_ref();
        let bytes = bytes.filter(|_| attachments.len() < SENT_MAX);
        match bytes.and_then(|text| STANDARD.decode(text).ok()) {
            Some(bytes) => {
                append_placeholder(attachments.len(), out);
                attachments.push(bytes.into());
            }
            None => out.extend_from_slice(b"null"),
        }
        Ok(())
    });
    // The caller has checked that it is JSON.
    if taken.is_err() {
        out.truncate(start);
        out.extend_from_slice(json.as_bytes());
    }
}

/// Appends the placeholder of an attachment on the wire.
pub(super) fn append_placeholder(index: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{{\"{MARK}\":true,\"num\":{index}}}").as_bytes());
}

fn append_base64(bytes: &[u8], out: &mut Vec<u8>) {
    let text = STANDARD.encode(bytes);
    out.extend_from_slice(format!("{{\"{MARK}\":true,\"base64\":\"{text}\"}}").as_bytes());
}

/// A placeholder, as far as it is valid.
#[derive(Debug, Default)]
struct Placeholder {
    num: Option<u64>,
    base64: Option<String>,
}

type Replace<'a> = &'a mut dyn FnMut(&Placeholder, &mut Vec<u8>) -> Result<(), IllegalAttachments>;

/// Appends `json`, with each placeholder replaced. All other JSON stays byte for byte what it is,
/// except for white space between the members of containers that have placeholders.
fn rewrite(json: &str, out: &mut Vec<u8>, replace: Replace<'_>) -> Result<(), IllegalAttachments> {
    if !json.contains(MARK) {
        out.extend_from_slice(json.as_bytes());
        return Ok(());
    }
    match json.as_bytes().first() {
        Some(b'{') => {
            let Members(members) = parse(json)?;
            if let Some(placeholder) = placeholder(&members) {
                return replace(&placeholder, out);
            }
            out.push(b'{');
            for (index, (key, value)) in members.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                serde_json::to_writer(&mut *out, key).map_err(|_| IllegalAttachments::Json)?;
                out.push(b':');
                rewrite(value.get(), out, replace)?;
            }
            out.push(b'}');
        }
        Some(b'[') => {
            let Elements(elements) = parse(json)?;
            out.push(b'[');
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                rewrite(element.get(), out, replace)?;
            }
            out.push(b']');
        }
        _ => out.extend_from_slice(json.as_bytes()),
    }
    Ok(())
}

fn parse<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, IllegalAttachments> {
    serde_json::from_str(json).map_err(|_| IllegalAttachments::Json)
}

fn placeholder(members: &[(String, &RawValue)]) -> Option<Placeholder> {
    let find = |name: &str| {
        let member = members.iter().find(|(key, _)| key == name);
        member.map(|(_, value)| value.get())
    };
    (find(MARK)? == "true").then(|| Placeholder {
        num: find("num").and_then(|num| num.parse().ok()),
        base64: find("base64").and_then(|text| serde_json::from_str(text).ok()),
    })
}

/// The members of an object, in order.
struct Members<'a>(Vec<(String, &'a RawValue)>);

/// The elements of an array.
struct Elements<'a>(Vec<&'a RawValue>);

impl<'a> Deserialize<'a> for Members<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;

        impl<'a> Visitor<'a> for Collect {
            type Value = Members<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Members<'a>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Collect)
    }
}

impl<'a> Deserialize<'a> for Elements<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;

        impl<'a> Visitor<'a> for Collect {
            type Value = Elements<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array")
            }

            fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<Elements<'a>, A::Error> {
                let mut elements = Vec::new();
                while let Some(element) = list.next_element()? {
                    elements.push(element);
                }
                Ok(Elements(elements))
            }
        }

        deserializer.deserialize_seq(Collect)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::{IllegalAttachments, fill, take_out};

    fn filled(json: &str, attachments: &[&'static [u8]]) -> Result<String, IllegalAttachments> {
        let attachments: Vec<_> = attachments
            .iter()
            .copied()
            .map(Bytes::from_static)
            .collect();
        let filled = fill(json.as_bytes(), &attachments)?;
        Ok(String::from_utf8(filled).unwrap())
    }

    #[test]
    fn attachments_are_put_into_their_placeholders_and_taken_out_again() {
        let wire = r#"[{"a":{"_placeholder":true,"num":1},"n":1.0},[{"_placeholder":true,"num":0}],12345678901234567890]"#;
        let whole = filled(wire, &[b"\x01\x02\x03", b""]).unwrap();
        let expected = r#"[{"a":{"_placeholder":true,"base64":""},"n":1.0},[{"_placeholder":true,"base64":"AQID"}],12345678901234567890]"#;
        assert_eq!(whole, expected);
        let (mut out, mut attachments) = (Vec::new(), Vec::new());
        take_out(&whole, &mut out, &mut attachments);
        assert_eq!(attachments, [&b""[..], b"\x01\x02\x03"]);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            wire.replace("\"num\":1", "\"num\":2")
                .replace("\"num\":0", "\"num\":1")
                .replace("\"num\":2", "\"num\":0")
        );
    }

    #[test]
    fn a_placeholder_that_names_no_attachment_is_illegal() {
        let illegal = Err(IllegalAttachments::Placeholder { attachments: 1 });
        for json in [
            r#"[{"_placeholder":true,"num":1}]"#,
            r#"[{"_placeholder":true,"num":-1}]"#,
            r#"[{"_placeholder":true,"num":0.5}]"#,
            r#"[{"_placeholder":true,"num":"0"}]"#,
            r#"[{"_placeholder":true}]"#,
            r#"[{"_placeholder":true,"num":0},{"_placeholder":true,"num":0}]"#,
        ] {
            assert_eq!(filled(json, &[b"a"]), illegal, "{json}");
        }
        assert_eq!(filled("[", &[b"a"]), Err(IllegalAttachments::Json));
    }

    #[test]
    fn other_json_stays_what_it_is() {
        for json in [
            r#"[{"_placeholder":false,"num":0}]"#,
            r#"["_placeholder"]"#,
            r#"[{"a":"\"_placeholder\":true"}]"#,
        ] {
            assert_eq!(filled(json, &[]).unwrap(), json);
        }
        let (mut out, mut attachments) = (Vec::new(), Vec::new());
        take_out(
            r#"[{"_placeholder":true,"base64":"!"}]"#,
            &mut out,
            &mut attachments,
        );
        assert_eq!((&*out, attachments.len()), (&b"[null]"[..], 0));
    }

    #[test]
    fn clients_are_not_sent_more_attachments_than_they_accept() {
        let all = [r#"{"_placeholder":true,"base64":"AQ=="}"#; 11].join(",");
        let (mut out, mut attachments) = (Vec::new(), Vec::new());
        take_out(&format!("[{all}]"), &mut out, &mut attachments);
        assert_eq!(attachments.len(), 10);
        assert!(out.ends_with(br#"{"_placeholder":true,"num":9},null]"#));
    }
}
