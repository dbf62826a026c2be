//! `linerate check`: checks a WebSocket server or client against the standard.

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
    terminal::{print, with_causes},
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

The server must echo each message, because the echo shows which messages it accepted. With \
--no-echo, a Ping after each valid input shows that the server accepted it, but a message that the \
server should not have delivered goes unnoticed.

If the server also accepts WebSockets over HTTP/2, its HTTP/2 is checked as well. With --http2, all \
WebSockets are opened over HTTP/2, and the rows about the HTTP/1.1 handshake are left out.

With --patience SECONDS, connections are abandoned in the middle of a request, a frame, a closing \
handshake or a TLS handshake, all at the same time, and the server must end each of them within \
SECONDS. The standard sets no timeout, so choose one that is longer than the server's own.

With --listen, clients are checked instead: each client that connects gets one input, such as an \
invalid response to its request or a masked frame. Start the client repeatedly, or let --run do so; \
it must echo each message. With a certificate, clients connect to wss: and also get handshakes and \
messages in pieces, truncated streams, and invalid TLS records.

Verdicts: right follows what the standard requires and advises. permitted breaks no rule but ignores \
advice, for example by dropping a connection without a Close frame. wrong breaks a rule. dangerous \
also harms other clients or users, or takes the server down.

The exit status is 0 if no rule is broken, 1 if a rule is broken (with --strict, also if a verdict is \
permitted), and 2 if the server or client could not be checked.";

/// The exit status if a rule is broken.
const BROKEN: u8 = 1;

/// The exit status if the server or client could not be checked.
const UNCHECKED: u8 = 2;

/// Checks a WebSocket server or client against the standard, with hundreds of valid and invalid
/// inputs.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The ws:// or wss:// URL of a server that echoes each message.
    #[arg(required_unless_present_any = ["list", "listen"])]
    url: Option<String>,

    /// Check only the rows whose id starts with this (F21, F), one input of a row (F21/code-1005),
    /// or an area: valid, framing, utf8, handshake, compression, tls, http2, stress; may be
    /// repeated.
    #[arg(long, value_name = "ID|AREA")]
    only: Vec<String>,

    /// Check clients instead: listen on this address for them to connect.
    #[arg(long, value_name = "ADDR:PORT", conflicts_with_all = ["url", "insecure", "header", "http2", "jobs"])]
    listen: Option<SocketAddr>,

    /// Shell command that starts the client, run once for each input; {url} is replaced by the URL
    /// to connect to.
    #[arg(long, value_name = "COMMAND", requires = "listen")]
    run: Option<String>,

    /// Use TLS with a self-signed certificate generated for this run; the clients must accept any
    /// certificate.
    #[arg(long, requires = "listen", conflicts_with_all = ["certificate", "key"])]
    tls_self_signed: bool,

    /// Use TLS with this certificate (PEM, the whole chain).
    #[arg(long, value_name = "FILE", requires_all = ["listen", "key"])]
    certificate: Option<PathBuf>,

    /// The private key of the certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "certificate")]
    key: Option<PathBuf>,

    /// Also send floods and decompression bombs. They are bounded, but keep the server busy for
    /// seconds, so it must be on this machine unless you add --i-own-this-server.
    #[arg(long, conflicts_with = "listen")]
    stress: bool,

    /// Confirm that you own this server and that no one else is affected. Required for --stress
    /// against another machine.
    #[arg(long, requires = "stress")]
    i_own_this_server: bool,

    /// Also abandon connections midway, and wait up to this many seconds for the server to end
    /// them; most servers need up to 60 seconds, some 130.
    #[arg(long, value_name = "SECONDS", conflicts_with = "listen", value_parser = seconds)]
    patience: Option<Duration>,

    /// Open all WebSockets over HTTP/2: negotiated by ALPN over TLS, with prior knowledge without
    /// TLS.
    #[arg(long)]
    http2: bool,

    /// PID of the server on this machine. With --stress, its memory, open files and CPU time are
    /// recorded before, at their peak and afterwards; whatever it does not release is wrong. With
    /// --patience, memory that it allocates for lengths that are only claimed is also wrong.
    #[arg(long, value_name = "PID", conflicts_with = "listen")]
    pid: Option<u32>,

    /// Seconds within which the process must release what it used under --stress.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    settle: Duration,

    /// List rows and inputs without sending anything.
    #[arg(long)]
    list: bool,

    /// The server or client does not echo messages.
    #[arg(long)]
    no_echo: bool,

    /// Maximum number of inputs in progress at the same time.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: u16,

    /// Seconds to wait for a response, and for the end of a connection.
    #[arg(long, value_name = "SECONDS", default_value = "3", value_parser = seconds)]
    deadline: Duration,

    /// Add a header to each request; may be repeated.
    #[arg(long, short = 'H', value_name = "NAME: VALUE", value_parser = header)]
    header: Vec<(String, String)>,

    /// DANGER: accept any certificate, for servers with a self-signed one.
    #[arg(long)]
    insecure: bool,

    /// Write the result of each input to standard output, one JSON object per line, and the counts
    /// as the last line.
    #[arg(long)]
    json: bool,

    /// Write an HTML report to this file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Exit with status 1 also if a verdict is permitted.
    #[arg(long)]
    strict: bool,
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match check(arguments) {
        Ok(status) => status,
        Err(error) => {
            eprintln!("Error: {}", with_causes(&error));
            UNCHECKED.into()
        }
    }
}

fn check(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let rows = selected(arguments.rows()?, &arguments.only)?;
    if arguments.list {
        print(&list::of(&rows))?;
        return Ok(ExitCode::SUCCESS);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let found = runtime.block_on(arguments.find(rows))?;
    arguments.report(&found)
}

/// The results of a check.
struct CheckResults {
    /// The URL that was checked, and whether over HTTP/2.
    name: String,
    rows: Vec<Row>,
    findings: Vec<Finding>,
    left_out: Vec<String>,
    /// A description of the server process after the floods, if `--pid` was given.
    process: Option<String>,
}

impl Arguments {
    /// Returns all rows that apply to the server or client, with the floods last.
    fn rows(&self) -> anyhow::Result<Vec<Row>> {
        if self.listen.is_some() {
            let mut rows = catalogue::client();
            if self.tls_self_signed || self.certificate.is_some() {
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
            // Over HTTP/2, there is no HTTP/1.1 handshake.
            let is_meant = |row: &Row| !self.http2 || row.area() != Area::Handshake;
            rows.extend(catalogue::deadlines().into_iter().filter(is_meant));
        }
        if self.stress {
            rows.extend(catalogue::stress());
            rows.extend(catalogue::http2_stress(&request));
        }
        Ok(rows)
    }

    /// Sends all inputs and returns the findings.
    async fn find(&self, mut rows: Vec<Row>) -> anyhow::Result<CheckResults> {
        if let Some(address) = self.listen {
            let progress = progress::Progress::new(&rows);
            let tell = |finding: &Finding| progress.tell(finding);
            let manner = (self.deadline, !self.no_echo, self.tls()?);
            let command = self.run.as_deref();
            let checked = client::check(address, command, &rows, manner, tell).await;
            let (name, findings) = checked?;
            return Ok(CheckResults {
                name,
                rows,
                findings,
                left_out: Vec::new(),
                process: None,
            });
        }
        let url = self.url.as_deref().context("no URL given")?;
        let plan = self.plan(url)?;
        let greeted = greet(&plan).await;
        greeted.map_err(|came| {
            anyhow::anyhow!("{url} did not open a WebSocket{}: {came}", self.over())
        })?;
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
        Ok(CheckResults {
            name: format!("{url}{}", self.over()),
            rows,
            findings,
            left_out,
            process: aftermath.map(|aftermath| aftermath.to_string()),
        })
    }

    /// Returns the TLS configuration for clients, or `None` if they connect without TLS.
    fn tls(&self) -> anyhow::Result<Option<Arc<ServerConfig>>> {
        match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => certificate::from_files(certificate, key).map(Some),
            _ if self.tls_self_signed => certificate::self_signed().map(Some),
            _ => Ok(None),
        }
    }

    /// Returns the process to observe, if `--pid` is given.
    fn victim(&self) -> anyhow::Result<Option<Victim>> {
        let Some(pid) = self.pid else {
            return Ok(None);
        };
        if !self.stress && self.patience.is_none() {
            bail!("--pid requires --stress or --patience");
        }
        let victim = Victim::new(pid);
        let victim = victim.with_context(|| format!("cannot observe process {pid}"))?;
        Ok(Some(victim))
    }

    /// Returns the text to show after the URL if it is reached over HTTP/2, which the URL does not
    /// say.
    fn over(&self) -> &'static str {
        if self.http2 { " over HTTP/2" } else { "" }
    }

    /// Removes the rows that do not apply to this server; returns what was left out, and why.
    async fn leave_out(&self, plan: &Plan, rows: &mut Vec<Row>) -> Vec<String> {
        let mut left_out = Vec::new();
        if rows.iter().any(Row::is_over_http2) {
            let why = if self.no_echo {
                Some("which requires a server that echoes messages")
            } else if !offers_http2(plan).await {
                Some("over which the server does not accept WebSockets")
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
            left_out.push("TLS, which requires a wss: URL".into());
        }
        if !self.stress && self.only.is_empty() {
            left_out.push("floods and bombs, which require --stress".into());
        }
        if self.patience.is_none() && self.only.is_empty() {
            left_out.push("deadlines of the server, which require --patience SECONDS".into());
        }
        left_out
    }

    fn plan(&self, url: &str) -> anyhow::Result<Plan> {
        let config = if self.insecure {
            Arc::new(linerate::tls::danger_client_config_trusting_anybody())
        } else {
            linerate::tls::default_client_config()
        };
        let target = Target::new(url, &self.header, config);
        let target = target.with_context(|| format!("cannot check {url}"))?;
        if self.stress && !self.i_own_this_server && !target.is_loopback() {
            bail!("{url} is not on this machine; if you own it, add --i-own-this-server");
        }
        Ok(Plan {
            target,
            jobs: self.jobs.into(),
            patience: self.deadline,
            echoes: !self.no_echo,
            http2: self.http2,
        })
    }

    /// Prints the report; returns the exit status.
    fn report(&self, found: &CheckResults) -> anyhow::Result<ExitCode> {
        let CheckResults { rows, findings, .. } = found;
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
            print(&(lines.collect::<String>() + &report::summary_line(&report) + "\n"))?;
        } else {
            print(&report::text(&report))?;
        }
        if let Some(file) = &self.html {
            let written = fs::write(file, report::html(&report));
            written.with_context(|| format!("cannot write {}", file.display()))?;
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

/// Sends the rows of a range. The row numbers in the findings are indexes into all `rows`.
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

/// Returns the rows selected by `--only`, or all of them.
fn selected(mut rows: Vec<Row>, only: &[String]) -> anyhow::Result<Vec<Row>> {
    for part in only {
        if !rows.iter().any(|row| row.is_meant_by(part)) {
            bail!("no row matches {part:?}; see `linerate check --list`");
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
