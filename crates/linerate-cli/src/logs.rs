//! `linerate logs`: the statistics of access logs, in an interactive view, as text or as JSON.

mod chart;
mod counter;
mod files;
mod filter;
mod follow;
mod html;
mod rate;
mod report;
mod screen;
mod source;
mod stdin;
mod text;
mod watch;

use std::{
    io::{self, IsTerminal},
    path::PathBuf,
    sync::Arc,
};

use anyhow::{Context, bail};
use clap::Args;
use linerate_logview::{
    aggregate::{Aggregator, Limits},
    asns::Asns,
    countries::Countries,
    format::Format,
    query::{Query, RateQuery, TOP_DEFAULT, TOP_MAX},
    spill::SpillSpace,
    summary::Damage,
};

use counter::Counter;
use filter::Selected;
use report::Layout;

use crate::terminal::{self, print};

const EXAMPLES: &str = "\
Examples:
  linerate logs /var/log/nginx/access.log
  linerate logs --plain /var/log/nginx/access.log
  linerate logs '/var/log/nginx/access.log*' --filter 'status >= 500 && path.startsWith(\"/api/\")'
  linerate logs access.log --filter 'method in [\"POST\", \"PUT\"] || agent.contains(\"curl\")'
  linerate logs access.log --filter '!address.startsWith(\"192.0.2.\")' --from 2021-01-22T02:00 --json | jq .panels.path
  linerate logs access.log --filter 'duration_us > 1000000 && bot == \"\"'
  linerate logs access.log --geoip countries.mmdb --filter 'country == \"DE\"'
  linerate logs access.log --html report.html
  linerate logs access.log --what-changed 2021-01-22T02:00..2021-01-22T02:10
  linerate logs access.log --limit 60/60s --by network
  linerate logs access.log --limit 60/60s --export nginx
  linerate logs access.log --watch
  ssh web tail -F /var/log/nginx/access.log | linerate logs - --watch
  linerate logs access.log --format '$remote_addr [$time_local] \"$request\" $status $request_time'
  linerate logs access.log --format \"$(grep -A5 log_format /etc/nginx/nginx.conf)\"";

/// Shows statistics of access logs from nginx, Apache, Caddy, Traefik and servers with compatible
/// formats. On a terminal, they can be filtered: press ? for the keys.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Log files, plain or compressed with gzip or zstd; several files are read as one log. `-`
    /// means standard input, and patterns such as 'access.log*' match several files.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// The log format: a name such as combined or json, or the log_format (nginx) or LogFormat
    /// (Apache) from the server's configuration. By default, it is detected from the first lines.
    #[arg(long, value_name = "FORMAT", value_parser = Format::parse)]
    format: Option<Format>,

    /// Print all statistics as one JSON object.
    #[arg(long)]
    json: bool,

    /// Print a report even if the output is a terminal, instead of the interactive view.
    #[arg(long)]
    plain: bool,

    /// Database for looking up the countries of addresses (.mmdb, as provided by GeoLite2 and
    /// DB-IP).
    #[arg(long, value_name = "FILE")]
    geoip: Option<PathBuf>,

    /// Maximum number of rows in each table.
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=TOP_MAX as i64))]
    top: u16,

    /// Keep reading when the end of a file is reached, and update the statistics as it grows.
    #[arg(long, conflicts_with = "what_changed")]
    watch: bool,

    /// Maximum memory for the lines of the log in bytes, used only by the interactive view. They
    /// are compressed to about a sixth. Beyond it, lines cannot be shown.
    #[arg(long, value_name = "BYTES", default_value_t = 64 << 20)]
    lines_bytes_max: usize,

    #[command(flatten)]
    html: html::Options,

    #[command(flatten)]
    filters: filter::Filters,

    #[command(flatten)]
    rate: rate::RateOptions,

    /// Maximum memory for the requests of the log in bytes, used only with filters, --limit, --html
    /// and by the interactive view: about ten for each request. Beyond it, they are stored in a
    /// temporary file.
    #[arg(long, value_name = "BYTES", default_value_t = 64 << 20, help_heading = "Filters")]
    columns_bytes_max: usize,

    /// Directory for this file: about 500 MB for a log of 10 GB. The default is $TMPDIR, or else
    /// /var/tmp.
    #[arg(long, value_name = "DIRECTORY", help_heading = "Filters")]
    spill_directory: Option<PathBuf>,

    /// Maximum size of this file in bytes. If it does not suffice, the log cannot be filtered.
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 30, help_heading = "Filters")]
    spill_bytes_max: u64,
}

/// Which part of a log is shown, and how.
struct View {
    selected: Selected,
    /// The limit whose effect is shown instead of the statistics.
    rate: Option<RateQuery>,
    asns: Option<Asns>,
    is_json: bool,
    rows_max: usize,
    countries: Option<Countries>,
    /// Maximum memory for the requests of the log; 0 if they are not needed.
    columns_bytes_max: usize,
    /// Maximum memory for the lines of the log; 0 if they are not needed.
    lines_bytes_max: usize,
    /// Disk space for requests that do not fit into memory.
    spill: Arc<SpillSpace>,
}

impl View {
    /// Returns the statistics as text or as JSON.
    fn render(&self, log: &Aggregator) -> anyhow::Result<String> {
        let layout = Layout {
            width: width(),
            cuts_values: io::stdout().is_terminal(),
            rows_max: self.rows_max,
        };
        if let Some(rate) = self.rate {
            let rates = log.rates(&self.rate_filter(), rate)?;
            return Ok(match (rates.rules.clone(), self.is_json) {
                (Some(rules), _) => rules,
                (None, true) => serde_json::to_string(&rates)? + "\n",
                (None, false) => report::rates(&rates, layout),
            });
        }
        let summary = match &self.selected {
            Selected::All => log.summary(),
            Selected::Some(query) => log.figures(query)?,
            Selected::Changes(query) => {
                let changes = log.changes(query)?;
                return Ok(match self.is_json {
                    true => serde_json::to_string(&changes)? + "\n",
                    false => report::changes(&changes, layout),
                });
            }
        };
        Ok(match self.is_json {
            true => serde_json::to_string(&summary)? + "\n",
            false => report::report(&summary, layout),
        })
    }

    /// Returns which requests a limit counts, and how many keys are listed: rules have as many as
    /// possible.
    fn rate_filter(&self) -> Query {
        let mut query = match &self.selected {
            Selected::Some(query) => query.clone(),
            Selected::All | Selected::Changes(_) => Query::default(),
        };
        query.top_max = match self.rate.is_some_and(|rate| rate.rules.is_some()) {
            true => TOP_MAX,
            false => self.rows_max,
        };
        query
    }

    /// Returns the limits on what is kept.
    fn limits(&self) -> Limits {
        /// Enough for the addresses of several servers in a day, 48 MiB.
        const MINUTES_MAX: usize = 4 << 20;
        /// The most addresses that a limit tells apart, 160 MiB.
        const ADDRESSES_MAX: usize = 1 << 20;
        let mut limits = Limits::default();
        limits.minutes_max = MINUTES_MAX;
        limits.column_bytes_max = self.columns_bytes_max;
        limits.line_bytes_sum_max = self.lines_bytes_max;
        limits.spill = Some(self.spill.clone());
        limits.top_max = limits.top_max.max(self.rows_max);
        limits.countries = self.countries.clone();
        limits.asns = self.asns.clone();
        if self.rate.is_some() {
            limits.addresses_max = ADDRESSES_MAX;
            limits.address_bytes_max = ADDRESSES_MAX * 32;
        }
        limits
    }
}

impl Arguments {
    /// Returns whether the interactive view is shown.
    fn is_interactive(&self) -> bool {
        let is_report = self.plain || self.json || self.html.html.is_some();
        !is_report && !self.filters.compares_periods() && terminal::is_capable(&io::stdout())
    }
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    let files = files::expand(&arguments.files)?;
    let rate = arguments.rate.query()?;
    let is_interactive = rate.is_none() && arguments.is_interactive();
    let rows_max = usize::from(arguments.top);
    let rows_max = match is_interactive {
        true => rows_max.max(screen::ROWS_MAX),
        false => rows_max,
    };
    let selected = arguments
        .filters
        .selected(rows_max.max(TOP_DEFAULT), arguments.geoip.is_some())?;
    let is_filtered = selected != Selected::All;
    let needs_columns =
        is_filtered || is_interactive || rate.is_some() || arguments.html.html.is_some();
    let view = View {
        selected,
        rate,
        asns: arguments.rate.asns()?,
        is_json: arguments.json,
        rows_max,
        countries: arguments
            .geoip
            .as_deref()
            .map(Countries::open)
            .transpose()?,
        columns_bytes_max: match needs_columns {
            true => arguments.columns_bytes_max,
            false => 0,
        },
        lines_bytes_max: match is_interactive {
            true => arguments.lines_bytes_max,
            false => 0,
        },
        spill: Arc::new(SpillSpace::new(
            arguments
                .spill_directory
                .unwrap_or_else(SpillSpace::default_directory),
            arguments.spill_bytes_max,
            "--spill-bytes-max",
        )),
    };
    if is_interactive {
        return screen::run(screen::Settings {
            files,
            format: arguments.format,
            follows: arguments.watch,
            has_countries: view.countries.is_some(),
            limits: view.limits(),
            rows_max,
            selected: view.selected,
        });
    }
    let mut log = Counter::new(view.limits());
    if arguments.watch {
        let follower = follow::Follower::open(&files, arguments.format)?;
        return watch::watch(follower, &mut log, &view);
    }
    let must_answer = is_filtered || rate.is_some();
    source::read_all(&files, arguments.format.as_ref(), &mut log, must_answer)?;
    let log = log.settled();
    check_requests(&files, arguments.format.as_ref(), log)?;
    let output = match &arguments.html.html {
        Some(file) => html::write(log, &files, file, arguments.html.html_bytes_max)?,
        None => view.render(log)?,
    };
    print(&output).context("cannot write the statistics")?;
    check_damage(&log.summary().damaged)
}

/// Returns an error if files are damaged.
fn check_damage(damaged: &[Damage]) -> anyhow::Result<()> {
    match damaged {
        [] => Ok(()),
        [damage] => bail!("{}", report::damage(damage)),
        [damage, others @ ..] => bail!(
            "{}, and {} more files are damaged",
            report::damage(damage),
            others.len()
        ),
    }
}

/// Returns an error if none of the lines of a log is a request.
fn check_requests(
    files: &[PathBuf],
    format: Option<&Format>,
    log: &Aggregator,
) -> anyhow::Result<()> {
    /// Maximum number of file names in the message.
    const NAMES_MAX: usize = 5;
    if log.lines() == 0 || log.requests() > 0 {
        return Ok(());
    }
    let mut names: Vec<_> = files
        .iter()
        .take(NAMES_MAX)
        .map(|file| files::name(file))
        .collect();
    if files.len() > NAMES_MAX {
        names.push(format!("{} more", files.len() - NAMES_MAX));
    }
    let of_format = match format {
        Some(format) => format!("the format {}", format.name()),
        None => "a known format (set it with --format)".to_owned(),
    };
    let reasons: Vec<_> = log
        .summary()
        .unparsed_reasons
        .iter()
        .map(|(reason, count)| format!("{count} {reason}"))
        .collect();
    bail!(
        "no requests in {}: none of {} matches {of_format} ({})",
        names.join(", "),
        text::counted(log.lines(), "line"),
        reasons.join(", ")
    );
}

/// Returns the width of the report in columns.
fn width() -> usize {
    const DEFAULT: usize = 80;
    if !io::stdout().is_terminal() {
        return DEFAULT;
    }
    let columns = terminal_size::terminal_size().map_or(DEFAULT, |(width, _)| width.0.into());
    columns.clamp(60, 160)
}
