//! Caddy: a snippet that blocks, and a limit for those who have the module `rate_limit`.

use super::{RuleSet, write};
use crate::query::RateKey;

pub(super) fn write_rules(set: &RuleSet, text: &mut String) {
    text.push_str("# Add this snippet to the Caddyfile, and `import linerate` to a site.\n");
    text.push_str("(linerate) {\n");
    let is_empty = set.networks.is_empty() && set.agents.is_empty();
    if !set.networks.is_empty() {
        text.push_str("\t@linerate_denied remote_ip");
        for network in &set.networks {
            write(text, format_args!(" {network}"));
        }
        text.push('\n');
    }
    if !set.agents.is_empty() {
        let agents: Vec<_> = set.agents.iter().map(|it| it.escaped(true)).collect();
        let agents = agents.join("|");
        write(
            text,
            format_args!("\t@linerate_denied header_regexp User-Agent `^(?:{agents})$`\n"),
        );
    }
    if !is_empty {
        text.push_str("\trespond @linerate_denied 403\n");
    }
    let key = match set.by {
        RateKey::Address => "{remote_host}",
        RateKey::Agent => "{header.User-Agent}",
        RateKey::Asn | RateKey::Network => "",
    };
    if !key.is_empty() {
        let (requests, seconds) = (set.limit.requests(), set.limit.seconds());
        write(
            text,
            format_args!(
                "\t# With the module github.com/mholt/caddy-ratelimit:\n\t\
                 # rate_limit {{\n\t\
                 # \tzone linerate {{\n\t\
                 # \t\tkey {key}\n\t\
                 # \t\tevents {requests}\n\t\
                 # \t\twindow {seconds}s\n\t\
                 # \t}}\n\t\
                 # }}\n"
            ),
        );
    }
    text.push_str("}\n");
}
