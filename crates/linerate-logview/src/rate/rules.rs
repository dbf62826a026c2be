//! Rules for servers and firewalls that enforce a limit and block the worst clients.
//!
//! Everything that comes from the log is untrusted: anyone who sends a request chooses its
//! `User-Agent`. Addresses are written from their parsed form. An agent is written with
//! letters, digits, spaces and `/_-` only, and every other character as a hexadecimal escape, so
//! that no agent can end a string or a line of a configuration.

mod caddy;
mod haproxy;
mod nftables;
mod nginx;

use std::fmt::Write;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::query::{RateKey, RateLimit, RuleFormat};

/// The most networks of autonomous systems in rules.
pub(crate) const NETWORKS_MAX: usize = 10_000;
/// The longest agent that rules can have, in bytes: one line of HAProxy's configuration has at most
/// 2,048, and an escape has four.
const AGENT_BYTES_MAX: usize = 256;

/// What rules are written of.
#[derive(Debug)]
pub(crate) struct RuleSet {
    pub(crate) limit: RateLimit,
    pub(crate) by: RateKey,
    /// The networks of the keys to block.
    pub(crate) networks: Vec<IpNet>,
    /// The agents to block.
    pub(crate) agents: Vec<Agent>,
    /// The networks of autonomous systems that exceed the limit, and the numbers of those.
    pub(crate) systems: Vec<(IpNet, u32)>,
    /// How many keys look like people and are not blocked.
    pub(crate) spared: u64,
    /// How many keys cannot be expressed and are not blocked.
    pub(crate) omitted: u64,
}

/// An agent that rules can express: printable ASCII of at most [`AGENT_BYTES_MAX`] bytes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Agent(String);

impl Agent {
    /// Returns `None` if rules cannot express the agent.
    pub(crate) fn new(agent: &[u8]) -> Option<Self> {
        let fits = (1..=AGENT_BYTES_MAX).contains(&agent.len());
        let is_printable = agent.iter().all(|it| (0x20..0x7F).contains(it));
        let text = str::from_utf8(agent).ok()?;
        (fits && is_printable).then(|| Self(text.to_owned()))
    }

    /// Returns the agent with all characters but letters, digits and some others as `\xHH`, for
    /// regular expressions and for HAProxy. `spaces` leaves spaces as they are.
    fn escaped(&self, spaces: bool) -> String {
        let mut escaped = String::with_capacity(self.0.len());
        for byte in self.0.bytes() {
            let is_plain = byte.is_ascii_alphanumeric() || b"/_-".contains(&byte);
            if is_plain || (spaces && byte == b' ') {
                escaped.push(byte.into());
            } else {
                write(&mut escaped, format_args!("\\x{byte:02x}"));
            }
        }
        escaped
    }
}

/// Returns the text of the rules, or `None` if the program cannot tell such clients apart.
pub(crate) fn rules(format: RuleFormat, set: &RuleSet) -> Option<String> {
    let mut text = String::new();
    write(&mut text, format_args!("# {}\n", title(set)));
    write(
        &mut text,
        format_args!(
            "# Written by linerate from an access log, for {}.\n",
            format.name()
        ),
    );
    if set.spared > 0 {
        write(
            &mut text,
            format_args!(
                "# Not blocked, because they look like people: {}.\n",
                set.spared
            ),
        );
    }
    if set.omitted > 0 {
        write(
            &mut text,
            format_args!(
                "# Not blocked, because they cannot be written in rules: {}.\n",
                set.omitted
            ),
        );
    }
    match format {
        RuleFormat::Caddy => caddy::write_rules(set, &mut text),
        RuleFormat::Haproxy => haproxy::write_rules(set, &mut text),
        RuleFormat::Nftables if set.by == RateKey::Agent => return None,
        RuleFormat::Nftables => nftables::write_rules(set, &mut text),
        RuleFormat::Nginx => nginx::write_rules(set, &mut text),
    }
    Some(text)
}

/// Returns the network of an address that limits count together: /24 of IPv4, /48 of IPv6.
pub(crate) fn network_of(address: IpAddr) -> IpNet {
    let prefix = match address {
        IpAddr::V4(_) => 24,
        IpAddr::V6(_) => 48,
    };
    IpNet::new_assert(address, prefix).trunc()
}

fn title(set: &RuleSet) -> String {
    let (requests, seconds) = (set.limit.requests(), set.limit.seconds());
    let of = match set.by {
        RateKey::Address => "an address",
        RateKey::Agent => "a user agent",
        RateKey::Asn => "an autonomous system",
        RateKey::Network => "a network (/24 of IPv4, /48 of IPv6)",
    };
    format!("At most {requests} requests in {seconds} s of {of}.")
}

/// Returns the requests per minute that the limit allows, rounded up, so that rules of programs
/// that count by the minute are not stricter than the limit.
fn per_minute(limit: RateLimit) -> u64 {
    (limit.requests() * 60).div_ceil(limit.seconds().into())
}

/// Appends formatted text.
fn write(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments)
        .expect("writing to a string never fails");
}

#[cfg(test)]
mod tests;
