//! A server that was already running, which is treated as an echo server.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use linerate_harness::{cores, process::Process};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use thiserror::Error;
use url::Url;

use super::plan::Plan;
use super::subject::{RunningServer, Subject};
use crate::cell::{Cell, Load, Mode};
use crate::load::{LoadError, Probe, Target, Usage, Wire};
use crate::record::ContenderNote;
use crate::scenario::naming;
use crate::server::{ProcessTree, ServerError};

/// A server that accepts no connection within this time is considered unreachable.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// Name of the contender in records.
const NAME: &str = "server";

/// A server that is already running.
#[derive(Debug)]
pub struct Remote {
    url: Url,
    target: Target,
    process: Option<ProcessTree>,
}

impl Remote {
    /// Looks up the address of a `ws://` or `wss://` server. If `pid` is given and the process runs
    /// on this machine, its resource usage is measured.
    ///
    /// A load test against a server whose owner did not ask for it is an attack. Therefore only
    /// loopback addresses are accepted, unless `is_own` asserts that the caller owns the server.
    ///
    /// # Errors
    ///
    /// Returns an error if the URL is malformed, if its host is unknown, not allowed or
    /// unreachable, or if the process does not exist.
    pub fn find(
        url: &str,
        tls: Arc<ClientConfig>,
        pid: Option<u32>,
        is_own: bool,
    ) -> Result<Self, RemoteError> {
        let malformed = |reason: &str| RemoteError::Malformed {
            url: url.to_owned(),
            reason: reason.to_owned(),
        };
        let parsed = Url::parse(url).map_err(|error| malformed(&error.to_string()))?;
        let is_tls = match parsed.scheme() {
            "ws" => false,
            "wss" => true,
            _ => return Err(malformed("it begins with neither ws:// nor wss://")),
        };
        let host = parsed
            .host_str()
            .ok_or_else(|| malformed("it has no host"))?;
        let port = parsed
            .port_or_known_default()
            .ok_or_else(|| malformed("it has no port"))?;
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let addresses = look_up(bare, port)?;
        if let Some(&address) = addresses.iter().find(|it| !it.ip().is_loopback())
            && !is_own
        {
            return Err(RemoteError::Elsewhere {
                host: host.to_owned(),
                address,
            });
        }
        let address = listening(&addresses).ok_or_else(|| RemoteError::Deaf {
            host: host.to_owned(),
            port,
        })?;
        let name = ServerName::try_from(bare.to_owned())
            .map_err(|_| malformed("its host is not a valid server name for TLS"))?;
        let path = match parsed.query() {
            Some(query) => format!("{}?{query}", parsed.path()),
            None => parsed.path().to_owned(),
        };
        let target = Target {
            address,
            host: match parsed.port() {
                Some(port) => format!("{host}:{port}"),
                None => host.to_owned(),
            },
            path,
            wire: Wire::WebSocket,
            tls: is_tls.then_some((tls, name)),
        };
        let process = pid.map(find_process).transpose()?;
        Ok(Self {
            url: parsed,
            target,
            process,
        })
    }

    /// Makes all cells of a plan use TLS if the server does. Cells that differed only in that
    /// become one.
    pub fn adapt(&self, plan: &mut Plan) {
        if self.target.tls.is_none() {
            return;
        }
        let mut names = HashSet::new();
        plan.cells.retain_mut(|planned| {
            let cell = &mut planned.cell;
            if let Load::Echo(echo) = &mut cell.load {
                echo.tls = true;
                cell.name = naming::name(&cell.load);
                cell.title = naming::title(&cell.load);
            }
            names.insert(cell.id())
        });
    }

    /// Returns the description of the server for a record.
    pub fn note(&self) -> ContenderNote {
        let watched = match self.process {
            Some(_) => "its process was inspected",
            None => "its process was not inspected, so its CPU time is unknown",
        };
        ContenderNote {
            name: NAME.into(),
            title: self.url.to_string(),
            language: String::new(),
            version: String::new(),
            notes: format!("A server that was already running; {watched}."),
            absent: None,
        }
    }
}

impl Subject for Remote {
    fn name(&self) -> &str {
        NAME
    }

    fn lacks(&self, cell: &Cell) -> Option<String> {
        let lack = match &cell.load {
            Load::Echo(echo) if echo.tls && self.target.tls.is_none() => {
                "the server speaks ws://, not wss://"
            }
            Load::Idle(_) if self.process.is_none() => {
                "the server's process id (--pid) is needed to measure its memory"
            }
            Load::Echo(_) | Load::Idle(_) => return None,
            Load::Fanout(_) => "an echo server does not send messages to others",
            Load::Upload(_) => "an echo server does not acknowledge messages",
        };
        Some(lack.into())
    }

    fn may_decline(&self, error: &LoadError) -> bool {
        matches!(
            error,
            LoadError::DeflateDeclined | LoadError::DeflateParameters
        )
    }

    fn warm_up(&self) -> Duration {
        Duration::ZERO
    }

    fn start(&self, _mode: Mode) -> Result<Box<dyn RunningServer + '_>, ServerError> {
        Ok(Box::new(RemoteServer(self)))
    }
}

/// The server as a run uses it.
#[derive(Debug)]
struct RemoteServer<'a>(&'a Remote);

impl RunningServer for RemoteServer<'_> {
    fn target(&self) -> &Target {
        &self.0.target
    }

    fn wait_until_idle(&mut self) {
        if let Some(process) = self.0.process {
            process.wait_until_idle();
        }
    }

    fn end(&mut self) -> Option<String> {
        None
    }
}

impl Probe for RemoteServer<'_> {
    fn usage(&mut self) -> io::Result<Option<Usage>> {
        match self.0.process {
            Some(mut process) => process.usage(),
            None => Ok(None),
        }
    }

    fn reset_peak(&mut self) -> io::Result<()> {
        match self.0.process {
            Some(mut process) => process.reset_peak(),
            None => Ok(()),
        }
    }

    fn cores(&self) -> u32 {
        self.0.process.map_or(1, |process| process.cores())
    }
}

fn look_up(host: &str, port: u16) -> Result<Vec<SocketAddr>, RemoteError> {
    let addresses = (host, port).to_socket_addrs();
    let addresses = addresses.map_err(|source| RemoteError::Unknown {
        host: host.to_owned(),
        source,
    })?;
    Ok(addresses.collect())
}

/// Returns the first address that accepts a connection. Local servers usually listen on only one,
/// and `localhost` has two.
fn listening(addresses: &[SocketAddr]) -> Option<SocketAddr> {
    let mut addresses = addresses.iter();
    let found = addresses.find(|address| TcpStream::connect_timeout(address, CONNECT_MAX).is_ok());
    found.copied()
}

fn find_process(pid: u32) -> Result<ProcessTree, RemoteError> {
    let cores = cores::allowed_for(pid);
    // Peaks are reset by writing to this file.
    let is_ours = fs::OpenOptions::new()
        .write(true)
        .open(format!("/proc/{pid}/clear_refs"));
    match (cores, is_ours) {
        (Ok(cores), Ok(_)) => Ok(ProcessTree::new(Process::new(pid), cores.len() as u32)),
        _ => Err(RemoteError::Process { pid }),
    }
}

/// The reason why a server cannot be measured.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// It accepts no connections.
    #[error("connection refused by {host}:{port}")]
    Deaf {
        /// The host.
        host: String,
        /// The port.
        port: u16,
    },
    /// It is on another machine, and the caller did not assert that it may be put under load.
    #[error(
        "{host} is {address}, not this machine; a load test is an attack unless you own the server"
    )]
    Elsewhere {
        /// The host.
        host: String,
        /// Its address.
        address: SocketAddr,
    },
    /// The URL is invalid, or not one of a WebSocket server.
    #[error("{url:?} is not the URL of a WebSocket server: {reason}")]
    Malformed {
        /// The URL.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The process does not exist, or this user may not inspect it.
    #[error("cannot inspect process {pid}: it does not exist, or permission is denied")]
    Process {
        /// The process id.
        pid: u32,
    },
    /// The host cannot be looked up.
    #[error("cannot look up {host}")]
    Unknown {
        /// The host.
        host: String,
        /// The cause.
        source: io::Error,
    },
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use rustls::RootCertStore;

    use super::*;
    use crate::run::plan::PlannedCell;
    use crate::scenario::Scenario;

    fn find(url: &str, pid: Option<u32>) -> Result<Remote, RemoteError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        Remote::find(url, Arc::new(tls), pid, false)
    }

    fn listening(scheme: &str, path: &str) -> (TcpListener, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        (listener, format!("{scheme}://localhost:{port}{path}"))
    }

    #[test]
    fn a_url_becomes_a_target() {
        let (listener, url) = listening("wss", "/echo?a=b#c");
        let target = find(&url, None).unwrap().target;
        assert_eq!(target.address, listener.local_addr().unwrap());
        assert_eq!(target.path, "/echo?a=b");
        assert_eq!(target.host, format!("localhost:{}", target.address.port()));
        let (_, name) = target.tls.unwrap();
        assert_eq!(name, ServerName::try_from("localhost").unwrap());
    }

    #[test]
    fn what_can_not_be_measured_is_named() {
        let error = find("http://localhost/", None).unwrap_err().to_string();
        assert!(error.contains("neither ws:// nor wss://"), "{error}");
        // The address is reserved for documentation, and the error comes before any connection
        // attempt.
        let error = find("ws://192.0.2.1/", None).unwrap_err().to_string();
        assert!(error.contains("192.0.2.1:80, not this machine"), "{error}");
        let error = find("ws:", None).unwrap_err().to_string();
        assert!(error.contains("\"ws:\""), "{error}");
        let (listener, url) = listening("ws", "/");
        drop(listener);
        let error = find(&url, None).unwrap_err().to_string();
        assert!(error.contains("connection refused by"), "{error}");
        let (_listener, url) = listening("ws", "/");
        let error = find(&url, Some(u32::MAX)).unwrap_err().to_string();
        assert!(error.contains("4294967295"), "{error}");
    }

    #[test]
    fn cells_that_an_echo_server_can_not_serve_are_left_out() {
        let lacks = |url: &str, pid: Option<u32>| -> Vec<String> {
            let remote = find(url, pid).unwrap();
            let scenarios = Scenario::bundled().unwrap();
            let cells = scenarios.iter().flat_map(|scenario| &scenario.cells);
            let mut lacks: Vec<String> = cells
                .filter_map(|cell| remote.lacks(cell).map(|_| cell.scenario.clone()))
                .collect();
            lacks.dedup();
            lacks
        };
        let (_listener, url) = listening("ws", "/");
        assert_eq!(lacks(&url, None), ["codec", "fanout", "upload", "idle"]);
        let pid = Some(std::process::id());
        assert_eq!(lacks(&url, pid), ["codec", "fanout", "upload"]);
        let (_listener, url) = listening("wss", "/");
        assert_eq!(lacks(&url, pid), ["fanout", "upload"]);
    }

    #[test]
    fn over_tls_all_cells_are_and_each_is_once() {
        let scenarios = Scenario::bundled().unwrap();
        let codec = scenarios
            .iter()
            .find(|scenario| scenario.name == "codec")
            .unwrap();
        let plan = Plan {
            cells: codec
                .cells
                .iter()
                .map(|cell| PlannedCell {
                    cell: cell.clone(),
                    rounds: 1,
                })
                .collect(),
            budget: crate::scenario::Effort::Quick.budgets().each,
            scenarios: Vec::new(),
        };
        let (_listener, url) = listening("wss", "/");
        let mut adapted = plan.clone();
        find(&url, None).unwrap().adapt(&mut adapted);
        assert_eq!(adapted.cells.len(), plan.cells.len() / 2);
        let is_tls = |planned: &PlannedCell| planned.cell.name.ends_with("-tls");
        assert!(adapted.cells.iter().all(is_tls));
        let (_listener, url) = listening("ws", "/");
        let mut adapted = plan.clone();
        find(&url, None).unwrap().adapt(&mut adapted);
        assert_eq!(adapted.cells, plan.cells);
    }
}
