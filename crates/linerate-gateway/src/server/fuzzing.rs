//! What stands in a request before it reaches a route, for fuzzers; compiled only for them.

use std::net::{IpAddr, SocketAddr};

use futures_util::FutureExt;
use http::{HeaderMap, HeaderValue, Request};

use super::{Hosts, proxy};
use crate::config::Config;

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

/// Returns whether a server without keys answers a request with this target and these lines of `Host`; `None` if it is
/// not a request.
pub fn answers<'a>(target: &[u8], hosts: impl IntoIterator<Item = &'a [u8]>) -> Option<bool> {
    let mut request = Request::get(target);
    for host in hosts {
        request = request.header("host", host);
    }
    let request = request.body(()).ok()?;
    Some(Hosts::new(&Config::default()).check(&request).is_ok())
}
