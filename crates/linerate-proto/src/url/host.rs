//! Hosts in URLs (RFC 3986 §3.2.2).

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};

use iri_string::percent_encode::decode::decode_whatwg_bytes;

use super::UrlError;

/// The host of a URL. RFC 3986 has no other kinds in use.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "RFC 3986 §3.2.2 has no other kinds in use"
)]
pub enum Host {
    /// An IPv4 address.
    Ipv4(Ipv4Addr),
    /// An IPv6 address.
    Ipv6(Ipv6Addr),
    /// A name in lower case, which is ASCII.
    Name(String),
}

impl Host {
    /// Parses a name, an IPv4 address, or an IPv6 address in brackets.
    ///
    /// # Errors
    ///
    /// Fails if `text` is none of these.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let in_brackets = text
            .strip_prefix('[')
            .and_then(|text| text.strip_suffix(']'));
        if let Some(address) = in_brackets {
            let address = address.parse().map(Self::Ipv6);
            return address.map_err(|_| UrlError::HostInvalid);
        }
        let name = name(
            decode_whatwg_bytes(text.as_bytes())
                .into_bytes()
                .into_owned(),
        )?;
        let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        if name.is_empty() {
            return Err(UrlError::HostMissing);
        }
        if !name.bytes().all(is_name_byte) {
            return Err(UrlError::HostInvalid);
        }
        // The resolver of the system takes `127.1` and `0x7f000001` for addresses, so they must not
        // pass as names.
        if ends_in_number(&name) {
            let address = name.parse().map(Self::Ipv4);
            return address.map_err(|_| UrlError::HostInvalid);
        }
        Ok(Self::Name(name))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ipv4(address) => address.fmt(f),
            Self::Ipv6(address) => write!(f, "[{address}]"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// Returns a name in ASCII and in lower case.
fn name(bytes: Vec<u8>) -> Result<String, UrlError> {
    let mut name = match bytes.is_ascii() {
        true => String::from_utf8(bytes).map_err(|_| UrlError::HostInvalid)?,
        false => ascii_form(&bytes)?,
    };
    name.make_ascii_lowercase();
    Ok(name)
}

#[cfg(feature = "idna")]
fn ascii_form(name: &[u8]) -> Result<String, UrlError> {
    let form = idna::domain_to_ascii_cow(name, idna::AsciiDenyList::URL);
    form.map(Into::into).map_err(|_| UrlError::HostInvalid)
}

#[cfg(not(feature = "idna"))]
fn ascii_form(_: &[u8]) -> Result<String, UrlError> {
    Err(UrlError::HostNotAscii)
}

/// Returns whether the last label of `name` is a decimal or hexadecimal number.
fn ends_in_number(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_decimal = !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit());
    let hexadecimal = last.strip_prefix("0x");
    is_decimal || hexadecimal.is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn hosts_are_names_or_addresses() {
        for (text, expected) in [
            ("Example.COM.", Host::Name("example.com.".into())),
            ("my_host~1", Host::Name("my_host~1".into())),
            ("1.example", Host::Name("1.example".into())),
            ("ex%61mple", Host::Name("example".into())),
            ("127.0.0.1", Host::Ipv4(Ipv4Addr::LOCALHOST)),
            ("[::1]", Host::Ipv6(Ipv6Addr::LOCALHOST)),
        ] {
            let host = Host::parse(text);
            assert_eq!(host, Ok(expected), "{text}");
        }
        assert_eq!(Host::parse("[::0:1]").unwrap().to_string(), "[::1]");
    }

    #[test]
    fn other_hosts_are_refused() {
        for text in [
            "127.1",
            "0x7f.0.0.1",
            "0x7f000001",
            "2130706433",
            "127.0.0.01",
            "127.0.0.1.",
            "a.0x",
            "256.0.0.1",
            "::1",
            "[::1",
            "[v1.a]",
            "[fe80::1%25eth0]",
            "a b",
            "a%2Fb",
            "a,b",
            "a:b",
        ] {
            assert_eq!(Host::parse(text), Err(UrlError::HostInvalid), "{text}");
        }
        assert_eq!(Host::parse(""), Err(UrlError::HostMissing));
    }

    #[cfg(not(feature = "idna"))]
    #[test]
    fn names_must_be_ascii() {
        let error = Host::parse("b\u{fc}cher.example");
        assert_eq!(error, Err(UrlError::HostNotAscii));
    }

    #[cfg(feature = "idna")]
    #[test]
    fn names_are_converted_to_ascii() {
        for text in ["B\u{dc}CHER.example", "b%C3%BCcher\u{3002}example"] {
            let expected = Host::Name("xn--bcher-kva.example".into());
            assert_eq!(Host::parse(text), Ok(expected), "{text}");
        }
        assert_eq!(Host::parse("%FF"), Err(UrlError::HostInvalid));
    }
}
