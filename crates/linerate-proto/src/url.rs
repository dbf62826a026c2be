//! WebSocket URLs (RFC 6455 §3).

mod authority;
mod error;
mod host;

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt::{self, Write};

use iri_string::format::ToDedicatedString;
use iri_string::types::{UriAbsoluteString, UriReferenceStr, UriStr, UriString};

pub use authority::{Authority, Credentials};
pub use error::UrlError;
pub use host::Host;

/// A URL that starts with `ws://` or `wss://`.
///
/// The syntax is that of RFC 3986. As in browsers, white space around the URL is ignored,
/// characters that a URL cannot contain (such as spaces, quotes and letters that are not ASCII) are
/// percent-encoded, and dot segments are removed. Three things that browsers repair are refused: a
/// backslash in place of a slash, IPv4 addresses that are not four decimal numbers, and missing
/// slashes before the host. Programs disagree about the host of such a URL.
///
/// ```
/// use linerate_proto::url::Url;
///
/// # fn main() -> Result<(), linerate_proto::url::UrlError> {
/// let url = Url::parse("wss://Example.com:443/a/../chat room?lang=de")?;
/// assert!(url.is_secure());
/// assert_eq!(url.port(), 443);
/// assert_eq!(url.authority(), "example.com");
/// assert_eq!(url.path_and_query(), "/chat%20room?lang=de");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Url {
    uri: UriAbsoluteString,
    is_secure: bool,
    authority: Authority,
}

impl Url {
    /// Parses a URL.
    ///
    /// # Errors
    ///
    /// Fails if `text` is not a WebSocket URL.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let text = encode(text.trim_ascii());
        let uri = UriStr::new(&text).map_err(|_| UrlError::Malformed)?;
        let is_secure = match &*uri.scheme_str().to_ascii_lowercase() {
            "ws" => false,
            "wss" => true,
            _ => return Err(UrlError::Scheme),
        };
        // "Fragment identifiers are meaningless in the context of WebSocket URIs and MUST NOT be
        // used on these URIs".
        if uri.fragment_str().is_some() {
            return Err(UrlError::Fragment);
        }
        // A URL that is resolved against itself loses its dot segments, and nothing else changes.
        let resolved = AsRef::<UriReferenceStr>::as_ref(uri).resolve_against(uri.to_absolute());
        Self::of(resolved.to_dedicated_string(), is_secure)
    }

    /// Resolves a reference relative to this URL (RFC 3986 §5.2), such as the location of a
    /// redirect. `http` means `ws`, `https` means `wss`, and a fragment is ignored.
    ///
    /// # Errors
    ///
    /// Fails if the result is not a WebSocket URL.
    pub fn join(&self, reference: &str) -> Result<Self, UrlError> {
        let reference = encode(reference.trim_ascii());
        let reference = UriReferenceStr::new(&reference).map_err(|_| UrlError::Malformed)?;
        let uri = reference.resolve_against(&self.uri).to_dedicated_string();
        let is_secure = match &*uri.scheme_str().to_ascii_lowercase() {
            "http" | "ws" => false,
            "https" | "wss" => true,
            _ => return Err(UrlError::Scheme),
        };
        Self::of(uri, is_secure)
    }

    fn of(uri: UriString, is_secure: bool) -> Result<Self, UrlError> {
        let uri = uri.into_absolute();
        let authority = Authority::of(uri.authority_components())?;
        Ok(Self {
            uri,
            is_secure,
            authority,
        })
    }

    /// Returns whether the scheme is `wss`.
    pub fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// Returns the host.
    pub fn host(&self) -> &Host {
        &self.authority.host
    }

    /// Returns the port; by default, 80 for `ws` and 443 for `wss`.
    pub fn port(&self) -> u16 {
        self.authority.port.unwrap_or(self.port_default())
    }

    /// Returns the host, followed by the port unless it is the default of the scheme.
    pub fn authority(&self) -> String {
        let host = self.host();
        match self.port() {
            port if port == self.port_default() => host.to_string(),
            port => format!("{host}:{port}"),
        }
    }

    /// Returns the resource name of the request: the path, which is `/` if the URL has none, and
    /// the query.
    pub fn path_and_query(&self) -> String {
        let path = match self.uri.path_str() {
            "" => "/",
            path => path,
        };
        match self.uri.query_str() {
            Some(query) => format!("{path}?{query}"),
            None => path.to_owned(),
        }
    }

    /// Returns the user and the password, if any.
    pub fn credentials(&self) -> Option<&Credentials> {
        self.authority.credentials.as_ref()
    }

    fn port_default(&self) -> u16 {
        if self.is_secure { 443 } else { 80 }
    }
}

impl fmt::Debug for Url {
    /// Omits the credentials, and the query, which may contain some.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Url")
            .field("is_secure", &self.is_secure)
            .field("authority", &self.authority)
            .field("path", &self.uri.path_str())
            .finish_non_exhaustive()
    }
}

/// Percent-encodes the characters that are not allowed in a URL. A backslash stays, so that it is
/// refused.
fn encode(text: &str) -> String {
    let bytes = text.as_bytes();
    let authority = text.find("//").map(|slashes| slashes + 2);
    let authority = authority.filter(|start| !text[..start - 2].contains(['/', '?', '#']));
    let authority_end = authority.map_or(0, |start| {
        let end = text[start..].find(['/', '?', '#']);
        end.map_or(text.len(), |end| start + end)
    });
    // A user or a password may contain an unencoded `@`, so the last one ends them.
    let user_end = text[..authority_end].rfind('@').unwrap_or(0);
    let mut encoded = String::with_capacity(text.len());
    for (offset, &byte) in bytes.iter().enumerate() {
        let is_allowed = match byte {
            b'%' => {
                let digits = bytes.get(offset + 1..offset + 3);
                digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            }
            b'@' => offset >= user_end,
            b'[' | b']' => offset < authority_end,
            b'"' | b'<' | b'>' | b'^' | b'`' | b'{' | b'|' | b'}' => false,
            _ => byte.is_ascii_graphic(),
        };
        if is_allowed {
            encoded.push(char::from(byte));
        } else {
            write!(encoded, "%{byte:02X}").expect("a string grows as needed");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use proptest::prelude::*;

    use super::*;
    use crate::handshake::ClientHandshake;

    /// Returns the scheme, the host and port, and the rest of a URL.
    fn shown(url: &Url) -> String {
        let scheme = if url.is_secure() { "wss" } else { "ws" };
        format!("{scheme}://{}{}", url.authority(), url.path_and_query())
    }

    fn parsed(text: &str) -> Result<String, UrlError> {
        Url::parse(text).map(|url| shown(&url))
    }

    #[test]
    fn a_url_has_a_host_a_port_and_a_path() {
        let url = Url::parse("ws://example.com/chat?room=1").unwrap();
        assert_eq!((url.is_secure(), url.port()), (false, 80));
        assert_eq!(url.authority(), "example.com");
        assert_eq!(url.path_and_query(), "/chat?room=1");

        let url = Url::parse("wss://[::1]:8443").unwrap();
        assert_eq!((url.is_secure(), url.port()), (true, 8443));
        assert_eq!(url.authority(), "[::1]:8443");
        assert_eq!(url.path_and_query(), "/");
    }

    #[test]
    fn urls_are_written_as_browsers_write_them() {
        for (text, expected) in [
            (" ws://Example.COM:80\n", "ws://example.com/"),
            ("WSS://example.com:443?x", "wss://example.com/?x"),
            ("ws://h:443/", "ws://h:443/"),
            ("ws://h:/", "ws://h/"),
            ("ws://h:0080/", "ws://h/"),
            ("ws://h/a/./b/../c/", "ws://h/a/c/"),
            ("ws://h/../..", "ws://h/"),
            ("ws://h/a b?c d", "ws://h/a%20b?c%20d"),
            ("ws://h/\u{e4}?\u{20ac}", "ws://h/%C3%A4?%E2%82%AC"),
            ("ws://h/%7ea%2fb?50%", "ws://h/%7ea%2fb?50%25"),
            (
                "ws://h/?q={\"a\":[1|2]}",
                "ws://h/?q=%7B%22a%22:%5B1%7C2%5D%7D",
            ),
            ("ws://h/?u=http://[::1]/", "ws://h/?u=http://%5B::1%5D/"),
            ("ws://[2001:DB8:0::1]/", "ws://[2001:db8::1]/"),
            ("ws://xn--bcher-kva.example/", "ws://xn--bcher-kva.example/"),
        ] {
            assert_eq!(parsed(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn other_urls_are_refused() {
        for (text, expected) in [
            ("http://example.com/", UrlError::Scheme),
            ("example.com:80/", UrlError::Scheme),
            ("example.com", UrlError::Malformed),
            ("//example.com/", UrlError::Malformed),
            ("", UrlError::Malformed),
            ("ws://example.com/#top", UrlError::Fragment),
            ("ws://example.com/#", UrlError::Fragment),
            ("ws:example.com", UrlError::HostMissing),
            ("ws:///x", UrlError::HostMissing),
            ("ws://:80/", UrlError::HostMissing),
            ("ws://user@/", UrlError::HostMissing),
            ("ws://h:65536/", UrlError::PortInvalid),
            ("ws://h:x/", UrlError::Malformed),
            ("ws://[::1/", UrlError::Malformed),
            ("ws://a\\@b/", UrlError::Malformed),
            ("ws://h/a\\b", UrlError::Malformed),
        ] {
            assert_eq!(parsed(text), Err(expected), "{text}");
        }
    }

    #[test]
    fn references_are_relative_to_a_url() {
        for (base, reference, expected) in [
            ("ws://a/b/c?d", "e", "ws://a/b/e"),
            ("ws://a:81/b/c", "/e?f#g", "ws://a:81/e?f"),
            ("ws://a/b?c", "?d", "ws://a/b?d"),
            ("ws://a", "../e f[]", "ws://a/e%20f%5B%5D"),
            ("wss://a/", "//b:444/", "wss://b:444/"),
            ("ws://a/", "HTTP://b/", "ws://b/"),
            ("ws://a/", "https://b:443/", "wss://b/"),
        ] {
            let joined = Url::parse(base).unwrap().join(reference);
            let joined = joined.map(|url| shown(&url));
            assert_eq!(joined.as_deref(), Ok(expected), "{base} {reference}");
        }
        let base = Url::parse("ws://a/").unwrap();
        assert_eq!(base.join("ftp://b/"), Err(UrlError::Scheme));
        assert_eq!(base.join("ws://["), Err(UrlError::Malformed));
    }

    #[test]
    fn credentials_are_decoded_and_not_shown() {
        for (text, user, password) in [
            ("ws://us%20er:p%3Ass@h/", "us er", "p:ss"),
            ("ws://user@h/", "user", ""),
            ("ws://u@v:p@ss@h/", "u@v", "p@ss"),
            ("ws://u:50%\u{e4}:@h/", "u", "50%\u{e4}:"),
        ] {
            let url = Url::parse(text).unwrap();
            let credentials = url.credentials().unwrap();
            assert_eq!(credentials.user, user.as_bytes(), "{text}");
            assert_eq!(credentials.password, password.as_bytes(), "{text}");
            assert_eq!(url.authority(), "h");
        }
        let url = Url::parse("ws://secret:secret@h/?secret").unwrap();
        assert!(!format!("{url:?}").contains("secret"), "{url:?}");
        assert_eq!(Url::parse("ws://@h/").unwrap().credentials(), None);
    }

    proptest! {
        #[test]
        fn a_request_can_be_sent_to_each_url(text in "(ws|wss)://[ -~\u{e4}]{0,40}") {
            if let Ok(url) = Url::parse(&text) {
                let request = ClientHandshake::new(&url.authority(), &url.path_and_query(), [0; 16]);
                prop_assert!(request.is_ok(), "{text}");
                prop_assert_eq!(url.join(""), Ok(url));
            }
        }
    }
}
