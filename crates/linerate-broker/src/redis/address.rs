//! The address of a Redis service: the URL from the configuration.
//!
//! Errors name the part that is wrong but never quote it, because a password with a forgotten `%2F`
//! can end up in any part.

use std::fmt;

use percent_encoding::percent_decode_str;

/// The port of a Redis server.
const SERVER_PORT: u16 = 6_379;

/// The port of a sentinel.
const SENTINEL_PORT: u16 = 26_379;

/// The maximum number of hosts in a URL.
const HOSTS_MAX: usize = 64;

/// A Redis service.
///
/// | URL | meaning |
/// | --- | --- |
/// | `redis://[[user]:password@]host[:port][/database]` | one server |
/// | `redis+sentinel://[[user]:password@]host[:port][,…]/master[/database]` | the master that the sentinels know by this name |
/// | `redis+cluster://[[user]:password@]host[:port][,…]` | a cluster; the hosts are some of its nodes |
///
/// `rediss` instead of `redis` means TLS. The parameters are `sentinel_user` and
/// `sentinel_password`, and for a cluster `sharded=false`, which means that channels use plain
/// `PUBLISH`, which all nodes of a cluster carry, instead of `SPUBLISH`, which only one node
/// carries.
#[derive(Clone, Debug)]
pub(super) struct Address {
    pub(super) topology: Topology,
    pub(super) login: Login,
    pub(super) sentinel_login: Login,
    pub(super) database: i64,
    pub(super) is_tls: bool,
}

/// How the servers of a service work together.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Topology {
    Cluster {
        nodes: Vec<Host>,
        is_sharded: bool,
    },
    Sentinel {
        sentinels: Vec<Host>,
        master: String,
    },
    Single(Host),
}

/// A host and a port.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Host {
    pub(super) name: String,
    pub(super) port: u16,
}

/// A user and a password, each of which may be missing. `Debug` shows neither.
#[derive(Clone, Default, Eq, PartialEq)]
pub(super) struct Login {
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
}

/// The reason why a text is not the URL of a Redis service.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RedisUrlError {
    /// The database is not a number, or a cluster has one.
    #[error("database in the URL must be a number, and must be omitted for a cluster")]
    Database,
    /// A percent sign is not followed by two hexadecimal digits, or the decoded bytes are not
    /// UTF-8.
    #[error("user, password or parameter in the URL is not percent-encoded UTF-8")]
    Encoding,
    /// A host has no name.
    #[error("host {number} in the URL has no name")]
    Host {
        /// The position of the host in the URL, counted from 1.
        number: usize,
    },
    /// There are more hosts than allowed, or several hosts where only one is allowed.
    #[error("URL names {hosts} hosts; at most {hosts_max} are allowed")]
    Hosts {
        /// The number of hosts.
        hosts: usize,
        /// The maximum number of hosts.
        hosts_max: usize,
    },
    /// The name of the master that the sentinels are to be asked for is missing.
    #[error("sentinel URL must end with the name of the master, as in redis+sentinel://host/name")]
    Master,
    /// A parameter is unknown or has an invalid value.
    #[error(
        "parameter in the URL must be sentinel_user, sentinel_password, sharded=true or sharded=false"
    )]
    Parameter,
    /// A port is not a number from 1 to 65535.
    #[error("port of host {number} in the URL is not a number from 1 to 65535")]
    Port {
        /// The position of the host in the URL, counted from 1.
        number: usize,
    },
    /// The scheme is unknown.
    #[error("URL scheme must be redis or rediss, optionally followed by +sentinel or +cluster")]
    Scheme,
}

impl Address {
    /// Parses a URL.
    pub(super) fn parse(url: &str) -> Result<Self, RedisUrlError> {
        let (scheme, rest) = url.split_once("://").ok_or(RedisUrlError::Scheme)?;
        let (is_tls, kind) = scheme_of(scheme).ok_or(RedisUrlError::Scheme)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
        let parameters = Parameters::parse(query)?;
        let (topology, database) = match kind {
            Deployment::Cluster => (cluster(hosts, &parameters)?, path),
            Deployment::Sentinel => {
                let (master, database) = path.split_once('/').unwrap_or((path, ""));
                (sentinel(hosts, master)?, database)
            }
            Deployment::Single => (single(hosts)?, path),
        };
        let database = database_of(database)?;
        if kind == Deployment::Cluster && database != 0 {
            return Err(RedisUrlError::Database);
        }
        Ok(Self {
            topology,
            login: Login::parse(login)?,
            sentinel_login: parameters.sentinel_login,
            database,
            is_tls,
        })
    }
}

impl Login {
    fn parse(text: &str) -> Result<Self, RedisUrlError> {
        let (user, password) = text.split_once(':').unwrap_or((text, ""));
        let decoded = |text: &str| match text {
            "" => Ok(None),
            text => decode(text).map(Some),
        };
        Ok(Self {
            user: decoded(user)?,
            password: decoded(password)?,
        })
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Login(…)")
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.contains(':') {
            true => write!(f, "[{}]:{}", self.name, self.port),
            false => write!(f, "{}:{}", self.name, self.port),
        }
    }
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Deployment {
    Cluster,
    Sentinel,
    Single,
}

struct Parameters {
    sentinel_login: Login,
    is_sharded: bool,
}

impl Parameters {
    fn parse(query: &str) -> Result<Self, RedisUrlError> {
        let mut parameters = Self {
            sentinel_login: Login::default(),
            is_sharded: true,
        };
        for part in query.split('&').filter(|part| !part.is_empty()) {
            match part.split_once('=').ok_or(RedisUrlError::Parameter)? {
                ("sentinel_user", user) => parameters.sentinel_login.user = Some(decode(user)?),
                ("sentinel_password", password) => {
                    parameters.sentinel_login.password = Some(decode(password)?);
                }
                ("sharded", "true") => parameters.is_sharded = true,
                ("sharded", "false") => parameters.is_sharded = false,
                _ => return Err(RedisUrlError::Parameter),
            }
        }
        Ok(parameters)
    }
}

fn scheme_of(scheme: &str) -> Option<(bool, Deployment)> {
    let (base, suffix) = scheme.split_once('+').unwrap_or((scheme, ""));
    let is_tls = match base {
        "redis" => false,
        "rediss" => true,
        _ => return None,
    };
    let kind = match suffix {
        "" if !scheme.contains('+') => Deployment::Single,
        "cluster" => Deployment::Cluster,
        "sentinel" => Deployment::Sentinel,
        _ => return None,
    };
    Some((is_tls, kind))
}

fn single(hosts: &str) -> Result<Topology, RedisUrlError> {
    let mut hosts = hosts_of(hosts, SERVER_PORT, 1)?;
    hosts
        .pop()
        .map(Topology::Single)
        .ok_or(RedisUrlError::Host { number: 1 })
}

fn sentinel(hosts: &str, master: &str) -> Result<Topology, RedisUrlError> {
    if master.is_empty() {
        return Err(RedisUrlError::Master);
    }
    Ok(Topology::Sentinel {
        sentinels: hosts_of(hosts, SENTINEL_PORT, HOSTS_MAX)?,
        master: decode(master)?,
    })
}

fn cluster(hosts: &str, parameters: &Parameters) -> Result<Topology, RedisUrlError> {
    Ok(Topology::Cluster {
        nodes: hosts_of(hosts, SERVER_PORT, HOSTS_MAX)?,
        is_sharded: parameters.is_sharded,
    })
}

fn hosts_of(text: &str, port: u16, hosts_max: usize) -> Result<Vec<Host>, RedisUrlError> {
    let hosts = text.split(',').count();
    if hosts > hosts_max {
        return Err(RedisUrlError::Hosts { hosts, hosts_max });
    }
    let hosts = text.split(',').zip(1..);
    hosts
        .map(|(text, number)| host_of(text, port, number))
        .collect()
}

fn host_of(text: &str, default_port: u16, number: usize) -> Result<Host, RedisUrlError> {
    let (name, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (name, port) = rest.split_once(']').ok_or(RedisUrlError::Host { number })?;
            let port = match port {
                "" => None,
                port => Some(
                    port.strip_prefix(':')
                        .ok_or(RedisUrlError::Port { number })?,
                ),
            };
            (name, port)
        }
        None => match text.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (text, None),
        },
    };
    if name.is_empty() {
        return Err(RedisUrlError::Host { number });
    }
    let port = match port.map(str::parse) {
        None => default_port,
        Some(Ok(port)) if port > 0 => port,
        Some(_) => return Err(RedisUrlError::Port { number }),
    };
    let name = name.to_owned();
    Ok(Host { name, port })
}

fn database_of(text: &str) -> Result<i64, RedisUrlError> {
    match text {
        "" => Ok(0),
        text => match text.parse::<u16>() {
            Ok(database) => Ok(database.into()),
            Err(_) => Err(RedisUrlError::Database),
        },
    }
}

fn decode(text: &str) -> Result<String, RedisUrlError> {
    let is_hex = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_hexdigit);
    let bytes = text.as_bytes();
    let percents = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'%');
    for (at, _) in percents {
        if !is_hex(bytes.get(at + 1)) || !is_hex(bytes.get(at + 2)) {
            return Err(RedisUrlError::Encoding);
        }
    }
    let decoded = percent_decode_str(text).decode_utf8();
    decoded
        .map(|text| text.into_owned())
        .map_err(|_| RedisUrlError::Encoding)
}

#[cfg(test)]
mod tests {
    use super::{Address, Host, Login, RedisUrlError, Topology};

    fn host(name: &str, port: u16) -> Host {
        let name = name.to_owned();
        Host { name, port }
    }

    #[test]
    fn a_single_server_has_a_default_port_and_database() {
        let address = Address::parse("redis://localhost").unwrap();
        assert_eq!(address.topology, Topology::Single(host("localhost", 6_379)));
        assert_eq!(address.login, Login::default());
        assert_eq!((address.database, address.is_tls), (0, false));
        let address = Address::parse("rediss://[::1]:7000/3").unwrap();
        assert_eq!(address.topology, Topology::Single(host("::1", 7_000)));
        assert_eq!((address.database, address.is_tls), (3, true));
        assert_eq!(host("::1", 7_000).to_string(), "[::1]:7000");
    }

    #[test]
    fn users_and_passwords_are_percent_decoded() {
        let address = Address::parse("redis://gateway:s%40cret%2f@h").unwrap();
        assert_eq!(address.login.user.as_deref(), Some("gateway"));
        assert_eq!(address.login.password.as_deref(), Some("s@cret/"));
        let address = Address::parse("redis://:only@h").unwrap();
        assert_eq!(address.login.user, None);
        assert_eq!(address.login.password.as_deref(), Some("only"));
    }

    #[test]
    fn sentinels_are_queried_for_a_master() {
        let url = "redis+sentinel://:pw@a,b:7/my%20master/2?sentinel_user=u&sentinel_password=p%3d";
        let address = Address::parse(url).unwrap();
        let topology = Topology::Sentinel {
            sentinels: vec![host("a", 26_379), host("b", 7)],
            master: "my master".to_owned(),
        };
        assert_eq!(address.topology, topology);
        assert_eq!(address.sentinel_login.password.as_deref(), Some("p="));
        assert_eq!(address.database, 2);
    }

    #[test]
    fn a_cluster_is_sharded_by_default() {
        for (query, expected) in [
            ("", true),
            ("?sharded=true", true),
            ("?sharded=false", false),
        ] {
            let address = Address::parse(&format!("rediss+cluster://a:1,b:2,c{query}")).unwrap();
            let topology = Topology::Cluster {
                nodes: vec![host("a", 1), host("b", 2), host("c", 6_379)],
                is_sharded: expected,
            };
            assert_eq!(address.topology, topology);
        }
    }

    #[test]
    fn invalid_urls_have_distinct_errors_that_do_not_quote_them() {
        for (url, error) in [
            ("redis//h", RedisUrlError::Scheme),
            ("http://h", RedisUrlError::Scheme),
            ("redis+://h", RedisUrlError::Scheme),
            ("redis+shards://h", RedisUrlError::Scheme),
            ("redis://", RedisUrlError::Host { number: 1 }),
            ("redis://:hunter2/@h", RedisUrlError::Host { number: 1 }),
            ("redis://u:hunter2/x@h", RedisUrlError::Port { number: 1 }),
            ("redis://h:0", RedisUrlError::Port { number: 1 }),
            ("redis://h:65536", RedisUrlError::Port { number: 1 }),
            ("redis+cluster://a,:1", RedisUrlError::Host { number: 2 }),
            ("redis+cluster://a,[::1", RedisUrlError::Host { number: 2 }),
            (
                "redis+cluster://a,[::1]7",
                RedisUrlError::Port { number: 2 },
            ),
            (
                "redis://a,b",
                RedisUrlError::Hosts {
                    hosts: 2,
                    hosts_max: 1,
                },
            ),
            ("redis://h/hunter2", RedisUrlError::Database),
            ("redis://h/-1", RedisUrlError::Database),
            ("redis+cluster://h/1", RedisUrlError::Database),
            ("redis+sentinel://h", RedisUrlError::Master),
            ("redis://:hunter%2@h", RedisUrlError::Encoding),
            ("redis://:hunter%ff@h", RedisUrlError::Encoding),
            ("redis://:hunter?2@h", RedisUrlError::Host { number: 1 }),
            ("redis://h?hunter2", RedisUrlError::Parameter),
            ("redis://h?sharded=hunter2", RedisUrlError::Parameter),
        ] {
            let result = Address::parse(url);
            let found = result.map(|_| ()).unwrap_err();
            // Of two wrong parts, it does not matter which one the error names.
            if !url.contains("?2@") {
                assert_eq!(found, error, "{url}");
            }
            assert!(!found.to_string().contains("hunter"), "{url}");
        }
        let many = format!("redis+cluster://{}h", "h,".repeat(64));
        let error = Address::parse(&many).map(|_| ()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "URL names 65 hosts; at most 64 are allowed"
        );
    }

    #[test]
    fn a_password_is_not_printed() {
        let address = Address::parse("redis+sentinel://u:hunter2@h/m?sentinel_password=hunter3");
        let text = format!("{:?}", address.unwrap());
        assert!(!text.contains("hunter"), "{text}");
    }
}
