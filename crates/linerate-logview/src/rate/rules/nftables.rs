//! nftables: sets of those to block, and a limit on new connections.
//!
//! The kernel sees connections and not requests. A client has at most as many connections as
//! requests, so the limit is never stricter than the one that was asked for.

use ipnet::IpNet;

use super::{RuleSet, per_minute, write};
use crate::query::RateKey;

pub(super) fn write_rules(set: &RuleSet, text: &mut String) {
    text.push_str(
        "# Load it with nft -f. The limit is on new connections, because the kernel does not see \
         requests.\n\
         table inet linerate {\n",
    );
    let is_v4 = |it: &&IpNet| matches!(it, IpNet::V4(_));
    let (v4, v6): (Vec<_>, Vec<_>) = set.networks.iter().partition(is_v4);
    write_denied("denied4", "ipv4_addr", &v4, text);
    write_denied("denied6", "ipv6_addr", &v6, text);
    let has_limit = set.by != RateKey::Asn;
    if has_limit {
        let seconds = set.limit.seconds();
        for (name, kind) in [("seen4", "ipv4_addr"), ("seen6", "ipv6_addr")] {
            write(
                text,
                format_args!(
                    "    set {name} {{\n        type {kind}\n        size 65535\n        \
                     flags dynamic,timeout\n        timeout {seconds}s\n    }}\n"
                ),
            );
        }
    }
    text.push_str(
        "    chain input {\n        type filter hook input priority -10; policy accept;\n        \
         ip saddr @denied4 drop\n        ip6 saddr @denied6 drop\n",
    );
    if has_limit {
        let masks = match set.by {
            RateKey::Network => [" & 255.255.255.0", " & ffff:ffff:ffff::"],
            _ => [""; 2],
        };
        // The kernel counts a burst in 32 bits.
        let burst = set.limit.requests();
        let rate = per_minute(set.limit);
        for ((family, mask), name) in [("ip", masks[0]), ("ip6", masks[1])]
            .into_iter()
            .zip(["seen4", "seen6"])
        {
            write(
                text,
                format_args!(
                    "        tcp dport {{ 80, 443 }} ct state new update @{name} {{ {family} \
                     saddr{mask} limit rate over {rate}/minute burst {burst} packets }} drop\n"
                ),
            );
        }
    }
    text.push_str("    }\n}\n");
}

fn write_denied(name: &str, kind: &str, networks: &[&IpNet], text: &mut String) {
    write(
        text,
        format_args!(
            "    set {name} {{\n        type {kind}\n        flags interval\n        auto-merge\n"
        ),
    );
    if !networks.is_empty() {
        let networks: Vec<_> = networks.iter().map(ToString::to_string).collect();
        let list = networks.join(",\n            ");
        write(
            text,
            format_args!("        elements = {{\n            {list}\n        }}\n"),
        );
    }
    text.push_str("    }\n");
}
