//! `linerate bench` without a subcommand: runs the benchmark.

use std::{env, ffi::OsString, path::PathBuf, time::Duration};

use anyhow::{Context, bail};
use clap::Args;
use linerate_bench::{
    contender::{Contender, Program},
    host::{self, Cores},
    load,
    progress::Progress,
    record::{ContenderNote, FORMAT, Journal, Line, Record, Run as RunLine},
    run::{End, Local, Plan, Remote, Run, Selection, Subject},
    scenario::Effort,
    server::{Certificate, Launcher},
};
use linerate_harness::cores::pin;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use super::{
    launch, place, remote, report,
    resume::{self, PreparedRun},
    stop,
};

/// Upper limit of `--measured-ms`: ten minutes.
const MEASURED_MS_MAX: u64 = 600_000;

/// Selects what is measured, how often, and where the record is written.
#[derive(Args, Clone, Debug)]
// The command's own `Arguments` already define a group with this name.
#[group(skip)]
pub(super) struct Arguments {
    /// How much to measure: quick (takes minutes), standard (half an hour) or thorough.
    #[arg(long, default_value_t = Effort::Quick)]
    effort: Effort,

    /// Run only the scenario with this name; may be repeated.
    #[arg(long, value_name = "NAME")]
    scenario: Vec<String>,

    /// Run only cells whose name, SCENARIO/CELL, contains PART, even if the effort would leave them
    /// out; may be repeated.
    #[arg(long, value_name = "PART")]
    cell: Vec<String>,

    /// Measure only the contender with this name; may be repeated.
    #[arg(long, value_name = "NAME")]
    contender: Vec<String>,

    /// Number of measurements of each contender in each cell [default: 3, 5 or 11, depending on the
    /// effort].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: Option<u32>,

    /// Duration of each measurement in milliseconds [default: 100, 150 or 1000, depending on the
    /// effort].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MEASURED_MS_MAX))]
    measured_ms: Option<u64>,

    /// Where to write the record [default: bench/record/DATE-EFFORT.jsonl in a checkout, otherwise
    /// linerate-bench-DATE.jsonl].
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Continue the run of this record, with the same cells, contenders and durations.
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "effort", "scenario", "cell", "contender", "rounds", "measured_ms", "record", "scenarios_dir", "server_cores",
        "load_cores",
    ])]
    resume: Option<PathBuf>,

    /// CPU cores for the servers, for example 0,1 [default: the first half].
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    server_cores: Option<Vec<u32>>,

    /// CPU cores for the load generator, for example 2,3 [default: the cores that the servers do
    /// not use].
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    load_cores: Option<Vec<u32>>,

    #[command(flatten)]
    pub(super) places: place::Arguments,

    #[command(flatten)]
    pub(super) remote: remote::Arguments,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let remote = arguments.remote.find()?;
    let contenders = match &remote {
        Some(_) => Vec::new(),
        None => arguments.contenders()?,
    };
    let notes = match &remote {
        Some(remote) => vec![remote.note()],
        None => contenders.iter().map(Contender::note).collect(),
    };
    let mut prepared = match &arguments.resume {
        Some(path) => resume::prepare(path, &notes)?,
        None => arguments.prepare(notes, remote.as_ref())?,
    };
    warn(&prepared.cores);
    let certificate = Certificate::new()?;
    let launcher =
        Launcher::this_binary(&launch::VERBS).context("cannot find the path of this binary")?;
    let locals: Vec<Local<'_>> = contenders
        .iter()
        .filter(|contender| prepared.takes_part(&contender.name))
        .map(|contender| Local {
            contender,
            launcher: &launcher,
            cores: &prepared.cores.server,
            certificate: &certificate,
        })
        .collect();
    let locals = locals.iter().map(|local| local as &dyn Subject);
    let remotes = remote.iter().map(|remote| remote as &dyn Subject);
    let stop = stop::on_signal().context("cannot install signal handlers")?;
    pin(&prepared.cores.load).context("cannot pin the load generator to its cores")?;
    let mut progress = Progress::on_stderr();
    let run = Run {
        plan: &prepared.plan,
        subjects: remotes.chain(locals).collect(),
        load_cores: &prepared.cores.load,
        stop: &stop,
    };
    let end = run.make(
        &load::measure,
        &mut prepared.journal,
        &prepared.done,
        &mut progress,
    )?;
    drop(progress);
    let path = prepared.journal.path();
    if end == End::Stopped {
        bail!(
            "stopped before the end; finished measurements are in {0}; continue with: linerate bench --resume {0}{1}",
            path.display(),
            arguments
                .remote
                .url
                .as_ref()
                .map_or(String::new(), |url| format!(" --url {url}"))
        );
    }
    report::write(path, None)
}

impl Arguments {
    /// Returns the contenders selected by `--contender`, or all of them.
    fn contenders(&self) -> anyhow::Result<Vec<Contender>> {
        let mut contenders = self.places.contenders()?;
        for name in &self.contender {
            let Some(contender) = contenders.iter().find(|contender| contender.name == *name)
            else {
                let names: Vec<&str> = contenders
                    .iter()
                    .map(|contender| contender.name.as_str())
                    .collect();
                bail!(
                    "unknown contender {name:?}; available: {}",
                    names.join(", ")
                );
            };
            if let Program::Absent(reason) = &contender.program {
                bail!("contender {name} is absent: {reason}");
            }
        }
        if !self.contender.is_empty() {
            contenders.retain(|contender| self.contender.contains(&contender.name));
        }
        if contenders
            .iter()
            .all(|contender| matches!(contender.program, Program::Absent(_)))
        {
            bail!("no contender has been built; run `make contenders`");
        }
        Ok(contenders)
    }

    /// Starts a new record.
    fn prepare(
        &self,
        contenders: Vec<ContenderNote>,
        remote: Option<&Remote>,
    ) -> anyhow::Result<PreparedRun> {
        let mut budgets = self.effort.budgets();
        budgets.rounds = self.rounds.unwrap_or(budgets.rounds);
        if let Some(measured_ms) = self.measured_ms {
            budgets.each.measured = Duration::from_millis(measured_ms);
        }
        let selection = Selection {
            scenarios: self.scenario.clone(),
            cells: self.cell.clone(),
        };
        let scenarios = self.places.scenarios()?;
        let mut plan = Plan::new(
            &scenarios,
            self.effort,
            budgets.rounds,
            budgets.each,
            &selection,
        )?;
        if let Some(remote) = remote {
            remote.adapt(&mut plan);
        }
        let cores = Cores::choose(self.server_cores.clone(), self.load_cores.clone())?;
        let now = OffsetDateTime::now_utc();
        let run = RunLine {
            format: FORMAT,
            effort: self.effort.name().into(),
            started: now.replace_nanosecond(0)?.format(&Rfc3339)?,
            command: command_line(env::args_os()),
            rounds: budgets.rounds,
            measured_ms: budgets.each.measured.as_millis() as u64,
            warm_up_ms: budgets.each.warm_up.as_millis() as u64,
            linerate: env!("CARGO_PKG_VERSION").into(),
            host: host::describe(&cores),
            scenarios: plan.scenarios.clone(),
            contenders,
        };
        let path = match &self.record {
            Some(path) => path.clone(),
            None => place::new_record(
                &now.date().to_string(),
                self.effort.name(),
                remote.is_none(),
            )?,
        };
        let mut journal = Journal::create(&path, &run)?;
        let cells: Vec<_> = plan
            .cells
            .iter()
            .map(|planned| planned.cell.clone())
            .collect();
        for cell in &cells {
            journal.append(&Line::Cell(cell.clone()))?;
        }
        let done = Record {
            run,
            cells,
            measurements: Vec::new(),
        };
        Ok(PreparedRun {
            plan,
            cores,
            journal,
            done,
        })
    }
}

/// Warns about conditions that make the measurements less reliable.
fn warn(cores: &Cores) {
    if cores.are_shared() {
        eprintln!(
            "Warning: servers and the load generator share cores and will slow each other down."
        );
    }
    if let Some(busy) = host::disturbance() {
        eprintln!(
            "Warning: other processes use {:.0} % of this machine's CPU time; the figures will be noisy.",
            100.0 * busy
        );
    }
}

/// Returns the command line as a user would type it, without the path of the binary.
fn command_line(mut arguments: impl Iterator<Item = OsString>) -> String {
    _ = arguments.next();
    let words = arguments.map(|argument| quote(&argument.to_string_lossy()));
    let mut line = vec!["linerate".to_owned()];
    line.extend(words);
    line.join(" ")
}

fn quote(word: &str) -> String {
    let is_plain = |char: char| char.is_alphanumeric() || "-_./:,=@%+".contains(char);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::command_line;

    #[test]
    fn the_command_line_can_be_typed_again() {
        let words = [
            "/some/where/linerate",
            "bench",
            "--url",
            "ws://a/?b&c",
            "--cell",
            "it's",
        ];
        assert_eq!(
            command_line(words.into_iter().map(Into::into)),
            r"linerate bench --url 'ws://a/?b&c' --cell 'it'\''s'"
        );
    }
}
