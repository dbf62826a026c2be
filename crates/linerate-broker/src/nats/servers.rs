//! The known servers: those in the URL, and those that the servers announce.

use async_nats::ServerAddr;
use rand::RngExt;

/// The maximum number of announced servers that are remembered.
const DISCOVERED_MAX: usize = 64;

/// The servers that may be dialled. Those in the URL come first.
#[derive(Debug)]
pub(super) struct Servers {
    all: Vec<ServerAddr>,
    configured: usize,
    at: usize,
}

impl Servers {
    /// Starts at a random server of the URL.
    pub(super) fn new(configured: &[ServerAddr]) -> Self {
        Self {
            all: configured.to_vec(),
            configured: configured.len(),
            at: rand::rng().random_range(0..configured.len().max(1)),
        }
    }

    /// Moves on to the next server.
    pub(super) fn advance(&mut self) {
        self.at = (self.at + 1) % self.all.len().max(1);
    }

    /// Replaces the announced servers with `urls`, a list of hosts with ports that a server
    /// announced.
    pub(super) fn set_announced(&mut self, scheme: &str, urls: &[String]) {
        let current = self.current().cloned();
        self.all.truncate(self.configured);
        for url in urls {
            let address = format!("{scheme}://{url}").parse::<ServerAddr>();
            if let Ok(address) = address
                && self.all.len() < self.configured + DISCOVERED_MAX
                && !self.all.iter().any(|known| is_same(known, &address))
            {
                self.all.push(address);
            }
        }
        // If the current server is no longer announced, continue with the first.
        let place = |current: &ServerAddr| self.all.iter().position(|one| is_same(one, current));
        self.at = current.as_ref().and_then(place).unwrap_or(0);
    }

    /// Returns the server to dial.
    pub(super) fn current(&self) -> Option<&ServerAddr> {
        self.all.get(self.at)
    }

    /// Returns all servers.
    pub(super) fn all(&self) -> &[ServerAddr] {
        &self.all
    }
}

fn is_same(one: &ServerAddr, other: &ServerAddr) -> bool {
    (one.host(), one.port()) == (other.host(), other.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn urls(servers: &Servers) -> Vec<&str> {
        servers.all().iter().map(ServerAddr::as_url_str).collect()
    }

    #[test]
    fn announced_servers_are_dialled_after_configured_ones() {
        let configured: Vec<ServerAddr> = vec!["nats://a:1".parse().unwrap()];
        let mut servers = Servers::new(&configured);
        let told = ["10.0.0.1:4222", "a:1", "no address at all", "[::1]:4222"];
        servers.set_announced("nats", &told.map(str::to_owned));
        assert_eq!(servers.all().len(), 3, "{:?}", urls(&servers));
        assert!(servers.current().is_some_and(|one| one.host() == "a"));
        servers.advance();
        assert!(
            servers
                .current()
                .is_some_and(|one| one.host() == "10.0.0.1")
        );
        // A server stays the current one while it is announced.
        servers.set_announced("nats", &["b:1", "10.0.0.1:4222"].map(str::to_owned));
        assert!(
            servers
                .current()
                .is_some_and(|one| one.host() == "10.0.0.1")
        );
        servers.set_announced("nats", &[]);
        assert_eq!(urls(&servers).len(), 1);
        assert!(servers.current().is_some_and(|one| one.host() == "a"));
    }

    #[test]
    fn at_most_the_allowed_number_is_remembered() {
        let mut servers = Servers::new(&["nats://a:1".parse().unwrap()]);
        let told: Vec<String> = (0..1_000).map(|port| format!("b:{}", port + 1)).collect();
        servers.set_announced("nats", &told);
        assert_eq!(servers.all().len(), 1 + DISCOVERED_MAX);
    }
}
