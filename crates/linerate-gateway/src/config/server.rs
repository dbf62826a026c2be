//! `[server]`: where is listened, and how many may connect.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use ipnet::IpNet;
use serde::Deserialize;

use super::{check::Check, unit};

/// Where is listened, and how many may connect.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ServerOptions {
    /// Address and port; port 0 picks a free one.
    pub listen: SocketAddr,
    /// Address and port of `/metrics`, `/live` and `/ready`, if they are not to be on `listen`.
    pub operations_listen: Option<SocketAddr>,
    /// Worker threads; 0 for one each core.
    pub workers: usize,
    /// Connections open at a time on this node.
    pub connections_max: usize,
    /// Connections open at a time from one address other than a loopback one.
    pub connections_per_address_max: usize,
    /// Connections open at a time of one user on this node; the anonymous user has no such bound.
    pub connections_per_user_max: usize,
    /// Connections accepted in a second; more wait.
    pub accepts_per_second_max: u32,
    /// Bytes that everything a peer can make grow may take together; 0 for half of this machine's memory.
    pub memory_bytes_max: u64,
    /// Bytes of the body of a request to the server API.
    pub request_bytes_max: usize,
    /// Origins whose pages may connect, `https://*.example.com` or `*` for all. Empty for pages of this
    /// server only.
    pub origins: Vec<String>,
    /// Names, besides IP addresses and `localhost`, under which the server answers: `*.example.com` for all below one,
    /// `*` for any. Empty allows no others where the server is open, and any where it has keys.
    pub hosts: Vec<String>,
    /// Whether `/echo` and `/counters` answer without the admin key on a server with keys.
    pub diagnostics: bool,
    /// Whether connections from `trusted_proxies` begin with a header of the PROXY protocol, version 2.
    pub proxy_protocol: bool,
    /// Addresses whose word on a client's address is taken.
    pub trusted_proxies: Vec<IpNet>,
    /// The certificate, if TLS is spoken.
    pub tls: Option<TlsOptions>,
    /// How the node says goodbye.
    pub drain: DrainOptions,
}

/// The certificate of the server. The files are read again when they change, and on SIGHUP.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TlsOptions {
    /// A PEM file with the certificate and those between it and the root.
    pub certificate: PathBuf,
    /// A PEM file with the private key.
    pub key: PathBuf,
}

/// How the node says goodbye.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct DrainOptions {
    /// How long it goes on accepting while `/ready` says no, so that a balancer can turn away.
    #[serde(rename = "delay_s", with = "unit::seconds")]
    pub delay: Duration,
    /// Over how long the connections are closed.
    #[serde(rename = "window_s", with = "unit::seconds")]
    pub window: Duration,
    /// Up to how many are closed within a second even if the window would allow for slower.
    pub connections_per_second_min: u32,
    /// How long after the last one has been told the process ends, whatever is open.
    #[serde(rename = "timeout_s", with = "unit::seconds")]
    pub timeout: Duration,
}

/// What there is at least if nothing is configured.
const DEFAULT_MEMORY_BYTES_MIN: u64 = 256 << 20;

/// With less, the buffers of a few connections would be too much.
const MEMORY_BYTES_MIN: u64 = 4 << 20;

impl ServerOptions {
    /// Returns the bytes of the memory budget: what is configured, or half of what this machine or the process's control
    /// group has, and 256 MiB at least.
    pub fn memory_budget_bytes(&self) -> u64 {
        match self.memory_bytes_max {
            0 => super::memory::available_bytes().map_or(DEFAULT_MEMORY_BYTES_MIN, |bytes| {
                (bytes / 2).max(DEFAULT_MEMORY_BYTES_MIN)
            }),
            bytes => bytes,
        }
    }

    /// Returns whether only this machine can connect.
    pub fn is_local(&self) -> bool {
        self.listen.ip().to_canonical().is_loopback()
    }

    pub(super) fn check(&self, check: &mut Check) {
        check.range("workers", self.workers, 0..=1_024);
        check.range("connections_max", self.connections_max, 1..=10_000_000);
        let per_address = self.connections_per_address_max;
        check.range("connections_per_address_max", per_address, 1..=10_000_000);
        let per_user = self.connections_per_user_max;
        check.range("connections_per_user_max", per_user, 1..=10_000_000);
        let accepts = self.accepts_per_second_max;
        check.range("accepts_per_second_max", accepts, 1..=1_000_000);
        check.range("request_bytes_max", self.request_bytes_max, 1_024..=1 << 30);
        if self.memory_bytes_max > 0 {
            let memory = self.memory_bytes_max;
            check.range("memory_bytes_max", memory, MEMORY_BYTES_MIN..=1 << 50);
        }
        check.range("origins", self.origins.len(), 0..=1_000);
        check.range("hosts", self.hosts.len(), 0..=1_000);
        for host in self.hosts.iter().filter(|host| !is_host(host)) {
            let because = "must be a name like \"linerate.example.com\" without scheme and port, \
                           \"*.example.com\" or \"*\"";
            check.refuse("hosts", host, because);
        }
        check.range("trusted_proxies", self.trusted_proxies.len(), 0..=1_000);
        if self.proxy_protocol && self.trusted_proxies.is_empty() {
            let because = "needs server.trusted_proxies: a header from anybody would be a lie";
            check.refuse("proxy_protocol", true, because);
        }
        check.section("drain", |check| self.drain.check(check));
    }
}

/// Returns whether a text can stand in `hosts`.
fn is_host(text: &str) -> bool {
    if text == "*" {
        return true;
    }
    let name = text.strip_prefix("*.").unwrap_or(text);
    let is_label = |label: &str| {
        let is_allowed = |char: char| char.is_ascii_alphanumeric() || "-_".contains(char);
        !label.is_empty() && label.chars().all(is_allowed)
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8_080)),
            operations_listen: None,
            workers: 0,
            connections_max: 10_000,
            connections_per_address_max: 1_000,
            connections_per_user_max: 100,
            accepts_per_second_max: 5_000,
            memory_bytes_max: 0,
            request_bytes_max: 1 << 20,
            origins: Vec::new(),
            hosts: Vec::new(),
            diagnostics: false,
            proxy_protocol: false,
            trusted_proxies: Vec::new(),
            tls: None,
            drain: DrainOptions::default(),
        }
    }
}

impl DrainOptions {
    fn check(&self, check: &mut Check) {
        check.range("delay_s", self.delay.as_secs(), 0..=600);
        check.range("window_s", self.window.as_secs(), 0..=3_600);
        let rate = self.connections_per_second_min;
        check.range("connections_per_second_min", rate, 1..=1_000_000);
        check.range("timeout_s", self.timeout.as_secs(), 1..=600);
    }
}

impl Default for DrainOptions {
    fn default() -> Self {
        Self {
            delay: Duration::ZERO,
            window: Duration::from_secs(20),
            connections_per_second_min: 100,
            timeout: Duration::from_secs(6),
        }
    }
}
