//! `linerate logs`: the figures of access logs, for people or as JSON.

mod chart;
mod counter;
mod files;
mod filter;
mod follow;
mod report;
mod source;
mod watch;

use std::{
    io::{self, IsTerminal, Write},
    path::PathBuf,
};

use anyhow::{Context, bail};
use clap::Args;
use linerate_logview::{
    aggregate::{Aggregator, Limits},
    countries::Countries,
    format::Format,
    query::{Query, TOP_DEFAULT, TOP_MAX},
};

use counter::Counter;
use report::Layout;

const EXAMPLES: &str = "\
Examples:
  linerate logs /var/log/nginx/access.log
  linerate logs '/var/log/nginx/access.log*' --filter 'status >= 500 && path.startsWith(\"/api/\")'
  linerate logs access.log --filter 'method in [\"POST\", \"PUT\"] || agent.contains(\"curl\")'
  linerate logs access.log --filter '!address.startsWith(\"192.0.2.\")' --from 2021-01-22T02:00 --json | jq .panels.path
  linerate logs access.log --filter 'duration_us > 1000000 && bot == \"\"'
  linerate logs access.log --geoip countries.mmdb --filter 'country == \"DE\"'
  linerate logs access.log --watch
  ssh web tail -F /var/log/nginx/access.log | linerate logs - --watch
  linerate logs access.log --format '$remote_addr [$time_local] \"$request\" $status $request_time'
  linerate logs access.log --format \"$(grep -A5 log_format /etc/nginx/nginx.conf)\"";

/// Shows the figures of access logs: of nginx, Apache, Caddy, Traefik and what writes like them.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Logs, which together are read as one; plain or compressed by gzip or zstd. `-` is standard
    /// input; patterns such as 'access.log*' stand for the files that match.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// How the lines are built: combined, common, json, vhost_combined, vhost_common, or what
    /// stands in the server's configuration as log_format (nginx) or LogFormat (Apache). Detected
    /// by the first lines unless given.
    #[arg(long, value_name = "FORMAT", value_parser = Format::parse)]
    format: Option<Format>,

    /// Print all figures as one JSON object.
    #[arg(long)]
    json: bool,

    /// A database of countries that addresses are looked up in (.mmdb, as GeoLite2 and DB-IP have it).
    #[arg(long, value_name = "FILE")]
    geoip: Option<PathBuf>,

    /// How many values each table has.
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=TOP_MAX as i64))]
    top: u16,

    /// Go on when the end of a file is reached, and draw the figures anew as it grows.
    #[arg(long)]
    watch: bool,

    #[command(flatten)]
    filters: filter::Filters,
}

/// What is shown of a log, and how.
struct View {
    query: Option<Query>,
    is_json: bool,
    rows_max: usize,
    countries: Option<Countries>,
}

impl View {
    /// Returns the figures as people or programs read them.
    fn render(&self, log: &Aggregator) -> anyhow::Result<String> {
        let summary = match &self.query {
            Some(query) => log.figures(query)?,
            None => log.summary(),
        };
        if self.is_json {
            return Ok(serde_json::to_string(&summary)? + "\n");
        }
        let layout = Layout {
            width: width(),
            rows_max: self.rows_max,
        };
        Ok(report::report(&summary, layout))
    }

    /// Returns what may be kept of the log: for filters all requests of a hundred gigabytes, and
    /// none where nobody filters.
    fn limits(&self) -> Limits {
        const COLUMN_BYTES_MAX: usize = 4 << 30;
        let mut limits = Limits::default();
        limits.column_bytes_max = self.query.as_ref().map_or(0, |_| COLUMN_BYTES_MAX);
        limits.top_max = limits.top_max.max(self.rows_max);
        limits.countries = self.countries.clone();
        limits
    }
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    let files = files::expand(&arguments.files)?;
    let rows_max = usize::from(arguments.top);
    let view = View {
        query: arguments
            .filters
            .query(rows_max.max(TOP_DEFAULT), arguments.geoip.is_some())?,
        is_json: arguments.json,
        rows_max,
        countries: arguments
            .geoip
            .as_deref()
            .map(Countries::open)
            .transpose()?,
    };
    let mut log = Counter::new(view.limits());
    if arguments.watch {
        let follower = follow::Follower::open(&files, arguments.format)?;
        return watch::watch(follower, &mut log, &view);
    }
    source::read_all(&files, arguments.format.as_ref(), &mut log)?;
    let log = log.settled();
    if log.lines() > 0 && log.requests() == 0 {
        refuse(&files, &arguments.format, log)?;
    }
    print(&view.render(log)?)
}

/// Says that there is no request in so many lines.
fn refuse(files: &[PathBuf], format: &Option<Format>, log: &Aggregator) -> anyhow::Result<()> {
    /// More names say nothing more.
    const NAMES_MAX: usize = 5;
    let mut names: Vec<_> = files
        .iter()
        .take(NAMES_MAX)
        .map(|file| files::name(file))
        .collect();
    if files.len() > NAMES_MAX {
        names.push(format!("{} more", files.len() - NAMES_MAX));
    }
    let of_format = match format {
        Some(format) => format!("no access log in the format {}", format.name()),
        None => "no access log in a format that has a name (give it by --format)".to_owned(),
    };
    let reasons: Vec<_> = log
        .summary()
        .unparsed_reasons
        .iter()
        .map(|(reason, count)| format!("{count} {reason}"))
        .collect();
    bail!(
        "{} is {of_format}: none of {} lines is a request ({})",
        names.join(", "),
        log.lines(),
        reasons.join(", ")
    );
}

fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    let written = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
    match written {
        // Whoever reads has seen enough, as `head` has.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("can't write the figures"),
    }
}

/// Returns how many columns the report may have.
fn width() -> usize {
    const DEFAULT: usize = 80;
    if !io::stdout().is_terminal() {
        return DEFAULT;
    }
    let columns = terminal_size::terminal_size().map_or(DEFAULT, |(width, _)| width.0.into());
    columns.clamp(60, 160)
}
