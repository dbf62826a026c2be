//! `linerate check`: a WebSocket server, or client, against the standard.

mod client;
mod deadlines;
mod list;
mod progress;
mod stress;

use std::{
    fs, net::SocketAddr, ops::Range, path::PathBuf, process::ExitCode, sync::Arc, time::Duration,
};

use anyhow::{Context, bail};
use clap::Args;
use linerate::tls::rustls::ServerConfig;
use linerate_check::report::Report;
use linerate_check::{
    Area, Finding, Plan, Row, Target, Verdict, Victim, catalogue, greet, http2::Request,
    offers_http2, report,
};

use crate::{
    certificate,
    connect::{header, seconds},
};

const EXAMPLES: &str = "\
Examples:
  linerate check ws://127.0.0.1:9001/
  linerate check wss://127.0.0.1:9001/echo --insecure --html check.html
  linerate check ws://127.0.0.1:9001/ --only F04 --only utf8
  linerate check ws://127.0.0.1:9001/ --json > check.jsonl
  linerate check wss://example.com/feed --no-echo -H 'Authorization: Bearer …'
  linerate check ws://127.0.0.1:9001/ --stress --pid $(pidof my-server)
  linerate check ws://127.0.0.1:9001/ --patience 60
  linerate check ws://127.0.0.1:9001/ --http2
  linerate check --list
  linerate check --listen 127.0.0.1:9002
  linerate check --listen 127.0.0.1:0 --run 'node my-client.js {url}'
  linerate check --listen 127.0.0.1:9002 --certificate cert.pem --key key.pem

The server is expected to send each message back, because only then can be seen what it takes
for a message. With --no-echo, whether it takes an input that is in order is seen by a Ping
behind it, and that a message is delivered that should not be, is not seen at all.

If the server takes WebSockets over HTTP/2 too, how it speaks that is checked along. With --http2
all WebSockets are opened over HTTP/2, and what is about the handshake of HTTP/1.1 is left out.

With --patience SECONDS, connections are left in the middle of a request, a frame, a closing handshake and a
handshake of TLS, all at once, and the server is waited for to end them. How long is up to it; that it
ever does is what is asked.

With --listen it is the other way round: each client that connects gets one input, from bad
answers to its request to masked frames. Start the client again and again, or let --run do that;
it should send each message back. With a certificate clients connect to wss:, and are also given
handshakes and messages in pieces, streams that are cut, and records that nobody should take.

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
    /// framing, utf8, handshake, compression, tls, http2, stress; may be repeated.
    #[arg(long, value_name = "ID|AREA")]
    only: Vec<String>,

    /// Check clients instead, which connect to this address.
    #[arg(long, value_name = "ADDR:PORT", conflicts_with_all = ["url", "insecure", "header", "http2", "jobs"])]
    listen: Option<SocketAddr>,

    /// Start the client by this command of a shell, for each input; {url} stands for where to connect.
    #[arg(long, value_name = "COMMAND", requires = "listen")]
    run: Option<String>,

    /// Speak TLS with clients, with a self-signed certificate that is made for this run: they must not look at it.
    #[arg(long, requires = "listen", conflicts_with_all = ["certificate", "key"])]
    tls_self_signed: bool,

    /// Speak TLS with clients, with this certificate (PEM, the whole chain).
    #[arg(long, value_name = "FILE", requires_all = ["listen", "key"])]
    certificate: Option<PathBuf>,

    /// The key of the certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "certificate")]
    key: Option<PathBuf>,

    /// Send floods and bombs too, to a server on this machine. They are bounded, but keep it busy for seconds.
    #[arg(long, conflicts_with = "listen")]
    stress: bool,

    /// Send them to a server elsewhere: it is yours, and nobody else suffers.
    #[arg(long, requires = "stress")]
    i_own_this_server: bool,

    /// Leave connections in the middle of something too, and wait up to so many seconds for the server to end
    /// them; most do within 60, some within 130.
    #[arg(long, value_name = "SECONDS", conflicts_with = "listen", value_parser = seconds)]
    patience: Option<Duration>,

    /// Open all WebSockets over HTTP/2: by agreement over TLS, without asking in the clear.
    #[arg(long)]
    http2: bool,

    /// Look at the process of this number while it is under stress: its memory, files and time before, at most, and
    /// afterwards. What does not come back is wrong. With --patience, memory by lengths that are only claimed is
    /// wrong, too.
    #[arg(long, value_name = "PID", conflicts_with = "listen")]
    pid: Option<u32>,

    /// Seconds in which the process has to be as before.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    settle: Duration,

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
    let rows = selected(arguments.rows()?, &arguments.only)?;
    if arguments.list {
        super::bench::print(&list::of(&rows))?;
        return Ok(ExitCode::SUCCESS);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let found = runtime.block_on(arguments.find(rows))?;
    arguments.report(&found)
}

/// What was found out.
struct Found {
    /// What was checked.
    name: String,
    rows: Vec<Row>,
    findings: Vec<Finding>,
    left_out: Vec<String>,
    /// What became of its process.
    process: Option<String>,
}

impl Arguments {
    /// Returns all rows that there are for what is to be checked, floods last.
    fn rows(&self) -> anyhow::Result<Vec<Row>> {
        if self.listen.is_some() {
            let mut rows = catalogue::client();
            if self.speaks_tls() {
                rows.extend(catalogue::client_tls());
            }
            return Ok(rows);
        }
        let mut rows = if self.http2 {
            catalogue::carried()
        } else {
            catalogue::server()
        };
        let request = match &self.url {
            Some(url) => self.plan(url)?.target.http2_request(),
            None => Request::default(),
        };
        rows.extend(catalogue::tls());
        rows.extend(catalogue::http2(&request));
        if self.patience.is_some() {
            rows.extend(self.deadlines());
        }
        if self.stress {
            rows.extend(catalogue::stress());
            rows.extend(catalogue::http2_stress(&request));
        }
        Ok(rows)
    }

    /// Returns what became of each input.
    async fn find(&self, mut rows: Vec<Row>) -> anyhow::Result<Found> {
        if let Some(address) = self.listen {
            let progress = progress::Progress::new(&rows);
            let tell = |finding: &Finding| progress.tell(finding);
            let manner = (self.deadline, !self.no_echo, self.tls()?);
            let command = self.run.as_deref();
            let checked = client::check(address, command, &rows, manner, tell).await;
            let (name, findings) = checked?;
            return Ok(Found {
                name,
                rows,
                findings,
                left_out: Vec::new(),
                process: None,
            });
        }
        let url = self.url.as_deref().context("an address is needed")?;
        let plan = self.plan(url)?;
        let greeted = greet(&plan).await;
        greeted
            .map_err(|came| anyhow::anyhow!("{url} opens no WebSocket{}: {came}", self.over()))?;
        let left_out = self.leave_out(&plan, &mut rows).await;
        let is_flood = |row: &Row| row.area() == Area::Stress && !row.is_about_deadlines();
        let end = rows.len();
        let floods = rows.iter().position(is_flood).unwrap_or(end);
        let deadlines = rows.iter().position(Row::is_about_deadlines);
        let deadlines = deadlines.unwrap_or(floods);
        let progress = progress::Progress::new(&rows);
        let victim = self.victim()?;
        let victim = victim.as_ref();
        let mut findings = phase(&plan, &rows, 0..deadlines, &progress).await;
        let patience = (self.patience.unwrap_or(self.deadline), victim);
        let left = deadlines::run(&plan, &mut rows, deadlines..floods, patience, &progress);
        findings.extend(left.await?);
        let victim = victim
            .filter(|_| self.stress)
            .map(|victim| (victim, self.settle));
        let stressed = stress::run(&plan, &mut rows, floods..end, victim, &progress);
        let (stressed, aftermath) = stressed.await?;
        findings.extend(stressed);
        Ok(Found {
            name: format!("{url}{}", self.over()),
            rows,
            findings,
            left_out,
            process: aftermath.map(|aftermath| aftermath.to_string()),
        })
    }

    /// Returns whether clients connect over TLS.
    fn speaks_tls(&self) -> bool {
        self.tls_self_signed || self.certificate.is_some()
    }

    /// Returns how TLS is spoken with clients, if it is.
    fn tls(&self) -> anyhow::Result<Option<Arc<ServerConfig>>> {
        match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => certificate::from_files(certificate, key).map(Some),
            _ if self.tls_self_signed => certificate::self_signed().map(Some),
            _ => Ok(None),
        }
    }

    /// Returns the rows about deadlines for what is to be checked.
    fn deadlines(&self) -> Vec<Row> {
        let mut rows = catalogue::deadlines();
        rows.retain(|row| !self.http2 || row.area() != Area::Handshake);
        rows
    }

    /// Returns the process that is to be looked at.
    fn victim(&self) -> anyhow::Result<Option<Victim>> {
        let Some(pid) = self.pid else {
            return Ok(None);
        };
        if !self.stress && self.patience.is_none() {
            bail!("--pid is for --stress and --patience");
        }
        let victim = Victim::new(pid);
        let victim = victim.with_context(|| format!("can't look at process {pid}"))?;
        Ok(Some(victim))
    }

    /// Returns what stands behind the address where it is reached in a way that it does not tell.
    fn over(&self) -> &'static str {
        if self.http2 { " over HTTP/2" } else { "" }
    }

    /// Takes the rows away that the server can't be asked; returns what was left out, and why.
    async fn leave_out(&self, plan: &Plan, rows: &mut Vec<Row>) -> Vec<String> {
        let mut left_out = Vec::new();
        if rows.iter().any(Row::is_over_http2) {
            let why = if self.no_echo {
                Some("which needs a server that sends messages back")
            } else if !offers_http2(plan).await {
                Some("over which the server takes no WebSockets")
            } else {
                None
            };
            if let Some(why) = why {
                rows.retain(|row| !row.is_over_http2());
                left_out.push(format!("HTTP/2, {why}"));
            }
        }
        let is_tls = |row: &Row| row.area() == Area::Tls;
        if !plan.target.is_tls() && rows.iter().any(is_tls) {
            rows.retain(|row| !is_tls(row));
            left_out.push("TLS, which an address with ws: has not".into());
        }
        if !self.stress && self.only.is_empty() {
            left_out.push("floods and bombs, which come with --stress".into());
        }
        if self.patience.is_none() && self.only.is_empty() {
            left_out.push("how long it waits, which comes with --patience SECONDS".into());
        }
        left_out
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
            http2: self.http2,
        })
    }

    /// Tells what was found; returns the exit status.
    fn report(&self, found: &Found) -> anyhow::Result<ExitCode> {
        let Found { rows, findings, .. } = found;
        let report = Report {
            name: &found.name,
            rows,
            findings,
            left_out: &found.left_out,
            process: found.process.as_deref(),
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

/// Sends the rows of a range; their places are those among all.
async fn phase(
    plan: &Plan,
    rows: &[Row],
    range: Range<usize>,
    progress: &progress::Progress,
) -> Vec<Finding> {
    let first = range.start;
    let placed = |finding: &Finding| Finding {
        row: finding.row + first,
        ..finding.clone()
    };
    let tell = |finding: &Finding| progress.tell(&placed(finding));
    let findings = linerate_check::run(plan, &rows[range], tell).await;
    findings.iter().map(placed).collect()
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
