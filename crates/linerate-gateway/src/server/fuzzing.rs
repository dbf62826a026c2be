//! What proxies say, for fuzzers; compiled only for them.

use std::net::{IpAddr, SocketAddr};

use futures_util::FutureExt;
use http::{HeaderMap, HeaderValue};

use super::proxy;

/// Reads a header of the PROXY protocol. Returns the address and how many bytes were read, `None` if it is none.
pub fn proxy_header(input: &[u8]) -> Option<(Option<SocketAddr>, usize)> {
    let mut rest = input;
    let read = proxy::read_header(&mut rest).now_or_never();
    let address = read.expect("memory never waits").ok()?;
    Some((address, input.len() - rest.len()))
}

/// Returns what lines of `X-Forwarded-For` say, if addresses of this machine are trusted.
pub fn forwarded_for<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Option<IpAddr> {
    let mut headers = HeaderMap::new();
    for line in lines {
        if let Ok(value) = HeaderValue::from_bytes(line) {
            headers.append("x-forwarded-for", value.clone());
            headers.append("x-forwarded-proto", value);
        }
    }
    _ = proxy::forwarded_scheme(&headers);
    proxy::forwarded_for(&headers, |address| address.is_loopback())
}
