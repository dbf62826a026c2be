//! The host names that the server accepts, as a protection against DNS rebinding.
//!
//! If the name of a page of `evil.example` suddenly resolves to an address of this machine, the
//! page has the same origin as this server, so that the origin proves nothing. But the request
//! still contains the attacker's host name. Therefore, if no key protects the server, every request
//! must name it by an IP address, as `localhost`, or by a name in `server.hosts`.

use std::net::IpAddr;

use arc_swap::ArcSwap;
use axum::{
    http::{HeaderMap, Request, StatusCode, Uri, header, uri::Authority},
    response::{IntoResponse, Response},
};

use crate::{clock::now, config::Config, log_limiter::LogLimiter};

/// Longer names are cut in the log, in bytes.
const LOGGED_BYTES_MAX: usize = 256;

static REFUSALS: LogLimiter = LogLimiter::new();

/// The host names that a listener accepts. They can be changed while it serves.
#[derive(Debug)]
pub(crate) struct Hosts(ArcSwap<Rule>);

#[derive(Debug)]
enum Rule {
    Any,
    /// IP addresses, `localhost` and these names.
    Named(Vec<String>),
}

/// Why the host name of a request is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(super) enum HostDenied {
    /// The name is missing, malformed, or there are several.
    #[error("request does not name exactly one host")]
    Ambiguous,
    /// The name is not accepted.
    #[error(
        "host name is not allowed: without keys in [auth], or with a list in server.hosts, this server accepts \
         only IP addresses, localhost and the names in server.hosts"
    )]
    Foreign,
}

impl Hosts {
    /// Returns the names for the listener for clients: any, unless the server is open or
    /// `server.hosts` is not empty.
    pub(crate) fn new(config: &Config) -> Self {
        Self(ArcSwap::from_pointee(Rule::of_clients(config)))
    }

    /// Returns the names for `server.operations_listen`, which never requires a key: any, unless
    /// only this machine can connect.
    pub(crate) fn of_operations(config: &Config) -> Self {
        let listen = config.server.operations_listen;
        let is_local = listen.is_some_and(|address| address.ip().to_canonical().is_loopback());
        Self(ArcSwap::from_pointee(match is_local {
            true => Rule::named(&config.server.hosts),
            false => Rule::Any,
        }))
    }

    /// Applies the names of another configuration.
    pub(crate) fn set(&self, config: &Config) {
        self.0.store(Rule::of_clients(config).into());
    }

    /// Checks the host name of a request.
    pub(super) fn check<B>(&self, request: &Request<B>) -> Result<(), HostDenied> {
        let rule = self.0.load();
        let Rule::Named(names) = &**rule else {
            return Ok(());
        };
        let authority = authority(request.uri(), request.headers());
        let authority = authority.ok_or(HostDenied::Ambiguous)?;
        let host = host(&authority);
        if is_this_machine(host) || names.iter().any(|name| matches(name, host)) {
            return Ok(());
        }
        if let Some(count) = REFUSALS.ask(now()) {
            tracing::warn!(
                host = &host[..host.floor_char_boundary(LOGGED_BYTES_MAX)],
                count,
                "requests for a host name that is not allowed were refused; if the name is this server's, add it to server.hosts"
            );
        }
        Err(HostDenied::Foreign)
    }
}

impl Rule {
    fn of_clients(config: &Config) -> Self {
        match config.is_open() || !config.server.hosts.is_empty() {
            true => Self::named(&config.server.hosts),
            false => Self::Any,
        }
    }

    fn named(names: &[String]) -> Self {
        match names.iter().any(|name| name == "*") {
            true => Self::Any,
            false => Self::Named(names.to_vec()),
        }
    }
}

impl IntoResponse for HostDenied {
    fn into_response(self) -> Response {
        let status = match self {
            Self::Ambiguous => StatusCode::BAD_REQUEST,
            Self::Foreign => StatusCode::FORBIDDEN,
        };
        (status, format!("{self}\n")).into_response()
    }
}

/// Returns whether a request names the server by an IP address or as `localhost`.
pub(crate) fn names_this_machine(headers: &HeaderMap) -> bool {
    authority(&Uri::default(), headers).is_some_and(|authority| is_this_machine(host(&authority)))
}

/// Returns the authority to which a request is sent; `None` if it is missing, invalid, or there are
/// several.
fn authority(uri: &Uri, headers: &HeaderMap) -> Option<Authority> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let named = match (hosts.next(), hosts.next()) {
        (None, _) => None,
        (Some(host), None) => Some(host.to_str().ok()?.parse::<Authority>().ok()?),
        (Some(_), Some(_)) => return None,
    };
    let authority = match (uri.authority(), named) {
        (Some(target), Some(named)) if *target != named => return None,
        (Some(authority), _) => authority.clone(),
        (None, named) => named?,
    };
    // RFC 9110 §7.2: "Host = uri-host [ ":" port ]". The parser also accepts user information, and
    // text after brackets.
    let rest = authority.as_str().strip_prefix(authority.host())?;
    let port = rest.strip_prefix(':').unwrap_or(rest);
    let is_port =
        rest.is_empty() || (rest != port && port.bytes().all(|byte| byte.is_ascii_digit()));
    is_port.then_some(authority)
}

/// Returns the name or address without the port, the brackets, and the trailing dot of a fully
/// qualified name.
fn host(authority: &Authority) -> &str {
    let host = authority.host();
    let bare = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    bare.unwrap_or(host.strip_suffix('.').unwrap_or(host))
}

fn is_this_machine(host: &str) -> bool {
    // RFC 6761 §6.3: names that end in ".localhost" resolve to the loopback address.
    matches("localhost", host) || matches("*.localhost", host) || host.parse::<IpAddr>().is_ok()
}

/// Returns whether `host` is `name`, or a subdomain if `name` begins with `*.`.
fn matches(name: &str, host: &str) -> bool {
    let Some(suffix) = name.strip_prefix('*') else {
        return name.eq_ignore_ascii_case(host);
    };
    let start = host.len().checked_sub(suffix.len());
    let end = start
        .filter(|start| *start > 0)
        .and_then(|start| host.get(start..));
    end.is_some_and(|end| end.eq_ignore_ascii_case(suffix))
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::{HostDenied, Hosts};
    use crate::config::Loader;

    fn hosts(config: &str) -> Hosts {
        let loader = Loader::new().with_text("test.toml", config);
        Hosts::new(&loader.load().unwrap())
    }

    fn judged(hosts: &Hosts, target: &str, headers: &[&str]) -> Result<(), HostDenied> {
        let mut request = Request::get(target);
        for host in headers {
            request = request.header("host", *host);
        }
        hosts.check(&request.body(()).unwrap())
    }

    #[test]
    fn an_open_server_answers_to_addresses_and_localhost_only() {
        let open = hosts("");
        for host in [
            "127.0.0.1:8080",
            "192.0.2.1",
            "[::1]:8080",
            "[2001:db8::1]",
            "localhost",
            "LOCALHOST:8080",
            "app.localhost:8080",
            "localhost.",
        ] {
            assert_eq!(judged(&open, "/", &[host]), Ok(()), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:8080",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "evillocalhost",
            ".localhost",
            "0x7f.1",
            "linerate",
        ] {
            assert_eq!(
                judged(&open, "/", &[host]),
                Err(HostDenied::Foreign),
                "{host}"
            );
        }
    }

    #[test]
    fn a_host_that_is_missing_doubled_or_contradicted_is_ambiguous() {
        let open = hosts("");
        for (target, headers) in [
            ("/", &[][..]),
            ("/", &["localhost", "evil.example"]),
            ("/", &["localhost", "localhost"]),
            ("/", &[""]),
            ("/", &["localhost@evil.example"]),
            ("/", &["evil.example@localhost"]),
            ("/", &["localhost, evil.example"]),
            ("/", &["[::1].evil.example"]),
            ("/", &["[::1]evil.example:8080"]),
            ("/", &["localhost:80.evil.example"]),
            ("http://evil.example/", &["localhost"]),
            ("http://localhost/", &["evil.example"]),
        ] {
            let judged = judged(&open, target, headers);
            assert_eq!(judged, Err(HostDenied::Ambiguous), "{target} {headers:?}");
        }
        assert_eq!(judged(&open, "http://localhost/", &["localhost"]), Ok(()));
        assert_eq!(judged(&open, "http://localhost/", &[]), Ok(()));
        let foreign = judged(&open, "http://evil.example/", &["evil.example"]);
        assert_eq!(foreign, Err(HostDenied::Foreign));
    }

    #[test]
    fn names_are_added_by_configuration_and_a_star_allows_all() {
        let named = hosts("[server]\nhosts = [\"linerate\", \"*.example.com\"]");
        for host in [
            "linerate:8080",
            "Linerate",
            "a.example.com",
            "localhost",
            "192.0.2.1",
        ] {
            assert_eq!(judged(&named, "/", &[host]), Ok(()), "{host}");
        }
        for host in [
            "example.com",
            ".example.com",
            "aexample.com",
            "evil.example",
        ] {
            assert!(judged(&named, "/", &[host]).is_err(), "{host}");
        }
        let any = hosts("[server]\nhosts = [\"*\"]");
        assert_eq!(judged(&any, "/", &["evil.example"]), Ok(()));
    }

    #[test]
    fn a_server_with_keys_answers_to_all_names_unless_some_are_listed() {
        let key = "[auth]\napi_key = \"0123456789abcdef\"\n";
        let keyed = hosts(key);
        assert_eq!(judged(&keyed, "/", &["realtime.example.com"]), Ok(()));
        let listed = hosts(&format!(
            "{key}[server]\nhosts = [\"realtime.example.com\"]"
        ));
        assert_eq!(judged(&listed, "/", &["realtime.example.com"]), Ok(()));
        assert!(judged(&listed, "/", &["evil.example"]).is_err());
        // An open server that other machines can reach is usually in a private network.
        let public = hosts("[auth]\nanonymous = true\n[server]\nlisten = \"0.0.0.0:80\"");
        assert!(judged(&public, "/", &["evil.example"]).is_err());
        assert_eq!(judged(&public, "/", &["192.0.2.1"]), Ok(()));
    }

    #[test]
    fn a_listener_for_monitoring_asks_for_a_name_where_only_this_machine_connects() {
        let config = |listen: &str| {
            let text = format!(
                "[auth]\napi_key = \"0123456789abcdef\"\n[server]\noperations_listen = \"{listen}\""
            );
            let config = Loader::new().with_text("test.toml", &text).load().unwrap();
            Hosts::of_operations(&config)
        };
        assert!(judged(&config("127.0.0.1:9090"), "/", &["evil.example"]).is_err());
        assert_eq!(
            judged(&config("127.0.0.1:9090"), "/", &["localhost:9090"]),
            Ok(())
        );
        assert_eq!(judged(&config("0.0.0.0:9090"), "/", &["node-1"]), Ok(()));
    }

    #[test]
    fn the_names_follow_the_configuration() {
        let hosts = hosts("");
        let text = "[server]\nhosts = [\"linerate\"]";
        hosts.set(&Loader::new().with_text("test.toml", text).load().unwrap());
        assert_eq!(judged(&hosts, "/", &["linerate"]), Ok(()));
    }
}
