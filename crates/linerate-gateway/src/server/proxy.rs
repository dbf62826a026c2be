//! Client addresses reported by trusted proxies.

use std::{
    io,
    net::{IpAddr, SocketAddr},
};

use http::{HeaderMap, HeaderName, header::HeaderValue};
use linerate::handshake::Scheme;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Length of the fixed part of a PROXY protocol header, in bytes.
const FIXED_BYTES: usize = 16;
/// Maximum length of its addresses and additional fields, in bytes.
const VARIABLE_BYTES_MAX: usize = 4_096;
/// Maximum number of addresses in `X-Forwarded-For` that are examined.
const HOPS_MAX: usize = 32;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Reads a PROXY protocol header, version 2, and nothing after it. Returns the client's address;
/// `None` if the proxy connects on its own behalf, as health checks do.
pub(super) async fn read_header(
    stream: &mut (impl AsyncRead + Unpin),
) -> io::Result<Option<SocketAddr>> {
    let mut bytes = vec![0; FIXED_BYTES];
    stream.read_exact(&mut bytes).await?;
    let variable = usize::from(u16::from_be_bytes([bytes[14], bytes[15]]));
    // Check this before reading more, because an invalid header may claim any length.
    if !bytes.starts_with(ppp::v2::PROTOCOL_PREFIX) || variable > VARIABLE_BYTES_MAX {
        return Err(invalid());
    }
    bytes.resize(FIXED_BYTES + variable, 0);
    stream.read_exact(&mut bytes[FIXED_BYTES..]).await?;
    let header = ppp::v2::Header::try_from(bytes.as_slice()).map_err(|_| invalid())?;
    if header.command == ppp::v2::Command::Local {
        return Ok(None);
    }
    match header.addresses {
        ppp::v2::Addresses::IPv4(addresses) => Ok(Some(SocketAddr::from((
            addresses.source_address,
            addresses.source_port,
        )))),
        ppp::v2::Addresses::IPv6(addresses) => Ok(Some(SocketAddr::from((
            addresses.source_address,
            addresses.source_port,
        )))),
        _ => Ok(None),
    }
}

fn invalid() -> io::Error {
    let message = "not a PROXY protocol header, version 2";
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// Returns the client's address according to `X-Forwarded-For`: the first one from the right that
/// is not a trusted proxy's. Any client could have written those further to the left. Returns
/// `None` if the header contains no address.
pub(super) fn forwarded_for(
    headers: &HeaderMap,
    is_trusted: impl Fn(IpAddr) -> bool,
) -> Option<IpAddr> {
    let lines = headers.get_all(FORWARDED_FOR);
    let texts: Vec<&str> = lines.iter().filter_map(|line| line.to_str().ok()).collect();
    let hops = texts.iter().rev().flat_map(|line| line.rsplit(','));
    let mut nearest = None;
    for hop in hops.take(HOPS_MAX) {
        let Some(address) = address(hop.trim()) else {
            break;
        };
        nearest = Some(address);
        if !is_trusted(address) {
            break;
        }
    }
    nearest
}

/// Returns the scheme that the client used to connect to the proxy, if the proxy reports it.
pub(super) fn forwarded_scheme(headers: &HeaderMap) -> Option<Scheme> {
    let value = headers.get_all(FORWARDED_PROTO).iter().next_back();
    let text = value.map(HeaderValue::to_str)?.ok()?;
    match text.rsplit(',').next()?.trim() {
        text if text.eq_ignore_ascii_case("https") => Some(Scheme::Https),
        text if text.eq_ignore_ascii_case("http") => Some(Scheme::Http),
        _ => None,
    }
}

/// Parses an address with or without a port.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    let parsed = bare.parse::<IpAddr>().ok();
    let parsed = parsed.or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()));
    parsed.map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use http::HeaderMap;

    use super::{forwarded_for, read_header};

    fn client(lines: &[&str]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append("x-forwarded-for", line.parse().unwrap());
        }
        let is_trusted = |address: IpAddr| address.to_string().starts_with("10.");
        forwarded_for(&headers, is_trusted).map(|address| address.to_string())
    }

    #[test]
    fn the_rightmost_address_that_is_no_proxy_counts() {
        for (lines, expected) in [
            (&["192.0.2.1"][..], Some("192.0.2.1")),
            (&["6.6.6.6, 192.0.2.1"], Some("192.0.2.1")),
            (
                &["6.6.6.6, 192.0.2.1, 10.0.0.1,10.0.0.2"],
                Some("192.0.2.1"),
            ),
            (&["6.6.6.6", "192.0.2.1, 10.0.0.1"], Some("192.0.2.1")),
            (&["10.0.0.3, 10.0.0.1"], Some("10.0.0.3")),
            (&["[2001:db8::1]:443"], Some("2001:db8::1")),
            (&["192.0.2.1:1234"], Some("192.0.2.1")),
            (&["::ffff:192.0.2.1"], Some("192.0.2.1")),
            (&["192.0.2.1, unknown"], None),
            (&["192.0.2.1, unknown, 10.0.0.1"], Some("10.0.0.1")),
            (&[""], None),
            (&[], None),
        ] {
            assert_eq!(client(lines).as_deref(), expected, "{lines:?}");
        }
        let many = vec!["10.0.0.1"; 10_000].join(",");
        assert_eq!(client(&[&many]).as_deref(), Some("10.0.0.1"));
    }

    const PREFIX: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

    async fn read(rest: &[u8]) -> Result<(Option<String>, usize), String> {
        let bytes = [PREFIX, rest].concat();
        let mut input = bytes.as_slice();
        let read = read_header(&mut input).await;
        let address = read.map_err(|error| error.to_string())?;
        Ok((address.map(|address| address.to_string()), input.len()))
    }

    #[tokio::test]
    async fn a_proxy_header_is_read_up_to_its_end() {
        let ipv4 = b"\x21\x11\0\x0c\xc0\0\x02\x01\x7f\0\0\x01\x04\xd2\x1f\x90GET /";
        assert_eq!(
            read(ipv4).await.unwrap(),
            (Some("192.0.2.1:1234".into()), 5)
        );
        let with_field = b"\x21\x11\0\x10\xc0\0\x02\x01\x7f\0\0\x01\x04\xd2\x1f\x90\x04\0\x01\0G";
        assert_eq!(
            read(with_field).await.unwrap(),
            (Some("192.0.2.1:1234".into()), 1)
        );
        let local = b"\x20\0\0\0GET /";
        assert_eq!(read(local).await.unwrap(), (None, 5));
    }

    #[tokio::test]
    async fn what_is_no_proxy_header_is_refused() {
        for rest in [
            &b"\x21\x11\0\x0c\xc0\0"[..],
            b"\x31\x11\0\x0c\xc0\0\x02\x01\x7f\0\0\x01\x04\xd2\x1f\x90",
            b"\x21\x11\0\x04\xc0\0\x02\x01",
            b"\x21\x11\xff\xff\xc0\0\x02\x01",
            b"",
        ] {
            assert!(read(rest).await.is_err(), "{rest:?}");
        }
        let mut http = &b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n"[..];
        assert!(read_header(&mut http).await.is_err());
        let mut version_1 = &b"PROXY TCP4 192.0.2.1 127.0.0.1 1 2\r\n"[..];
        assert!(read_header(&mut version_1).await.is_err());
    }
}
