//! Request and response heads of the opening handshake (RFC 6455 §4).

use base64::{Engine, prelude::BASE64_STANDARD};
use sha1_smol::Sha1;

/// The key in the example of the standard (RFC 6455 §1.3).
pub(crate) const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

/// The version that we put into the first line of HTTP/2 responses, which have no such line.
const HTTP2: &str = "HTTP/2";

/// The GUID that is appended to the key (RFC 6455 §1.3).
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Returns the value of `Sec-WebSocket-Accept` for a key (RFC 6455 §4.2.2).
pub(crate) fn accept(key: &str) -> String {
    let digest = Sha1::from(format!("{key}{GUID}")).digest();
    BASE64_STANDARD.encode(digest.bytes())
}

/// The head of a request or a response.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Head {
    /// The first line.
    pub line: String,
    /// The fields in their order, with names in lower case.
    pub fields: Vec<(String, String)>,
}

impl Head {
    /// Removes a head from `bytes`. Returns `None` if it is incomplete.
    pub(crate) fn take(bytes: &mut Vec<u8>) -> Option<Self> {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
        let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
        bytes.drain(..end + 4);
        Some(Self::of_lines(text.split("\r\n")))
    }

    /// Parses a request that may be malformed, as a lenient server would.
    pub(crate) fn of_request(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let lines = text.trim_start_matches(['\r', '\n']).split('\n');
        let lines = lines.map(|line| line.trim_end_matches('\r'));
        Self::of_lines(lines.take_while(|line| !line.is_empty()))
    }

    fn of_lines<'a>(mut lines: impl Iterator<Item = &'a str>) -> Self {
        let line = lines.next().unwrap_or_default().to_owned();
        let fields = lines.filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            Some((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        });
        Self {
            line,
            fields: fields.collect(),
        }
    }

    /// Returns the status of a response.
    pub fn status(&self) -> Option<u16> {
        let (version, rest) = self.line.split_once(' ')?;
        let is_known = version.starts_with("HTTP/1.") || version == HTTP2;
        let status = rest.split(' ').next()?;
        is_known.then(|| status.parse().ok())?
    }

    /// Returns whether a response opens a WebSocket: with status 101, or over HTTP/2 with a 2xx
    /// status (RFC 8441 §5).
    pub fn opens(&self) -> bool {
        match self.status() {
            Some(101) => !self.line.starts_with(HTTP2),
            Some(200..=299) => self.line.starts_with(HTTP2),
            _ => false,
        }
    }

    /// Returns the values of a field, joined by commas. `name` is in lower case.
    pub fn field(&self, name: &str) -> Option<String> {
        let values: Vec<&str> = self
            .fields
            .iter()
            .filter(|(found, _)| found == name)
            .map(|(_, value)| value.as_str())
            .collect();
        (!values.is_empty()).then(|| values.join(", "))
    }

    /// Returns whether a field's list has this token, ignoring case.
    pub fn has_token(&self, name: &str, token: &str) -> bool {
        let list = self.field(name).unwrap_or_default();
        list.split(',')
            .any(|found| found.trim().eq_ignore_ascii_case(token))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_standard_is_accepted() {
        assert_eq!(accept(KEY), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn a_head_is_taken_when_it_is_whole() {
        let mut bytes =
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: a\r\nconnection:UPGRADE".to_vec();
        assert_eq!(Head::take(&mut bytes), None);
        bytes.extend(b"\r\n\r\n\x81");
        let head = Head::take(&mut bytes).unwrap();
        assert_eq!(head.status(), Some(101));
        assert!(head.has_token("connection", "upgrade"));
        assert_eq!(bytes, b"\x81");
    }

    #[test]
    fn what_opens_a_websocket_depends_on_the_version() {
        let opens = |line: &str| {
            let line = line.to_owned();
            let fields = Vec::new();
            Head { line, fields }.opens()
        };
        assert!(opens("HTTP/1.1 101 Switching Protocols") && opens("HTTP/2 200"));
        assert!(!opens("HTTP/1.1 200 OK") && !opens("HTTP/2 101") && !opens("HTTQ/1.1 101"));
    }

    #[test]
    fn a_request_is_read_although_it_is_malformed() {
        for request in [
            &b"\r\n\r\nGET / HTTP/1.1\r\nA: b\r\n\r\nC: d"[..],
            b"GET / HTTP/1.1\nA: b\n\n",
        ] {
            let head = Head::of_request(request);
            assert_eq!(head.fields, [("a".into(), "b".into())]);
        }
    }
}
