//! HAProxy: a stick table with a rate, and ACLs of those to block.

use super::{RuleSet, write};
use crate::query::RateKey;

pub(super) fn write_rules(set: &RuleSet, text: &mut String) {
    text.push_str("# Add these lines to a frontend:\n");
    for network in &set.networks {
        write(
            text,
            format_args!("    acl linerate_denied src {network}\n"),
        );
    }
    for agent in &set.agents {
        let agent = agent.escaped(false);
        write(
            text,
            format_args!("    acl linerate_denied req.fhdr(user-agent) -m str -- {agent}\n"),
        );
    }
    if !set.networks.is_empty() || !set.agents.is_empty() {
        text.push_str("    http-request deny deny_status 403 if linerate_denied\n");
    }
    let (key, kind) = match set.by {
        RateKey::Address => ("src", "ipv6"),
        RateKey::Agent => ("req.fhdr(user-agent)", "string len 256"),
        RateKey::Network => ("src,ipmask(24,48)", "ipv6"),
        // HAProxy knows autonomous systems only from a file of networks.
        RateKey::Asn => return,
    };
    let (requests, seconds) = (set.limit.requests(), set.limit.seconds());
    write(
        text,
        format_args!(
            "    http-request track-sc0 {key} table linerate\n    \
             http-request deny deny_status 429 if {{ sc0_http_req_rate(linerate) gt {requests} }}\n\
             # Add this section to the end of the file:\n\
             backend linerate\n    \
             stick-table type {kind} size 100k expire {seconds}s store http_req_rate({seconds}s)\n"
        ),
    );
}
