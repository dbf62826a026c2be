//! `--limit`: the clients that exceed a limit of requests, and rules that enforce it.

use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, ValueEnum};
use linerate_logview::{
    asns::Asns,
    query::{RateKey, RateLimit, RateQuery, RuleFormat},
};

/// The options of limits.
#[derive(Args, Debug)]
#[command(next_help_heading = "Limits of requests")]
pub(super) struct RateOptions {
    /// Show which clients exceed a limit of requests instead of the statistics, and the effect of
    /// other limits: 60/60s, 10/1s, 300/5m or 1000/1h. Any window of this length counts, whatever
    /// the order of the lines. Filters apply.
    #[arg(long, value_name = "REQUESTS/TIME", conflicts_with_all = ["what_changed", "html"])]
    limit: Option<RateLimit>,

    /// What the requests are counted by. A network is a /24 of IPv4 or a /48 of IPv6.
    #[arg(
        long,
        value_name = "KEY",
        default_value = "address",
        requires = "limit"
    )]
    by: Key,

    /// Print rules for this program, which enforce the limit and block the clients that exceed it
    /// most, except those that look like people. Review them before use.
    #[arg(long, value_name = "PROGRAM", requires = "limit", conflicts_with_all = ["json", "watch"])]
    export: Option<Program>,

    /// Database for looking up the autonomous systems of addresses for --by asn (.mmdb, as provided
    /// by GeoLite2 and DB-IP).
    #[arg(long, value_name = "FILE", requires = "limit")]
    asn: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Key {
    Address,
    Agent,
    Asn,
    Network,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Program {
    Caddy,
    Haproxy,
    Nftables,
    Nginx,
}

impl RateOptions {
    /// Returns the question, if a limit is given.
    ///
    /// # Errors
    /// Returns an error if the database of autonomous systems is missing.
    pub(super) fn query(&self) -> anyhow::Result<Option<RateQuery>> {
        let Some(limit) = self.limit else {
            return Ok(None);
        };
        if self.by == Key::Asn && self.asn.is_none() {
            bail!("--by asn requires a database of autonomous systems: add --asn FILE");
        }
        Ok(Some(RateQuery {
            limit,
            by: match self.by {
                Key::Address => RateKey::Address,
                Key::Agent => RateKey::Agent,
                Key::Asn => RateKey::Asn,
                Key::Network => RateKey::Network,
            },
            rules: self.export.map(|program| match program {
                Program::Caddy => RuleFormat::Caddy,
                Program::Haproxy => RuleFormat::Haproxy,
                Program::Nftables => RuleFormat::Nftables,
                Program::Nginx => RuleFormat::Nginx,
            }),
        }))
    }

    /// Reads the database of autonomous systems, if there is one.
    ///
    /// # Errors
    /// Returns an error if it cannot be used.
    pub(super) fn asns(&self) -> anyhow::Result<Option<Asns>> {
        Ok(self.asn.as_deref().map(Asns::open).transpose()?)
    }
}
