//! nginx: `limit_req` with a zone, and a list of those to block.

use super::{RuleSet, per_minute, write};
use crate::query::{RateKey, RateLimit};

pub(super) fn write_rules(set: &RuleSet, text: &mut String) {
    text.push_str("# Include this file in the block http.\n");
    let key = match set.by {
        RateKey::Address => "$binary_remote_addr",
        RateKey::Agent => "$http_user_agent",
        RateKey::Asn => {
            text.push_str("geo $linerate_asn {\n    default \"\";\n");
            for (network, number) in &set.systems {
                write(text, format_args!("    {network} AS{number};\n"));
            }
            text.push_str("}\n");
            "$linerate_asn"
        }
        RateKey::Network => {
            text.push_str(NETWORKS);
            "$linerate_network"
        }
    };
    let rate = rate(set.limit);
    write(
        text,
        format_args!("limit_req_zone {key} zone=linerate:10m rate={rate};\n"),
    );
    match set.by {
        RateKey::Agent => write_agents(set, text),
        _ => write_networks(set, text),
    }
    let burst = match set.limit.requests() - 1 {
        0 => String::new(),
        burst => format!(" burst={burst} nodelay"),
    };
    write(
        text,
        format_args!(
            "# Add these lines to a block server or location:\n\
             #     limit_req zone=linerate{burst};\n\
             #     limit_req_status 429;\n\
             #     if ($linerate_denied) {{ return 403; }}\n"
        ),
    );
}

/// The groups of an IPv6 address that are 0 may be left out, also those of its network.
const NETWORKS: &str = "\
map $remote_addr $linerate_network {
    default $binary_remote_addr;
    \"~^(?<linerate_4>[0-9]+\\.[0-9]+\\.[0-9]+)\\.[0-9]+$\" $linerate_4;
    \"~^(?<linerate_6>[0-9a-f]+:[0-9a-f]+:[0-9a-f]+)(:|$)\" $linerate_6;
    \"~^(?<linerate_6_2>[0-9a-f]+:[0-9a-f]+)::\" $linerate_6_2:0;
    \"~^(?<linerate_6_1>[0-9a-f]+)::\" $linerate_6_1:0:0;
}
";

/// Returns the rate, which is in whole requests per second or per minute. It is rounded up.
fn rate(limit: RateLimit) -> String {
    let (requests, seconds) = (limit.requests(), u64::from(limit.seconds()));
    match requests % seconds {
        0 => format!("{}r/s", requests / seconds),
        _ => format!("{}r/m", per_minute(limit)),
    }
}

fn write_networks(set: &RuleSet, text: &mut String) {
    text.push_str("geo $linerate_denied {\n    default 0;\n");
    for network in &set.networks {
        write(text, format_args!("    {network} 1;\n"));
    }
    text.push_str("}\n");
}

/// Writes regular expressions, because the size of the table for strings may already be set
/// elsewhere, and only once.
fn write_agents(set: &RuleSet, text: &mut String) {
    text.push_str("map $http_user_agent $linerate_denied {\n    default 0;\n");
    for agent in &set.agents {
        let agent = agent.escaped(true);
        write(text, format_args!("    \"~^{agent}$\" 1;\n"));
    }
    text.push_str("}\n");
}
