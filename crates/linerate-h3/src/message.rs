//! Requests and responses as header fields (RFC 9114 §4.3, RFC 9220 §3).

use linerate_proto::handshake::{
    Acceptance, HandshakeError, HandshakeLimits, HttpVersion, PseudoHeaders, Refusal, Request,
};

use crate::{
    fault::{Code, Fault},
    qpack::{self, Field},
};

/// Header fields that HTTP/3 forbids (RFC 9114 §4.2), in addition to `TE` with any value other than
/// `trailers`.
const CONNECTION_SPECIFIC: [&str; 5] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
    "upgrade",
];

/// The header fields of a message, with the pseudo-header fields separate.
#[derive(Debug, Default)]
struct Message {
    pseudo: Vec<(&'static str, String)>,
    fields: Vec<(String, Vec<u8>)>,
}

impl Message {
    /// Sorts the fields of a message. `known` are the names of the pseudo-header fields that it may
    /// have.
    fn of(fields: Vec<Field>, known: &[&'static str]) -> Result<Self, Fault> {
        let mut message = Self::default();
        for Field { name, value } in fields {
            let name = String::from_utf8(name).map_err(|_| malformed())?;
            if name.starts_with(':') {
                message.add_pseudo(&name, value, known)?;
            } else {
                message.add(name, value)?;
            }
        }
        Ok(message)
    }

    /// Adds a pseudo-header field.
    ///
    /// §4.3: "All pseudo-header fields MUST appear in the header section before regular header
    /// fields". Each may occur only once, and unknown ones are errors.
    fn add_pseudo(
        &mut self,
        name: &str,
        value: Vec<u8>,
        known: &[&'static str],
    ) -> Result<(), Fault> {
        let known = known.iter().find(|known| **known == name);
        let name = known.ok_or_else(malformed)?;
        if !self.fields.is_empty() || self.pseudo(name).is_some() {
            return Err(malformed());
        }
        let value = String::from_utf8(value).map_err(|_| malformed())?;
        self.pseudo.push((name, value));
        Ok(())
    }

    fn add(&mut self, name: String, value: Vec<u8>) -> Result<(), Fault> {
        let is_forbidden =
            CONNECTION_SPECIFIC.contains(&&*name) || name == "te" && value != b"trailers";
        let is_name = !name.is_empty() && name.bytes().all(is_name_byte);
        let is_value = !value
            .iter()
            .any(|byte| matches!(byte, b'\0' | b'\r' | b'\n'));
        if is_forbidden || !is_name || !is_value {
            return Err(malformed());
        }
        self.fields.push((name, value));
        Ok(())
    }

    fn pseudo(&self, name: &str) -> Option<&str> {
        let mut pseudo = self.pseudo.iter();
        pseudo.find(|field| field.0 == name).map(|field| &*field.1)
    }

    /// Joins the parts of a cookie.
    ///
    /// §4.2.1: "If these are passed into a context other than HTTP/2 or HTTP/3 … multiple cookie
    /// field lines MUST be combined using the two-byte delimiter of "; "".
    fn join_cookies(&mut self) {
        let mut cookie: Option<Vec<u8>> = None;
        self.fields.retain_mut(|(name, value)| {
            if name != "cookie" {
                return true;
            }
            match &mut cookie {
                Some(cookie) => {
                    cookie.extend_from_slice(b"; ");
                    cookie.append(value);
                }
                None => cookie = Some(std::mem::take(value)),
            }
            false
        });
        self.fields
            .extend(cookie.map(|cookie| ("cookie".to_owned(), cookie)));
    }

    fn fields(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.fields.iter().map(|(name, value)| (&**name, &**value))
    }
}

/// Returns whether a byte may occur in a lower-case token (§4.2: "Characters in field names MUST be
/// converted to lowercase").
fn is_name_byte(byte: u8) -> bool {
    matches!(byte, b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'0'..=b'9' | b'^'..=b'z' | b'|' | b'~')
}

const fn malformed() -> Fault {
    Fault::stream(Code::MESSAGE_ERROR, "malformed message")
}

/// A request that is well-formed in HTTP/3.
#[derive(Debug)]
pub(crate) struct RequestHead(Message);

impl RequestHead {
    /// # Errors
    /// Returns an error if the request is malformed.
    pub(crate) fn of(fields: Vec<Field>) -> Result<Self, Fault> {
        let known = [":method", ":scheme", ":authority", ":path", ":protocol"];
        let mut message = Message::of(fields, &known)?;
        message.join_cookies();
        let has = |name| message.pseudo(name).is_some_and(|value| !value.is_empty());
        let is_well_formed = match (message.pseudo(":method"), message.pseudo(":protocol")) {
            // RFC 9220 §3, like RFC 8441 §4: ":scheme" and ":path" "MUST also be included".
            (Some("CONNECT"), Some(_)) => has(":scheme") && has(":path") && has(":authority"),
            // §4.4: "The :scheme and :path pseudo-header fields are omitted".
            (Some("CONNECT"), None) => {
                message.pseudo(":scheme").is_none()
                    && message.pseudo(":path").is_none()
                    && has(":authority")
            }
            (Some(_), Some(_)) | (None, _) => false,
            (Some(_), None) => has(":scheme") && has(":path"),
        };
        is_well_formed.then_some(Self(message)).ok_or(malformed())
    }

    /// Returns the request in the form that the handshake rules expect.
    pub(crate) fn request(&self, limits: HandshakeLimits) -> Result<Request, HandshakeError> {
        let message = &self.0;
        let pseudo = PseudoHeaders {
            version: HttpVersion::Http3,
            method: message.pseudo(":method").unwrap_or_default(),
            protocol: message.pseudo(":protocol"),
            authority: message.pseudo(":authority"),
            path: message.pseudo(":path").unwrap_or_default(),
        };
        Request::from_pseudo(pseudo, message.fields(), limits)
    }
}

/// A response that is well-formed in HTTP/3.
#[derive(Debug)]
pub(crate) struct ResponseHead {
    pub(crate) status: u16,
    message: Message,
}

impl ResponseHead {
    /// # Errors
    /// Returns an error if the response is malformed.
    pub(crate) fn of(fields: Vec<Field>) -> Result<Self, Fault> {
        let message = Message::of(fields, &[":status"])?;
        let status = message.pseudo(":status").ok_or_else(malformed)?;
        let is_status = status.len() == 3 && status.bytes().all(|byte| byte.is_ascii_digit());
        let status = status.parse().ok().filter(|_| is_status);
        Ok(Self {
            status: status.ok_or_else(malformed)?,
            message,
        })
    }

    pub(crate) fn fields(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.message.fields()
    }
}

/// Returns the encoded header fields of the response that opens a WebSocket.
pub fn response(acceptance: &Acceptance<'_>) -> Vec<u8> {
    section(acceptance.status(), acceptance.headers())
}

/// Returns the error for header fields that exceed the limit.
pub(crate) fn too_large(bytes_max: u32) -> HandshakeError {
    HandshakeError::HeadTooLarge {
        head_bytes: bytes_max as usize + 1,
        head_bytes_max: bytes_max as usize,
    }
}

/// Returns the field section of a refusal, whose text is sent as the body.
pub(crate) fn refusal(refusal: &Refusal) -> Vec<u8> {
    let headers = refusal.headers();
    section(
        refusal.status(),
        headers.filter(|(name, _)| {
            let is_forbidden = |forbidden: &&str| name.eq_ignore_ascii_case(forbidden);
            !CONNECTION_SPECIFIC.iter().any(is_forbidden)
        }),
    )
}

fn section<'a>(status: u16, headers: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<u8> {
    let status = status.to_string();
    let headers: Vec<_> = headers
        .map(|(name, value)| (name.to_ascii_lowercase(), value))
        .collect();
    let headers = headers
        .iter()
        .map(|(name, value)| (&**name, value.as_bytes()));
    qpack::encode([(":status", status.as_bytes())].into_iter().chain(headers))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONNECT: [(&str, &str); 6] = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "https"),
        (":path", "/chat"),
        (":authority", "example.com"),
        ("sec-websocket-version", "13"),
    ];

    fn fields(fields: &[(&str, &str)]) -> Vec<Field> {
        fields
            .iter()
            .map(|(name, value)| Field {
                name: name.as_bytes().to_vec(),
                value: value.as_bytes().to_vec(),
            })
            .collect()
    }

    fn request(request: &[(&str, &str)]) -> Result<RequestHead, Fault> {
        RequestHead::of(fields(request))
    }

    fn without(name: &str) -> Vec<(&'static str, &'static str)> {
        CONNECT
            .into_iter()
            .filter(|field| field.0 != name)
            .collect()
    }

    fn with(field: (&'static str, &'static str)) -> Vec<(&'static str, &'static str)> {
        CONNECT.into_iter().chain([field]).collect()
    }

    #[test]
    fn a_connect_is_a_request_as_any_other() {
        let request = request(&with(("cookie", "a=b"))).unwrap();
        let request = request.request(HandshakeLimits::default()).unwrap();
        assert_eq!(request.version(), HttpVersion::Http3);
        assert_eq!(
            (request.path(), request.host()),
            ("/chat", Some("example.com"))
        );
        assert!(request.asks_for_websocket());
        let upgrade = request.websocket().unwrap();
        assert_eq!(upgrade.accept().status(), 200);
        assert_eq!(response(&upgrade.accept()), b"\0\0\xd9");
    }

    #[test]
    fn the_parts_of_a_cookie_are_one() {
        let mut parts = with(("cookie", "a=b"));
        parts.extend([("accept", "x"), ("cookie", "c=d"), ("cookie", "e=f")]);
        let request = request(&parts).unwrap();
        let request = request.request(HandshakeLimits::default()).unwrap();
        assert_eq!(request.header("Cookie"), Some(&b"a=b; c=d; e=f"[..]));
    }

    #[test]
    fn s08_a_connect_without_what_it_needs_is_malformed() {
        for name in [":method", ":scheme", ":path", ":authority", ":protocol"] {
            assert_eq!(request(&without(name)).unwrap_err(), malformed(), "{name}");
        }
        let mut get = without(":protocol");
        get[0].1 = "GET";
        assert!(request(&get).is_ok());
        get.insert(0, (":protocol", "websocket"));
        assert_eq!(request(&get).unwrap_err(), malformed(), "a GET");
        for name in CONNECTION_SPECIFIC.into_iter().chain(["te"]) {
            let field = (name, "upgrade");
            assert_eq!(request(&with(field)).unwrap_err(), malformed(), "{name}");
        }
        assert!(request(&with(("te", "trailers"))).is_ok());
    }

    #[test]
    fn s11_pseudo_headers_twice_behind_others_or_unknown_are_malformed() {
        let mut twice = CONNECT.to_vec();
        twice.insert(0, (":path", "/"));
        assert_eq!(request(&twice).unwrap_err(), malformed());
        let mut behind = without(":path");
        behind.push((":path", "/"));
        assert_eq!(request(&behind).unwrap_err(), malformed());
        let mut unknown = CONNECT.to_vec();
        unknown.insert(0, (":status", "200"));
        assert_eq!(request(&unknown).unwrap_err(), malformed());
    }

    #[test]
    fn s11_names_and_values_that_could_be_more_are_malformed() {
        for field in [
            ("Accept", "x"),
            ("", "x"),
            ("a b", "x"),
            ("a:", "x"),
            ("a", "b\r\nc: d"),
            ("a", "b\0"),
        ] {
            assert_eq!(request(&with(field)).unwrap_err(), malformed(), "{field:?}");
        }
    }

    #[test]
    fn a_response_has_a_status_of_three_digits() {
        let status = |status| ResponseHead::of(fields(&[(":status", status), ("a", "b")]));
        let response = status("200").unwrap();
        assert_eq!(response.status, 200);
        assert_eq!(response.fields().collect::<Vec<_>>(), [("a", &b"b"[..])]);
        for wrong in ["", "20", "+20", "2000", "abc"] {
            assert_eq!(status(wrong).unwrap_err(), malformed(), "{wrong}");
        }
        assert!(ResponseHead::of(fields(&[("a", "b")])).is_err());
    }

    #[test]
    fn a_refusal_says_nothing_about_the_connection() {
        let refused = Refusal::from(HandshakeError::WebSocketVersionUnsupported);
        let section = refusal(&refused);
        let qpack::Section::Fields(fields) = qpack::decode(&section, 1_000).unwrap() else {
            panic!("too large");
        };
        let response = ResponseHead::of(fields).unwrap();
        assert_eq!(response.status, 426);
        assert!(
            response
                .fields()
                .any(|(name, _)| name == "sec-websocket-version")
        );
    }
}
