//! Selecting the proxy for a URL from environment variables, by the rules of curl.
//!
//! `ws://` uses the variables for `http://`, and `wss://` those for `https://`. `http_proxy` takes
//! precedence over `HTTP_PROXY`, and both over `all_proxy` and `ALL_PROXY`; a variable that is set
//! but empty means no proxy. `no_proxy` or `NO_PROXY` lists hosts to connect to without a proxy:
//! `*`, names (including their subdomains), addresses, and networks such as `10.0.0.0/8`.
//!
//! There are two differences from curl. First, `HTTP_PROXY` is used unless the process looks like a
//! CGI script, where any client can set it with a header; curl never uses it. Second, connections
//! to the local machine never use a proxy, because `localhost` would be a different machine there.

use std::net::IpAddr;

use linerate_proto::url::Host;

use super::{Proxy, ProxyError, Target, is_this_machine};

/// Returns the proxy for `target`, given the variables of the environment.
///
/// # Errors
/// The variable that applies does not have a valid proxy URL.
pub(super) fn proxy_for(
    target: &Target,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<Proxy>, ProxyError> {
    if is_this_machine(&target.host) {
        return Ok(None);
    }
    let names: &[&'static str] = match target.is_secure {
        true => &["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"],
        false if variable("REQUEST_METHOD").is_some() => &["http_proxy", "all_proxy", "ALL_PROXY"],
        false => &["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"],
    };
    let set = names.iter().find_map(|name| Some((*name, variable(name)?)));
    let Some((name, value)) = set.filter(|(_, value)| !value.is_empty()) else {
        return Ok(None);
    };
    let exceptions = variable("no_proxy").or_else(|| variable("NO_PROXY"));
    if exceptions.is_some_and(|list| is_excepted(&target.host, &list)) {
        return Ok(None);
    }
    match value.parse() {
        Ok(proxy) => Ok(Some(proxy)),
        Err(error) => Err(ProxyError::Environment {
            variable: name,
            error,
        }),
    }
}

/// Returns whether `list` contains `host`, so that it is reached without a proxy.
fn is_excepted(host: &Host, list: &str) -> bool {
    if list.trim() == "*" {
        return true;
    }
    let mut entries = list
        .split([',', ' ', '\t'])
        .filter(|entry| !entry.is_empty());
    match host {
        Host::Name(name) => entries.any(|entry| is_beneath(name, entry)),
        Host::Ipv4(address) => entries.any(|entry| is_within((*address).into(), entry)),
        Host::Ipv6(address) => entries.any(|entry| is_within((*address).into(), entry)),
    }
}

/// Returns whether `name` is `suffix` or a subdomain of it. A dot at either end of `suffix` and at
/// the end of `name` is ignored.
fn is_beneath(name: &str, suffix: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let suffix = suffix.trim_matches('.').to_ascii_lowercase();
    match name.strip_suffix(&suffix) {
        Some(rest) => !suffix.is_empty() && (rest.is_empty() || rest.ends_with('.')),
        None => false,
    }
}

/// Returns whether `entry` is `address`, or a network that contains it.
fn is_within(address: IpAddr, entry: &str) -> bool {
    let (network, bits) = match entry.split_once('/') {
        Some((network, bits)) => (network, Some(bits)),
        None => (entry, None),
    };
    let network = network.trim_start_matches('[').trim_end_matches(']');
    let Ok(network) = network.parse::<IpAddr>() else {
        return false;
    };
    let (address, network, width) = match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            (address.to_bits().into(), network.to_bits().into(), 32)
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => (address.to_bits(), network.to_bits(), 128),
        _ => return false,
    };
    let bits = match bits.map(str::parse::<u32>) {
        None => width,
        Some(Ok(bits)) if bits <= width => bits,
        Some(_) => return false,
    };
    let differing: u128 = address ^ network;
    differing.checked_shr(width - bits).unwrap_or(0) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dial::proxy::ProxyUrlError;

    /// Returns the host and port of the proxy for `url`.
    fn chosen(url: &str, variables: &[(&str, &str)]) -> Option<String> {
        let target = Target::parse(url).unwrap();
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let proxy = proxy_for(&target, variable).unwrap();
        proxy.map(|proxy| format!("{}:{}", proxy.host, proxy.port))
    }

    #[test]
    fn variables_count_in_the_order_of_curl() {
        let all = [
            ("http_proxy", "a:1"),
            ("HTTP_PROXY", "b:1"),
            ("https_proxy", "c:1"),
            ("HTTPS_PROXY", "d:1"),
            ("all_proxy", "e:1"),
            ("ALL_PROXY", "f:1"),
        ];
        for (url, order) in [
            ("ws://example.com/", [0, 1, 4, 5]),
            ("wss://example.com/", [2, 3, 4, 5]),
        ] {
            for skipped in 0..order.len() {
                let left: Vec<_> = order[skipped..].iter().map(|at| all[*at]).collect();
                assert_eq!(chosen(url, &left).as_deref(), Some(left[0].1), "{left:?}");
            }
        }
        assert_eq!(chosen("ws://example.com/", &all[2..4]), None);
        assert_eq!(chosen("ws://example.com/", &[]), None);
    }

    #[test]
    fn an_empty_variable_means_no_proxy() {
        let variables = [("http_proxy", ""), ("all_proxy", "e:1")];
        assert_eq!(chosen("ws://example.com/", &variables), None);
        assert_eq!(
            chosen("wss://example.com/", &variables).as_deref(),
            Some("e:1")
        );
    }

    #[test]
    fn a_header_of_a_cgi_request_names_no_proxy() {
        let variables = [("REQUEST_METHOD", "GET"), ("HTTP_PROXY", "evil:1")];
        assert_eq!(chosen("ws://example.com/", &variables), None);
        let variables = [("REQUEST_METHOD", "GET"), ("http_proxy", "a:1")];
        assert_eq!(
            chosen("ws://example.com/", &variables).as_deref(),
            Some("a:1")
        );
    }

    #[test]
    fn this_machine_is_not_behind_a_proxy() {
        for host in [
            "localhost",
            "a.localhost.",
            "127.9.9.9",
            "[::1]",
            "[::ffff:127.0.0.1]",
        ] {
            assert_eq!(
                chosen(&format!("ws://{host}/"), &[("http_proxy", "a:1")]),
                None,
                "{host}"
            );
        }
        assert!(chosen("ws://mylocalhost/", &[("http_proxy", "a:1")]).is_some());
    }

    #[test]
    fn hosts_in_the_list_are_reached_without_a_proxy() {
        for (host, list, expected) in [
            ("example.com", "example.com", true),
            ("EXAMPLE.com.", "other, .Example.com. ", true),
            ("a.example.com", "example.com", true),
            ("a.example.com", "x\t.example.com", true),
            ("aexample.com", "example.com", false),
            ("example.com", "a.example.com", false),
            ("example.com", "", false),
            ("example.com", ". ,", false),
            ("example.com", "*", true),
            ("example.com", "*.com", false),
            ("10.1.2.3", "10.1.2.3", true),
            ("10.1.2.3", "10.1.2.30", false),
            ("10.1.2.3", "10.0.0.0/8", true),
            ("11.1.2.3", "10.0.0.0/8", false),
            ("11.1.2.3", "0.0.0.0/0", true),
            ("10.1.2.3", "10.1.2.2/31", true),
            ("10.1.2.4", "10.1.2.2/31", false),
            ("10.1.2.3", "10.1.2.3/33", false),
            ("10.1.2.3", "10.0.0.0/x", false),
            ("10.1.2.3", "2.3", false),
            ("[2001:db8::1]", "2001:db8::/32", true),
            ("[2001:db8::1]", "[2001:db8::1]", true),
            ("[2001:db9::1]", "2001:db8::/32", false),
            ("[2001:db8::1]", "::/0", true),
            ("[2001:db8::1]", "0.0.0.0/0", false),
        ] {
            let target = Target::parse(&format!("ws://{host}/")).unwrap();
            assert_eq!(
                is_excepted(&target.host, list),
                expected,
                "{host} in {list:?}"
            );
        }
        let variables = [("http_proxy", "a:1"), ("NO_PROXY", "example.com")];
        assert_eq!(chosen("ws://example.com/", &variables), None);
        // If both are set, the lower-case variable is used.
        let variables = [("http_proxy", "a:1"), ("NO_PROXY", "*"), ("no_proxy", "b")];
        assert!(chosen("ws://example.com/", &variables).is_some());
    }

    #[test]
    fn a_variable_that_names_no_proxy_is_an_error_that_names_the_variable() {
        let target = Target::parse("wss://example.com/").unwrap();
        let variable = |name: &str| (name == "ALL_PROXY").then(|| "socks4://a".to_owned());
        let error = proxy_for(&target, variable).unwrap_err();
        assert!(matches!(
            error,
            ProxyError::Environment {
                variable: "ALL_PROXY",
                error: ProxyUrlError::Scheme
            }
        ));
        assert!(error.to_string().starts_with("ALL_PROXY: "), "{error}");
    }
}
