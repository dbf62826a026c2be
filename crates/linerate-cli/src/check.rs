//! `linerate check`: a WebSocket server, or client, against the standard.

mod client;
mod list;
mod progress;

use std::{fs, net::SocketAddr, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use anyhow::{Context, bail};
use clap::Args;
use linerate_check::report::Report;
use linerate_check::{Finding, Plan, Row, Target, Verdict, catalogue, greet, report};

use crate::connect::{header, seconds};

const EXAMPLES: &str = "\
Examples:
  linerate check ws://127.0.0.1:9001/
  linerate check wss://127.0.0.1:9001/echo --insecure --html check.html
  linerate check ws://127.0.0.1:9001/ --only F04 --only utf8
  linerate check ws://127.0.0.1:9001/ --json > check.jsonl
  linerate check wss://example.com/feed --no-echo -H 'Authorization: Bearer …'
  linerate check ws://127.0.0.1:9001/ --stress
  linerate check --list
  linerate check --listen 127.0.0.1:9002
  linerate check --listen 127.0.0.1:0 --run 'node my-client.js {url}'

The server is expected to send each message back, because only then can be seen what it takes
for a message. With --no-echo, whether it takes an input that is in order is seen by a Ping
behind it, and that a message is delivered that should not be, is not seen at all.

With --listen it is the other way round: each client that connects gets one input, from bad
answers to its request to masked frames. Start the client again and again, or let --run do that;
it should send each message back.

Verdicts: right is what the standard requires and advises. permitted breaks no rule, like a
connection that is dropped without a Close frame. wrong breaks a rule. dangerous also harms
others, or the server is gone.

The exit status is 0 if no rule is broken, 1 if one is (with --strict also if something is only
permitted), 2 if the server could not be checked.";

/// Exit status if a rule is broken.
const BROKEN: u8 = 1;

/// Exit status if there is nothing to judge.
const UNCHECKED: u8 = 2;

/// Checks a WebSocket server against the standard: hundreds of inputs, right and wrong.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The ws:// or wss:// address of a server that sends each message back.
    #[arg(required_unless_present_any = ["list", "listen"])]
    url: Option<String>,

    /// Only the row of this id, all rows whose ids begin so, one of its inputs (F21/code-1005), or an area: valid,
    /// framing, utf8, handshake, compression, stress; may be repeated.
    #[arg(long, value_name = "ID|AREA")]
    only: Vec<String>,

    /// Check clients instead, which connect to this address.
    #[arg(long, value_name = "ADDR:PORT", conflicts_with_all = ["url", "insecure", "header", "jobs"])]
    listen: Option<SocketAddr>,

    /// Start the client by this command of a shell, for each input; {url} stands for where to connect.
    #[arg(long, value_name = "COMMAND", requires = "listen")]
    run: Option<String>,

    /// Send floods and bombs too, to a server on this machine. They are bounded, but keep it busy for seconds.
    #[arg(long, conflicts_with = "listen")]
    stress: bool,

    /// Send them to a server elsewhere: it is yours, and nobody else suffers.
    #[arg(long, requires = "stress")]
    i_own_this_server: bool,

    /// Show rows and inputs, and send nothing.
    #[arg(long)]
    list: bool,

    /// The endpoint does not send messages back.
    #[arg(long)]
    no_echo: bool,

    /// How many inputs are under way at a time.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: u16,

    /// Seconds to wait for an answer, and for the end of a connection.
    #[arg(long, value_name = "SECONDS", default_value = "3", value_parser = seconds)]
    deadline: Duration,

    /// Add a header to each request; may be repeated.
    #[arg(long, short = 'H', value_name = "NAME: VALUE", value_parser = header)]
    header: Vec<(String, String)>,

    /// DANGER: accept any certificate, for servers with one that nobody has signed.
    #[arg(long)]
    insecure: bool,

    /// Write what became of each input to standard output, one JSON object a line, and the counts as the last one.
    #[arg(long)]
    json: bool,

    /// Write a page to this file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Fail also if something is only permitted.
    #[arg(long)]
    strict: bool,
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match check(arguments) {
        Ok(status) => status,
        Err(error) => {
            eprintln!("Error: {error:#}");
            UNCHECKED.into()
        }
    }
}

fn check(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut rows = match arguments.listen {
        Some(_) => catalogue::client(),
        None => catalogue::server(),
    };
    if arguments.stress {
        rows.extend(catalogue::stress());
    }
    let rows = selected(rows, &arguments.only)?;
    if arguments.list {
        super::bench::print(&list::of(&rows))?;
        return Ok(ExitCode::SUCCESS);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (name, findings) = runtime.block_on(arguments.find(&rows))?;
    arguments.report(&name, &rows, &findings)
}

impl Arguments {
    /// Returns the name of what is checked, and what became of each input.
    async fn find(&self, rows: &[Row]) -> anyhow::Result<(String, Vec<Finding>)> {
        let progress = progress::Progress::new(rows);
        let tell = |finding: &Finding| progress.tell(finding);
        if let Some(address) = self.listen {
            let manner = (self.deadline, !self.no_echo);
            return client::check(address, self.run.as_deref(), rows, manner, tell).await;
        }
        let url = self.url.as_deref().context("an address is needed")?;
        let plan = self.plan(url)?;
        let greeted = greet(&plan).await;
        greeted.map_err(|came| anyhow::anyhow!("{url} opens no WebSocket: {came}"))?;
        let findings = linerate_check::run(&plan, rows, tell).await;
        Ok((url.to_owned(), findings))
    }

    fn plan(&self, url: &str) -> anyhow::Result<Plan> {
        let config = if self.insecure {
            linerate::tls::danger_client_config_trusting_anybody()
        } else {
            linerate::tls::client_config(linerate::tls::default_roots())
        };
        let target = Target::new(url, &self.header, Arc::new(config));
        let target = target.with_context(|| format!("{url} can't be checked"))?;
        if self.stress && !self.i_own_this_server && !target.is_loopback() {
            bail!("{url} is not on this machine; if it is yours, say so with --i-own-this-server");
        }
        Ok(Plan {
            target,
            jobs: self.jobs.into(),
            patience: self.deadline,
            echoes: !self.no_echo,
        })
    }

    /// Tells what was found; returns the exit status.
    fn report(&self, url: &str, rows: &[Row], findings: &[Finding]) -> anyhow::Result<ExitCode> {
        let left_out = if self.stress || self.listen.is_some() || !self.only.is_empty() {
            Vec::new()
        } else {
            vec!["floods and bombs, which come with --stress".to_owned()]
        };
        let report = Report {
            name: url,
            rows,
            findings,
            left_out: &left_out,
        };
        if self.json {
            let lines = findings
                .iter()
                .map(|finding| report::line(&rows[finding.row], finding) + "\n");
            super::bench::print(
                &(lines.collect::<String>() + &report::summary_line(&report) + "\n"),
            )?;
        } else {
            super::bench::print(&report::text(&report))?;
        }
        if let Some(file) = &self.html {
            let written = fs::write(file, report::html(&report));
            written.with_context(|| format!("can't write {}", file.display()))?;
        }
        let counts = report.counts();
        let permitted = if self.strict {
            counts.of(Verdict::Permitted)
        } else {
            0
        };
        let broken = counts.of(Verdict::Wrong) + counts.of(Verdict::Dangerous) + permitted;
        Ok(if broken > 0 {
            BROKEN.into()
        } else {
            ExitCode::SUCCESS
        })
    }
}

/// Returns the rows that are asked for.
fn selected(mut rows: Vec<Row>, only: &[String]) -> anyhow::Result<Vec<Row>> {
    for part in only {
        if !rows.iter().any(|row| row.is_meant_by(part)) {
            bail!("no row is meant by {part:?}, see `linerate check --list`");
        }
    }
    if !only.is_empty() {
        rows.retain(|row| only.iter().any(|part| row.is_meant_by(part)));
        for row in &mut rows {
            row.retain(only);
        }
    }
    Ok(rows)
}
