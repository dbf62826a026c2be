//! What a client requests in addition to a URL: subprotocols, headers and cookies.

use linerate_proto::handshake::{BuildError, ClientHandshake, HandshakeLimits, Origin};

use crate::{
    Error, Result,
    dial::{Target, basic},
};

/// The parts of a request that the application sets.
#[derive(Clone, Default)]
pub(super) struct RequestParts {
    pub(super) subprotocols: Vec<String>,
    pub(super) headers: Vec<(String, String)>,
    /// Each one as `name=value`.
    pub(super) cookies: Vec<String>,
    pub(super) origin: Option<Origin>,
}

impl RequestParts {
    /// Adds a cookie (RFC 6265 §4.2.1).
    ///
    /// # Errors
    /// The name is not a token, or the value contains a character that is not allowed in cookies.
    pub(super) fn add_cookie(&mut self, name: &str, value: &str) -> Result<(), BuildError> {
        // The characters of a token (RFC 9110 §5.6.2).
        let is_token =
            |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        // RFC 6265 §4.1.1: "US-ASCII characters excluding CTLs, whitespace DQUOTE, comma,
        // semicolon, and backslash".
        let is_octet = |byte: u8| byte.is_ascii_graphic() && !b"\",;\\".contains(&byte);
        let name_error = name.bytes().position(|byte| !is_token(byte));
        if let Some(offset) = name_error.or_else(|| name.is_empty().then_some(0)) {
            return Err(BuildError::HeaderNameInvalid { offset });
        }
        if let Some(offset) = value.bytes().position(|byte| !is_octet(byte)) {
            return Err(BuildError::HeaderValueInvalid { offset });
        }
        self.cookies.push(format!("{name}={value}"));
        Ok(())
    }

    /// Removes everything that may identify the client, because it must not reach another server.
    /// Subprotocols stay, because the server needs them to choose one.
    pub(super) fn forget_credentials(&mut self) {
        self.headers.clear();
        self.cookies.clear();
    }

    /// Returns the handshake for `target` with all of these parts.
    ///
    /// # Errors
    /// One of the parts cannot be sent.
    pub(super) fn handshake(
        &self,
        target: &Target,
        limits: HandshakeLimits,
    ) -> Result<ClientHandshake> {
        let key = rand::random();
        let mut handshake = ClientHandshake::new(&target.authority, &target.path_and_query, key)?
            .with_limits(limits);
        for subprotocol in &self.subprotocols {
            handshake = handshake.with_subprotocol(subprotocol)?;
        }
        let mut cookies = self.cookies.clone();
        let mut is_authorized = false;
        for (name, value) in &self.headers {
            // RFC 6265 §5.4: "the user agent MUST NOT attach more than one Cookie header field".
            if name.eq_ignore_ascii_case("Cookie") {
                cookies.push(value.clone());
                continue;
            }
            is_authorized |= name.eq_ignore_ascii_case("Authorization");
            handshake = with_header(handshake, name, value)?;
        }
        if let Some(credentials) = target.credentials.as_ref().filter(|_| !is_authorized) {
            handshake = with_header(handshake, "Authorization", &basic(credentials))?;
        }
        if !cookies.is_empty() {
            handshake = with_header(handshake, "Cookie", &cookies.join("; "))?;
        }
        if let Some(origin) = &self.origin {
            handshake = handshake.with_origin(origin.clone());
        }
        Ok(handshake)
    }
}

/// Adds a header; the error names it.
fn with_header(handshake: ClientHandshake, name: &str, value: &str) -> Result<ClientHandshake> {
    handshake
        .with_header(name, value)
        .map_err(|error| Error::Header {
            name: name.to_owned(),
            error,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(parts: &RequestParts, url: &str) -> String {
        let target = Target::parse(url).unwrap();
        let handshake = parts
            .handshake(&target, HandshakeLimits::default())
            .unwrap();
        let mut request = Vec::new();
        handshake.encode(&mut request);
        String::from_utf8(request).unwrap()
    }

    #[test]
    fn cookies_are_one_header_whichever_way_they_were_added() {
        let mut parts = RequestParts::default();
        parts.add_cookie("id", "7").unwrap();
        parts.headers.push(("cookie".into(), "a=b; c=d".into()));
        parts.add_cookie("__Host-x", "").unwrap();
        let request = request(&parts, "ws://example.com/");
        assert!(
            request.contains("\r\nCookie: id=7; __Host-x=; a=b; c=d\r\n"),
            "{request}"
        );
        assert_eq!(request.to_lowercase().matches("cookie").count(), 1);
    }

    #[test]
    fn cookies_that_would_be_more_than_one_are_refused() {
        let mut parts = RequestParts::default();
        for (name, value, expected) in [
            ("", "x", BuildError::HeaderNameInvalid { offset: 0 }),
            ("a=b", "x", BuildError::HeaderNameInvalid { offset: 1 }),
            ("a", "x;b=y", BuildError::HeaderValueInvalid { offset: 1 }),
            (
                "a",
                "x\r\nY: z",
                BuildError::HeaderValueInvalid { offset: 1 },
            ),
            ("a", "\u{e4}", BuildError::HeaderValueInvalid { offset: 0 }),
        ] {
            assert_eq!(parts.add_cookie(name, value), Err(expected));
        }
        assert!(parts.cookies.is_empty());
    }

    #[test]
    fn headers_of_the_handshake_itself_are_refused() {
        let target = Target::parse("ws://example.com/").unwrap();
        for name in [
            "Host",
            "connection",
            "UPGRADE",
            "Sec-WebSocket-Key",
            "Content-Length",
        ] {
            let mut parts = RequestParts::default();
            parts.headers.push((name.into(), "x".into()));
            let error = parts.handshake(&target, HandshakeLimits::default());
            let expected = format!(
                "cannot send the header {name:?}: {}",
                BuildError::HeaderReserved
            );
            assert_eq!(error.unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn a_user_in_the_url_is_named_to_the_server_unless_a_header_does() {
        let mut parts = RequestParts::default();
        let url = "ws://us%20er:p%3Ass@example.com/";
        let asked = request(&parts, url);
        assert!(asked.contains("\r\nHost: example.com\r\n"), "{asked}");
        // "us er:p:ss" in base64.
        assert!(
            asked.contains("\r\nAuthorization: Basic dXMgZXI6cDpzcw==\r\n"),
            "{asked}"
        );
        parts
            .headers
            .push(("authorization".into(), "Bearer x".into()));
        let asked = request(&parts, url);
        assert!(asked.contains("\r\nauthorization: Bearer x\r\n"), "{asked}");
        assert!(!asked.contains("Basic"), "{asked}");
    }
}
