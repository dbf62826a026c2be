//! Measures what abusive clients do to our servers and to their other clients: `make stress`.
//!
//! Each row is an abuse of a server, which runs in its own process and also serves live clients
//! that behave well. The results are reported next to their bounds: the server's memory, its open
//! files, and how long the live clients wait for their answers, with the abuse and without it. The
//! exit status is 1 if a bound is exceeded.
//!
//! On one machine, attackers take CPU time from the server that they attack. The aim is to measure
//! how a server shares its time, not what is left of a machine with two cores. Therefore latency is
//! measured with kernel timestamps ([`live`]), live clients have the highest priority and attackers
//! the lowest ([`cores`]), and slices with the abuse alternate with slices without it
//! ([`figures`]).
#![forbid(unsafe_code)]

mod attack;
mod audience;
mod child;
mod cores;
mod figures;
mod library;
mod live;
mod million;
mod outcome;
mod reactor;
mod roam;
mod serve;
mod table;
mod takeover;
mod trust;
mod waits;
mod websocket;

use std::{
    env, fs,
    io::{self, ErrorKind, Write},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};
use linerate_harness::process::raise_file_limit;
use linerate_reactor::DriverKind;

use self::{
    attack::Abuse,
    figures::Effort,
    million::{crowd, plan::Plan},
    outcome::Outcome,
};

/// Measures what abusive clients do to our servers and to their other clients.
///
/// Do not use the machine for anything else meanwhile. The exit status is 1 if a bound is exceeded.
/// If the host of a virtual machine takes more than 1 % of its CPU time while live clients wait too
/// long, the row gets no verdict on that.
#[derive(Debug, Parser)]
#[command(name = "linerate-stress")]
struct Cli {
    #[command(subcommand)]
    role: Option<Role>,
    /// Run only rows whose names contain PART; may be repeated
    #[arg(long, value_name = "PART")]
    only: Vec<String>,
    /// Print the names of the rows and exit
    #[arg(long)]
    list: bool,
    /// Multiply the connections in rows with thousands of them, and the restarts, by this factor
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    scale: f64,
    /// Number of slices with the abuse; there are as many without it
    #[arg(long, value_name = "N", default_value_t = 7)]
    slices: usize,
    /// The linerate binary to run as the server [default: linerate next to this program]
    #[arg(long, value_name = "FILE", env = "LINERATE_BIN")]
    linerate: Option<PathBuf>,
    /// Write the results to a file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the table to a file as Markdown
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// The role of a process that this program starts from its own binary.
#[derive(Debug, Subcommand)]
enum Role {
    #[command(name = attack::ATTACK, hide = true)]
    Attack {
        abuse: Abuse,
        server: SocketAddr,
        peers: usize,
    },
    #[command(name = audience::AUDIENCE, hide = true)]
    Audience { server: SocketAddr, count: usize },
    #[command(name = roam::ROAM, hide = true)]
    Roam {
        count: usize,
        nodes: Vec<SocketAddr>,
    },
    #[command(name = library::SERVE, hide = true)]
    Library,
    #[command(name = reactor::SERVE, hide = true)]
    Reactor { driver: DriverKind },
    #[command(name = crowd::CROWD, hide = true)]
    Crowd {
        number: u32,
        subscribers: u32,
        channels: u32,
        nodes: u32,
        port: u16,
    },
    /// Connect a million subscribers to many nodes with one Redis, publish, restart nodes, and
    /// prove that nothing was lost without the subscribers being told.
    #[command(name = million::MILLION)]
    Million(million::Arguments),
    /// Replace a server with thousands of clients again and again, and check that no client notices
    /// anything.
    #[command(name = takeover::TAKEOVER)]
    Takeover(takeover::Arguments),
}

/// An abuse of a server, and how to run it.
struct Row {
    name: String,
    run: Box<Run>,
}

type Run = dyn Fn(&Effort) -> Result<Outcome>;

impl Row {
    fn new(name: impl Into<String>, run: impl Fn(&Effort) -> Result<Outcome> + 'static) -> Self {
        Self {
            name: name.into(),
            run: Box::new(run),
        }
    }
}

fn main() -> Result<ExitCode> {
    let cli = Cli::parse();
    let files_max = raise_file_limit()?;
    match &cli.role {
        Some(Role::Attack {
            abuse,
            server,
            peers,
        }) => attack::run_commands(*abuse, *server, *peers)?,
        Some(Role::Audience { server, count }) => audience::listen(*server, *count)?,
        Some(Role::Roam { count, nodes }) => roam::roam(nodes, *count)?,
        Some(Role::Library) => library::serve()?,
        Some(Role::Reactor { driver }) => reactor::serve(*driver)?,
        Some(Role::Crowd {
            number,
            subscribers,
            channels,
            nodes,
            port,
        }) => {
            let plan = Plan {
                subscribers: *subscribers,
                channels: *channels,
                nodes: *nodes,
                port: *port,
            };
            crowd::run(plan, *number)?;
        }
        Some(Role::Million(arguments)) => {
            let linerate = linerate(arguments.linerate.as_deref())?;
            return Ok(match million::run(arguments, &linerate, files_max)? {
                true => ExitCode::SUCCESS,
                false => ExitCode::FAILURE,
            });
        }
        Some(Role::Takeover(arguments)) => {
            let linerate = linerate(arguments.linerate.as_deref())?;
            return Ok(match takeover::run(arguments, &linerate)? {
                true => ExitCode::SUCCESS,
                false => ExitCode::FAILURE,
            });
        }
        None => return stress(&cli),
    }
    Ok(ExitCode::SUCCESS)
}

fn stress(cli: &Cli) -> Result<ExitCode> {
    let rows = chosen(cli)?;
    if cli.list {
        rows.iter().try_for_each(|row| print(&row.name))?;
        return Ok(ExitCode::SUCCESS);
    }
    let effort = Effort {
        scale: cli.scale,
        slices: cli.slices.max(1),
        linerate: linerate(cli.linerate.as_deref())?,
    };
    cores::go_first();
    let mut outcomes = Vec::new();
    let mut is_good = true;
    for row in &rows {
        match (row.run)(&effort) {
            Ok(outcome) => {
                print(&table::text(&row.name, &outcome))?;
                is_good &= outcome.broken().is_empty();
                outcomes.push((row.name.clone(), outcome));
            }
            Err(error) => {
                print(&format!("{}\n  BROKEN: {error:#}", row.name))?;
                is_good = false;
            }
        }
    }
    if let Some(path) = &cli.json {
        fs::write(path, table::json(&outcomes)?).with_context(|| path.display().to_string())?;
    }
    if let Some(path) = &cli.markdown {
        fs::write(path, table::markdown(&outcomes)).with_context(|| path.display().to_string())?;
    }
    Ok(match is_good {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Prints a line to standard output.
fn print(line: &str) -> io::Result<()> {
    match writeln!(io::stdout(), "{line}") {
        // The reader closed the pipe early, as `head` does.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

fn chosen(cli: &Cli) -> Result<Vec<Row>> {
    let mut rows = reactor::rows();
    rows.extend(library::rows());
    rows.extend(serve::rows());
    if !cli.only.is_empty() {
        rows.retain(|row| cli.only.iter().any(|part| row.name.contains(part)));
    }
    if rows.is_empty() {
        bail!("no row matches --only; use --list to see their names");
    }
    Ok(rows)
}

/// Returns the path of the linerate binary to run.
fn linerate(given: Option<&Path>) -> Result<PathBuf> {
    let path = match given {
        Some(path) => path.to_owned(),
        None => env::current_exe()?.with_file_name("linerate"),
    };
    if !path.is_file() {
        bail!(
            "{} does not exist; run `make build` to build it",
            path.display()
        );
    }
    Ok(path)
}
