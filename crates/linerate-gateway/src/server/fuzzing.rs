//! The parts of a request that are checked before it reaches a route, for fuzzing; compiled only
//! for fuzzers.

use std::net::{IpAddr, SocketAddr};

use futures_util::FutureExt;
use http::{HeaderMap, HeaderValue, Request};

use super::{Hosts, proxy};
use crate::config::Config;

/// Reads a PROXY protocol header. Returns the address and the number of bytes read, or `None` if it
/// is not a header.
pub(crate) fn proxy_header(input: &[u8]) -> Option<(Option<SocketAddr>, usize)> {
    let mut rest = input;
    let read = proxy::read_header(&mut rest).now_or_never();
    let address = read.expect("memory never waits").ok()?;
    Some((address, input.len() - rest.len()))
}

/// Returns the address in lines of `X-Forwarded-For`, trusting proxies on this machine.
pub(crate) fn forwarded_for<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Option<IpAddr> {
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

/// Returns whether a server without keys answers a request with this target and these `Host` lines;
/// `None` if it is not a valid request.
pub(crate) fn answers<'a>(
    target: &[u8],
    hosts: impl IntoIterator<Item = &'a [u8]>,
) -> Option<bool> {
    let mut request = Request::get(target);
    for host in hosts {
        request = request.header("host", host);
    }
    let request = request.body(()).ok()?;
    Some(Hosts::new(&Config::default()).check(&request).is_ok())
}
