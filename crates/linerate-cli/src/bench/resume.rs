//! A run that can begin or continue, and `linerate bench --resume`, which continues a record.

use std::{path::Path, time::Duration};

use anyhow::{Context, bail};
use linerate_bench::{
    host::{self, Cores},
    load::Budget,
    record::{ContenderNote, Host, Journal, Record, Run},
    run::Plan,
    scenario::Effort,
};

/// What a run needs in addition to the servers it measures.
pub(super) struct PreparedRun {
    pub(super) plan: Plan,
    pub(super) cores: Cores,
    pub(super) journal: Journal,
    /// The measurements already in the record.
    pub(super) done: Record,
}

impl PreparedRun {
    /// Returns whether the contender with this name is measured.
    pub(super) fn takes_part(&self, name: &str) -> bool {
        let mut notes = self.done.run.contenders.iter();
        notes.any(|note| note.name == name && note.absent.is_none())
    }
}

/// Opens a record to continue it. Fails if the machine, the contenders or the version of linerate
/// have changed since the run began.
pub(super) fn prepare(path: &Path, contenders: &[ContenderNote]) -> anyhow::Result<PreparedRun> {
    let (journal, done) = Journal::resume(path)?;
    let run = &done.run;
    let begun_with = &run.host;
    let cores = Cores::choose(
        Some(begun_with.server_cores.clone()),
        Some(begun_with.load_cores.clone()),
    )
    .with_context(|| format!("cannot resume {}", path.display()))?;
    let mut differences = compare_hosts(begun_with, &host::describe(&cores));
    differences.extend(compare_contenders(run, contenders));
    if run.linerate != env!("CARGO_PKG_VERSION") {
        differences.push(format!(
            "linerate version: was {}, now {}",
            run.linerate,
            env!("CARGO_PKG_VERSION")
        ));
    }
    if !differences.is_empty() {
        bail!(
            "cannot resume {}: new measurements would not be comparable with the recorded ones:\n  {}",
            path.display(),
            differences.join("\n  ")
        );
    }
    let budget = Budget {
        warm_up: Duration::from_millis(run.warm_up_ms),
        measured: Duration::from_millis(run.measured_ms),
        // It does not affect measurements and is the same for all efforts.
        silence_max: Effort::Standard.budgets().each.silence_max,
    };
    Ok(PreparedRun {
        plan: Plan::resumed(&done, budget),
        cores,
        journal,
        done,
    })
}

/// Describes the differences between two machines that affect measurements.
fn compare_hosts(then: &Host, now: &Host) -> Vec<String> {
    type Field = (&'static str, fn(&Host) -> String);
    const FIELDS: [Field; 6] = [
        ("processor", |host| host.cpu.clone()),
        ("kernel", |host| host.kernel.clone()),
        ("hypervisor", |host| host.hypervisor.clone()),
        ("frequency governor", |host| host.governor.clone()),
        ("number of cores", |host| host.cores.to_string()),
        ("mitigations", |host| host.mitigations.join("; ")),
    ];
    FIELDS
        .into_iter()
        .map(|(what, of)| (what, of(then), of(now)))
        .filter(|(_, then, now)| then != now)
        .map(|(what, then, now)| format!("{what}: was {then:?}, now {now:?}"))
        .collect()
}

/// Describes the contenders that took part in the run and are now missing, absent or different.
fn compare_contenders(run: &Run, now: &[ContenderNote]) -> Vec<String> {
    let took_part = run.contenders.iter().filter(|note| note.absent.is_none());
    took_part
        .filter_map(|then| {
            let name = &then.name;
            let Some(now) = now.iter().find(|note| note.name == *name) else {
                return Some(format!("contender {name}: manifest no longer found"));
            };
            if let Some(reason) = &now.absent {
                return Some(format!("contender {name}: now absent: {reason}"));
            }
            ((&then.title, &then.version) != (&now.title, &now.version)).then(|| {
                format!(
                    "contender {name}: was {} {}, now {} {}",
                    then.title, then.version, now.title, now.version
                )
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(name: &str, version: &str) -> ContenderNote {
        ContenderNote {
            name: name.into(),
            title: name.to_uppercase(),
            language: String::new(),
            version: version.into(),
            notes: String::new(),
            absent: None,
        }
    }

    fn run_with(contenders: Vec<ContenderNote>) -> Run {
        let cores = Cores::choose(None, None).unwrap();
        Run {
            format: 1,
            effort: "quick".into(),
            started: String::new(),
            command: String::new(),
            rounds: 3,
            measured_ms: 1,
            warm_up_ms: 1,
            linerate: String::new(),
            host: host::describe(&cores),
            scenarios: Vec::new(),
            contenders,
        }
    }

    #[test]
    fn another_machine_is_told_by_what_differs() {
        let run = run_with(Vec::new());
        assert_eq!(compare_hosts(&run.host, &run.host), Vec::<String>::new());
        let other = Host {
            cpu: "other".into(),
            cores: 1_000,
            // New tools do not make it a different machine.
            tools: vec!["rustc 99".into()],
            ..run.host.clone()
        };
        let differences = compare_hosts(&run.host, &other);
        assert_eq!(differences.len(), 2);
        assert!(differences[0].ends_with("now \"other\""));
    }

    #[test]
    fn contenders_have_to_be_the_same() {
        let absent = ContenderNote {
            absent: Some("no go".into()),
            ..note("c", "1")
        };
        let run = run_with(vec![
            note("a", "1"),
            note("b", "1"),
            note("c", "1"),
            absent.clone(),
        ]);
        let now = [note("a", "1"), note("b", "2"), absent];
        assert_eq!(
            compare_contenders(&run, &now),
            [
                "contender b: was B 1, now B 2",
                "contender c: now absent: no go",
            ]
        );
        assert_eq!(compare_contenders(&run, &[note("a", "1")]).len(), 2);
    }
}
