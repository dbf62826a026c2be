//! Hosts with an optional port (RFC 3986 §3.2.2, §3.2.3), as in `Host` and in origins.

use core::net::Ipv6Addr;
use core::str;

/// A host and an optional port, borrowed from the parsed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Authority<'a> {
    /// The name or address, including the brackets of an IPv6 address. Never empty.
    pub(super) host: &'a str,
    /// The port; `None` if it is absent or empty.
    pub(super) port: Option<u16>,
}

impl<'a> Authority<'a> {
    /// Parses `host`, `host:port` or `host:`, and rejects everything else, including users, lists
    /// and white space.
    ///
    /// Names consist of letters, digits and `-._~%`. RFC 3986 also allows `!$&'()*+,;=`, but no
    /// host has such a name, and a comma can be the result of joining two hosts.
    pub(super) fn parse(value: &'a [u8]) -> Option<Self> {
        let text = str::from_utf8(value).ok()?;
        let host_bytes = match text.strip_prefix('[') {
            Some(rest) => {
                let address = rest.split_once(']')?.0;
                address.parse::<Ipv6Addr>().ok()?;
                address.len() + 2
            }
            None => text.find(':').unwrap_or(text.len()),
        };
        let (host, rest) = text.split_at(host_bytes);
        let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte);
        if host.is_empty() || !(host.starts_with('[') || host.bytes().all(is_name_byte)) {
            return None;
        }
        let port = match rest.strip_prefix(':') {
            None if rest.is_empty() => None,
            None => return None,
            Some("") => None,
            // Check the digits, because `parse` also accepts a sign.
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(digits.parse().ok()?)
            }
            Some(_) => return None,
        };
        Some(Self { host, port })
    }

    /// Returns whether both name the same port of the same host; an absent port means
    /// `port_default`. The comparison of hosts ignores case (RFC 3986 §3.2.2) but is otherwise
    /// literal.
    pub(super) fn is_same(&self, other: &Self, port_default: u16) -> bool {
        self.host.eq_ignore_ascii_case(other.host)
            && self.port.unwrap_or(port_default) == other.port.unwrap_or(port_default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports_are_separated() {
        for (value, host, port) in [
            ("example.com", "example.com", None),
            ("example.com:", "example.com", None),
            ("example.com:8080", "example.com", Some(8080)),
            ("127.0.0.1:0080", "127.0.0.1", Some(80)),
            ("[::1]", "[::1]", None),
            ("[::1]:65535", "[::1]", Some(65535)),
        ] {
            assert_eq!(
                Authority::parse(value.as_bytes()),
                Some(Authority { host, port })
            );
        }
    }

    #[test]
    fn anything_else_is_not_an_authority() {
        for value in [
            "", ":80", "a b", "a,b", "a, b", "user@a", "a/b", "a:b", "a:+8", "a:65536", "a:80:80",
            "[::1", "[]", "[a]", "[::1]x", "::1", "é", "a\tb",
        ] {
            assert_eq!(Authority::parse(value.as_bytes()), None, "{value}");
        }
        assert_eq!(Authority::parse(b"\xFF"), None);
    }

    #[test]
    fn an_absent_port_is_the_default_one() {
        let parse = |value: &'static str| Authority::parse(value.as_bytes()).unwrap();
        assert!(parse("A.example").is_same(&parse("a.EXAMPLE:443"), 443));
        assert!(!parse("a.example").is_same(&parse("a.example:443"), 80));
        assert!(!parse("a.example").is_same(&parse("a.example."), 80));
    }
}
