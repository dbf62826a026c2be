//! The origin of a request.

use std::net::IpAddr;

use linerate::handshake::Scheme;

/// Where a request came from, as the listener knows it. The listener adds it to the extensions of
/// each request.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// The address of the client; if the request came through trusted proxies, the one that they
    /// report.
    pub address: IpAddr,
    /// The scheme with which the request reached this server or a trusted proxy.
    pub scheme: Scheme,
    /// True if the peer of the socket is a program on this machine that is not a trusted proxy.
    pub is_near: bool,
}
