//! Single values in a request: cookies, query parameters and bearer tokens.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::str;

use super::Request;

impl Request {
    /// Returns the value of a cookie, as it was sent (RFC 6265 §5.4).
    ///
    /// ```
    /// # use linerate_proto::handshake::{HandshakeLimits, HttpVersion, Request};
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// # let headers = [
    /// #     ("host", &b"example.com"[..]),
    /// #     ("cookie", b"theme=dark; session=7f3a"),
    /// #     ("authorization", b"Bearer ann-secret"),
    /// # ];
    /// # let target = "/chat?room=red%20panda";
    /// # let limits = HandshakeLimits::default();
    /// # let request = Request::from_parts("GET", target, HttpVersion::Http11, headers, limits)?;
    /// assert_eq!(request.cookie("session"), Some("7f3a"));
    /// assert_eq!(request.bearer_token(), Some("ann-secret"));
    /// assert_eq!(request.query_parameter("room").as_deref(), Some("red panda"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn cookie(&self, name: &str) -> Option<&str> {
        self.headers
            .all("Cookie")
            .filter_map(|line| str::from_utf8(line).ok())
            .flat_map(|line| line.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .find(|(candidate, _)| *candidate == name)
            .map(|(_, value)| value)
    }

    /// Returns the token of an `Authorization: Bearer` header (RFC 6750 §2.1), or `None` if there
    /// is another scheme or more than one header. Browsers cannot send this header when they open
    /// a WebSocket.
    pub fn bearer_token(&self) -> Option<&str> {
        let value = self.headers.single("Authorization").ok()??;
        let (scheme, token) = str::from_utf8(value).ok()?.split_once(' ')?;
        let is_bearer = scheme.eq_ignore_ascii_case("Bearer");
        is_bearer.then(|| token.trim_start_matches(' '))
    }

    /// Returns the first query parameter with this name, decoded like the fields of a form: `+` is
    /// a space. `None` also if the value is not UTF-8.
    ///
    /// Queries end up in logs, so a token in a query should be valid only once or for a short time.
    pub fn query_parameter(&self, name: &str) -> Option<Cow<'_, str>> {
        self.query()?
            .split('&')
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .find(|(candidate, _)| decode(candidate).as_deref() == Some(name))
            .and_then(|(_, value)| decode(value))
    }
}

/// Decodes a name or a value; a `%` that does not start an escape is kept.
fn decode(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains(['%', '+']) {
        return Some(Cow::Borrowed(text));
    }
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [byte, after @ ..] = rest {
        rest = after;
        decoded.push(match (byte, after) {
            (b'+', _) => b' ',
            (b'%', [high, low, after @ ..]) => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => {
                    rest = after;
                    high << 4 | low
                }
                _ => b'%',
            },
            (byte, _) => *byte,
        });
    }
    String::from_utf8(decoded).ok().map(Cow::Owned)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handshake::{HandshakeLimits, HttpVersion};

    fn request(target: &str, headers: &[(&str, &[u8])]) -> Request {
        let host = [("host", &b"example.com"[..])];
        let headers = host.into_iter().chain(headers.iter().copied());
        let limits = HandshakeLimits::default();
        Request::from_parts("GET", target, HttpVersion::Http11, headers, limits).unwrap()
    }

    #[test]
    fn cookies_are_found_by_their_whole_name_in_all_headers() {
        let request = request(
            "/",
            &[
                ("cookie", b"a=1;b=2 ; novalue;\t c=x=y"),
                ("cookie", b"\xFF=1; d=4"),
                ("Cookie", b"a=5; e=\"6\""),
            ],
        );
        for (name, value) in [
            ("a", Some("1")),
            ("b", Some("2")),
            ("c", Some("x=y")),
            ("d", None),
            ("e", Some("\"6\"")),
            ("A", None),
            ("", None),
            ("novalue", None),
        ] {
            assert_eq!(request.cookie(name), value, "{name}");
        }
    }

    #[test]
    fn only_one_authorization_of_the_bearer_scheme_has_a_token() {
        for (value, token) in [
            (&b"Bearer abc"[..], Some("abc")),
            (b"bearer   a.b-c=", Some("a.b-c=")),
            (b"Basic abc", None),
            (b"Bearer", None),
            (b"Bearer \xFF", None),
        ] {
            let request = request("/", &[("authorization", value)]);
            assert_eq!(request.bearer_token(), token, "{value:?}");
        }
        let twice = [("authorization", &b"Bearer a"[..]); 2];
        assert_eq!(request("/", &twice).bearer_token(), None);
        assert_eq!(request("/", &[]).bearer_token(), None);
    }

    #[test]
    fn query_parameters_are_decoded_like_forms() {
        let target = "/?a=1&b%20c=x+y%2bz&d&e=%FF&f=%C3%A4&g=%4&h=%zz%&a=2&=5";
        let found = request(target, &[]);
        for (name, value) in [
            ("a", Some("1")),
            ("b c", Some("x y+z")),
            ("d", Some("")),
            ("e", None),
            ("f", Some("ä")),
            ("g", Some("%4")),
            ("h", Some("%zz%")),
            ("", Some("5")),
            ("missing", None),
        ] {
            assert_eq!(found.query_parameter(name).as_deref(), value, "{name}");
        }
        assert_eq!(request("/a=1", &[]).query_parameter("a"), None);
    }
}
