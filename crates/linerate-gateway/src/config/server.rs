//! `[server]`: listening addresses, connection limits and TLS.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use ipnet::IpNet;
use serde::Deserialize;

use super::{check::Check, unit};

/// Listening addresses, connection limits and TLS.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ServerOptions {
    /// Address and port to listen on; port 0 picks a free one.
    pub listen: SocketAddr,
    /// Address and port of `/metrics`, `/live` and `/ready`, if they are separate from `listen`.
    pub operations_listen: Option<SocketAddr>,
    /// Number of worker threads; 0 for one per core.
    pub workers: usize,
    /// Maximum number of open connections on this node.
    pub connections_max: usize,
    /// Maximum number of open connections from one address, except for loopback addresses.
    pub connections_per_address_max: usize,
    /// Maximum number of open connections of one user on this node. The anonymous user is not
    /// limited.
    pub connections_per_user_max: usize,
    /// Maximum number of connections accepted per second; more wait.
    pub accepts_per_second_max: u32,
    /// How long a peer may acknowledge nothing, neither data nor the probes of an idle connection,
    /// before the connection is closed.
    #[serde(rename = "dead_peer_timeout_s", with = "unit::seconds")]
    pub dead_peer_timeout: Duration,
    /// Maximum memory for everything that peers can make grow, in bytes; 0 for half of the memory
    /// of this machine.
    pub memory_bytes_max: u64,
    /// True if `linerate serve` uses huge pages of memory (2 MiB) on Linux. It is up to other
    /// programs whether they do; a gateway changes nothing about its process.
    pub huge_pages: bool,
    /// Maximum size of the body of a request to the server API, in bytes.
    pub request_bytes_max: usize,
    /// Origins whose pages may connect: `https://*.example.com` for subdomains, `*` for all. If the
    /// list is empty, only pages of this server may connect.
    pub origins: Vec<String>,
    /// Host names that the server accepts, in addition to IP addresses and `localhost`:
    /// `*.example.com` for subdomains, `*` for any. An empty list accepts no others if the server
    /// is open, and any if it has keys.
    pub hosts: Vec<String>,
    /// True if `/echo` and `/counters` do not require the admin key on a server with keys.
    pub diagnostics: bool,
    /// True if connections from `trusted_proxies` begin with a PROXY protocol header, version 2.
    pub proxy_protocol: bool,
    /// Addresses of proxies that are trusted to report the client's address.
    pub trusted_proxies: Vec<IpNet>,
    /// The Unix socket at which another process can take over the listeners of this one; `None`
    /// disables takeovers.
    pub takeover_socket: Option<PathBuf>,
    /// The executable that a process must run to take over; `None` for the one from which this
    /// process was started.
    pub takeover_executable: Option<PathBuf>,
    /// The TLS certificate; `None` disables TLS.
    pub tls: Option<TlsOptions>,
    /// Graceful shutdown.
    pub drain: DrainOptions,
}

/// The certificate of the server. The files are read again when they change, and on SIGHUP.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TlsOptions {
    /// A PEM file with the certificate chain: the server's certificate and the intermediate ones.
    pub certificate: PathBuf,
    /// A PEM file with the private key.
    pub key: PathBuf,
}

/// Graceful shutdown.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct DrainOptions {
    /// How long connections are still accepted while `/ready` fails, so that load balancers can
    /// react.
    #[serde(rename = "delay_s", with = "unit::seconds")]
    pub delay: Duration,
    /// The time over which the connections are closed.
    #[serde(rename = "window_s", with = "unit::seconds")]
    pub window: Duration,
    /// Minimum number of connections closed per second, even if the window allows fewer.
    pub connections_per_second_min: u32,
    /// The time after the last connection was told to close until the process exits, even if
    /// connections are still open.
    #[serde(rename = "timeout_s", with = "unit::seconds")]
    pub timeout: Duration,
}

/// Minimum memory budget if none is configured, in bytes.
const DEFAULT_MEMORY_BYTES_MIN: u64 = 256 << 20;

/// Minimum memory budget, in bytes; with less, the buffers of a few connections would exceed it.
const MEMORY_BYTES_MIN: u64 = 4 << 20;

/// Maximum length of the path of a Unix socket on Linux (108), less the terminator and the suffix
/// of the next process's socket.
const TAKEOVER_SOCKET_BYTES_MAX: usize = 103;

impl ServerOptions {
    /// Returns the memory budget in bytes: the configured one, or half of the memory of this
    /// machine or of the control group of the process, but at least 256 MiB.
    pub(crate) fn memory_budget_bytes(&self) -> u64 {
        match self.memory_bytes_max {
            0 => super::memory::available_bytes().map_or(DEFAULT_MEMORY_BYTES_MIN, |bytes| {
                (bytes / 2).max(DEFAULT_MEMORY_BYTES_MIN)
            }),
            bytes => bytes,
        }
    }

    /// Returns whether only this machine can connect.
    pub(crate) fn is_local(&self) -> bool {
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
        let dead_peer = self.dead_peer_timeout.as_secs();
        check.range("dead_peer_timeout_s", dead_peer, 9..=36_000);
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
            let because =
                "requires server.trusted_proxies; otherwise any client could forge this header";
            check.refuse("proxy_protocol", true, because);
        }
        self.check_takeover(check);
        check.section("drain", |check| self.drain.check(check));
    }

    fn check_takeover(&self, check: &mut Check) {
        for (key, path) in [
            ("takeover_socket", &self.takeover_socket),
            ("takeover_executable", &self.takeover_executable),
        ] {
            if let Some(path) = path
                && !path.is_absolute()
            {
                let because = "must be an absolute path, because processes with different working \
                               directories use it";
                check.refuse(key, path.display(), because);
            }
        }
        if let Some(path) = &self.takeover_socket
            && path.as_os_str().len() > TAKEOVER_SOCKET_BYTES_MAX
        {
            let because = format!(
                "has {} bytes; the path of this socket may have at most {TAKEOVER_SOCKET_BYTES_MAX}",
                path.as_os_str().len()
            );
            check.refuse("takeover_socket", path.display(), &because);
        }
        if let (Some(executable), None) = (&self.takeover_executable, &self.takeover_socket) {
            let because = "has no effect without server.takeover_socket";
            check.refuse("takeover_executable", executable.display(), because);
        }
    }
}

/// Returns whether a text is valid in `hosts`.
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

impl DrainOptions {
    fn check(&self, check: &mut Check) {
        check.range("delay_s", self.delay.as_secs(), 0..=600);
        check.range("window_s", self.window.as_secs(), 0..=3_600);
        let rate = self.connections_per_second_min;
        check.range("connections_per_second_min", rate, 1..=1_000_000);
        check.range("timeout_s", self.timeout.as_secs(), 1..=600);
    }
}
