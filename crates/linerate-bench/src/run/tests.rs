//! Tests of runs whose subjects have no server and whose load is a script.

use std::cell::{Cell as StdCell, RefCell};
use std::io;

use super::*;
use crate::cell::Mode;
use crate::load::{Usage, Wire};
use crate::scenario::{Effort, Scenario};
use crate::server::ServerError;

/// A subject that logs when its server is started.
#[derive(Debug)]
struct Fake<'a> {
    name: &'static str,
    /// The log of starts and measurements.
    log: &'a RefCell<Vec<String>>,
    lacks: Option<&'static str>,
    may_decline: bool,
    warm_up: Duration,
    starts: bool,
}

impl<'a> Fake<'a> {
    fn new(name: &'static str, log: &'a RefCell<Vec<String>>) -> Self {
        Self {
            name,
            log,
            lacks: None,
            may_decline: false,
            warm_up: Duration::ZERO,
            starts: true,
        }
    }
}

impl Subject for Fake<'_> {
    fn name(&self) -> &str {
        self.name
    }

    fn lacks(&self, _cell: &Cell) -> Option<String> {
        self.lacks.map(String::from)
    }

    fn may_decline(&self, _error: &LoadError) -> bool {
        self.may_decline
    }

    fn warm_up(&self) -> Duration {
        self.warm_up
    }

    fn start(&self, _mode: Mode) -> Result<Box<dyn RunningServer + '_>, ServerError> {
        self.log.borrow_mut().push(format!("start {}", self.name));
        if !self.starts {
            return Err(ServerError::Ended("the server exited with status 1".into()));
        }
        Ok(Box::new(FakeServer(Target {
            address: ([127, 0, 0, 1], 1).into(),
            host: self.name.into(),
            path: "/".into(),
            wire: Wire::WebSocket,
            tls: None,
        })))
    }
}

#[derive(Debug)]
struct FakeServer(Target);

impl RunningServer for FakeServer {
    fn target(&self) -> &Target {
        &self.0
    }

    fn wait_until_idle(&mut self) {}

    fn end(&mut self) -> Option<String> {
        Some("the server was killed by signal 11".into())
    }
}

impl Probe for FakeServer {
    fn usage(&mut self) -> io::Result<Option<Usage>> {
        Ok(None)
    }

    fn reset_peak(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn cores(&self) -> u32 {
        1
    }
}

/// Plans the cells of one scenario with three rounds each.
fn plan(cells: &str) -> Plan {
    let text = format!("title = 'a'\nabout = 'b'\n[[cells]]\n{cells}\n");
    let scenario = Scenario::parse("some", &text).unwrap();
    Plan::new(
        &[scenario],
        Effort::Standard,
        3,
        Effort::Standard.budgets().each,
        &Selection::default(),
    )
    .unwrap()
}

const ECHO: &str = "kind = 'echo'\nconnections = [1, 2]\npayload-bytes = 8";

/// A journal in a temporary folder.
struct Book {
    folder: tempfile::TempDir,
}

impl Book {
    fn new(plan: &Plan) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let text = r#"{
            "format": 1, "effort": "", "started": "", "command": "", "rounds": 3, "measured_ms": 1,
            "warm_up_ms": 1, "linerate": "", "host": {
                "cpu": "", "server_cores": [], "load_cores": [], "cores": 2, "memory_bytes": 1,
                "kernel": "", "hypervisor": "", "governor": "", "mitigations": [], "tools": []
            }, "scenarios": [], "contenders": []
        }"#;
        let run = serde_json::from_str(text).unwrap();
        let book = Self { folder };
        let mut journal = Journal::create(&book.path(), &run).unwrap();
        for planned in &plan.cells {
            journal.append(&Line::Cell(planned.cell.clone())).unwrap();
        }
        book
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("record.jsonl")
    }

    /// Starts a run, or resumes it.
    fn run(&self, plan: &Plan, subjects: Vec<Fake<'_>>, measure: Measure<'_>) -> End {
        self.run_until(plan, subjects, measure, &AtomicBool::new(false))
    }

    fn run_until(
        &self,
        plan: &Plan,
        subjects: Vec<Fake<'_>>,
        measure: Measure<'_>,
        stop: &AtomicBool,
    ) -> End {
        let (mut journal, done) = Journal::resume(&self.path()).unwrap();
        let run = Run {
            plan,
            subjects: subjects
                .iter()
                .map(|subject| subject as &dyn Subject)
                .collect(),
            load_cores: &[0],
            stop,
        };
        run.make(measure, &mut journal, &done, &mut Progress::hidden())
            .unwrap()
    }

    /// Returns a line for each measurement: cell, contender, round, and the outcome if there are no
    /// figures.
    fn lines(&self) -> Vec<String> {
        let record = Record::read(&self.path()).unwrap();
        let measurements = record.measurements.iter();
        measurements
            .map(|measurement| {
                let outcome = match &measurement.outcome {
                    Outcome::Failed { reason } => format!(" failed: {reason}"),
                    Outcome::LoadBound(_) => " load-bound".into(),
                    Outcome::Measured(_) => String::new(),
                    Outcome::Unsupported { reason } => format!(" unsupported: {reason}"),
                };
                let Measurement {
                    cell,
                    contender,
                    round,
                    ..
                } = measurement;
                format!("{cell} {contender} {round}{outcome}")
            })
            .collect()
    }
}

fn half_a_second() -> Figures {
    Figures {
        elapsed_s: 0.5,
        messages: 100.0,
        load_cpu_s: 0.1,
        load_threads: 1,
        ..Figures::default()
    }
}

#[test]
fn contenders_take_turns_with_servers_that_stay() {
    let log = RefCell::new(Vec::new());
    let plan = plan(ECHO);
    let book = Book::new(&plan);
    let measure: Measure<'_> = &|_, target, _, _, _| {
        log.borrow_mut().push(target.host.clone());
        Ok(half_a_second())
    };
    let subjects = vec![Fake::new("a", &log), Fake::new("b", &log)];
    assert_eq!(book.run(&plan, subjects, measure), End::Complete);
    assert_eq!(
        log.borrow().join(", "),
        "start a, a, start b, b, b, a, a, b, a, b, b, a, a, b"
    );
    let lines = book.lines();
    assert_eq!(lines.len(), 12);
    assert_eq!(
        lines[..3],
        [
            "some/8B-1c-1w a 0",
            "some/8B-1c-1w b 0",
            "some/8B-1c-1w b 1"
        ]
    );
}

#[test]
fn who_fails_gets_a_new_server_and_after_two_failures_waits_for_the_next_cell() {
    let log = RefCell::new(Vec::new());
    let plan = plan(ECHO);
    let book = Book::new(&plan);
    let measure: Measure<'_> = &|load, _, _, _, _| match load {
        Load::Echo(echo) if echo.connections == 1 => Err(LoadError::Ended),
        _ => Ok(half_a_second()),
    };
    book.run(&plan, vec![Fake::new("a", &log)], measure);
    let failed = "failed: the server ended the connection without a Close frame; \
        the server was killed by signal 11";
    assert_eq!(
        book.lines(),
        [
            &format!("some/8B-1c-1w a 0 {failed}"),
            &format!("some/8B-1c-1w a 1 {failed}"),
            "some/8B-2c-1w a 0",
            "some/8B-2c-1w a 1",
            "some/8B-2c-1w a 2",
        ]
    );
    assert_eq!(log.borrow().len(), 3, "two servers failed, one stayed");
}

#[test]
fn a_server_that_does_not_start_is_a_failure() {
    let log = RefCell::new(Vec::new());
    let plan = plan(ECHO);
    let book = Book::new(&plan);
    let subject = Fake {
        starts: false,
        ..Fake::new("a", &log)
    };
    book.run(&plan, vec![subject], &|_, _, _, _, _| panic!("no server"));
    let lines = book.lines();
    assert_eq!(lines.len(), 4);
    assert_eq!(
        lines[0],
        "some/8B-1c-1w a 0 failed: the server exited with status 1"
    );
}

#[test]
fn what_is_not_offered_is_said_once_in_each_cell() {
    let log = RefCell::new(Vec::new());
    let plan = plan(ECHO);
    let book = Book::new(&plan);
    let lacking = Fake {
        lacks: Some("TLS is not offered"),
        ..Fake::new("a", &log)
    };
    let declining = Fake {
        may_decline: true,
        ..Fake::new("b", &log)
    };
    book.run(&plan, vec![lacking, declining], &|_, _, _, _, _| {
        Err(LoadError::DeflateDeclined)
    });
    assert_eq!(
        book.lines(),
        [
            "some/8B-1c-1w a 0 unsupported: TLS is not offered",
            "some/8B-1c-1w b 0 unsupported: the server declined to compress",
            "some/8B-2c-1w a 0 unsupported: TLS is not offered",
            "some/8B-2c-1w b 0 unsupported: the server declined to compress",
        ]
    );
}

#[test]
fn a_run_that_was_stopped_anywhere_goes_on_where_it_was() {
    let log = RefCell::new(Vec::new());
    let plan = plan(ECHO);
    let subjects = || {
        let lacking = Fake {
            lacks: Some("TLS is not offered"),
            ..Fake::new("c", &log)
        };
        vec![Fake::new("a", &log), Fake::new("b", &log), lacking]
    };
    let fails_in_pairs = |load: &Load, target: &Target| match load {
        Load::Echo(echo) if echo.connections == 2 && target.host == "b" => Err(LoadError::Ended),
        _ => Ok(half_a_second()),
    };
    let whole = Book::new(&plan);
    let measure: Measure<'_> = &|load, target, _, _, _| fails_in_pairs(load, target);
    whole.run(&plan, subjects(), measure);
    let all = whole.lines();
    for stop_after in 1..all.len() {
        let (stop, count) = (AtomicBool::new(false), StdCell::new(0));
        let stopping: Measure<'_> = &|load, target, _, _, _| {
            count.set(count.get() + 1);
            stop.store(count.get() >= stop_after, Ordering::Relaxed);
            fails_in_pairs(load, target)
        };
        let book = Book::new(&plan);
        let end = book.run_until(&plan, subjects(), stopping, &stop);
        let kept = book.lines();
        assert_eq!(kept, all[..kept.len()]);
        if end == End::Stopped {
            assert_eq!(book.run(&plan, subjects(), measure), End::Complete);
        }
        assert_eq!(book.lines(), all, "{stop_after}");
        book.run(&plan, subjects(), &|_, _, _, _, _| panic!("all is done"));
    }
}

#[test]
fn what_the_load_can_not_do_is_no_failure_of_the_server() {
    let log = RefCell::new(Vec::new());
    let plan = plan(ECHO);
    let book = Book::new(&plan);
    let asked = StdCell::new(0);
    book.run(&plan, vec![Fake::new("a", &log)], &|_, _, _, _, _| {
        asked.set(asked.get() + 1);
        Err(LoadError::Unseen)
    });
    assert_eq!(book.lines(), Vec::<String>::new());
    assert_eq!(asked.get(), 2, "once in each cell");
    book.run(&plan, vec![Fake::new("a", &log)], &|_, _, _, _, _| {
        Ok(half_a_second())
    });
    assert_eq!(book.lines().len(), 6);
}

#[test]
fn a_new_server_is_warmed_up_once() {
    let log = RefCell::new(Vec::new());
    let plan = plan(ECHO);
    let book = Book::new(&plan);
    let subject = Fake {
        warm_up: Duration::from_secs(7),
        ..Fake::new("a", &log)
    };
    let measured = RefCell::new(Vec::new());
    book.run(&plan, vec![subject], &|_, _, budget, _, _| {
        measured.borrow_mut().push(budget.measured);
        Ok(half_a_second())
    });
    let measured = measured.into_inner();
    assert_eq!(measured.len(), 7);
    assert_eq!(measured[0], Duration::from_secs(7));
    assert!(
        measured[1..]
            .iter()
            .all(|&time| time == plan.budget.measured)
    );
    assert_eq!(book.lines().len(), 6);
}

#[test]
fn idle_connections_have_a_new_server_each_time() {
    let log = RefCell::new(Vec::new());
    let plan = plan("kind = 'idle'\nconnections = 10\npayload-bytes = 8");
    let book = Book::new(&plan);
    book.run(&plan, vec![Fake::new("a", &log)], &|_, _, _, _, _| {
        Ok(half_a_second())
    });
    assert_eq!(log.borrow().join(", "), "start a, start a, start a");
    assert_eq!(book.lines().len(), 3);
}

#[test]
fn figures_that_are_about_the_load_are_marked() {
    let log = RefCell::new(Vec::new());
    let plan = plan(ECHO);
    let book = Book::new(&plan);
    book.run(&plan, vec![Fake::new("a", &log)], &|_, _, _, _, _| {
        Ok(Figures {
            load_cpu_s: 0.49,
            ..half_a_second()
        })
    });
    assert_eq!(book.lines()[0], "some/8B-1c-1w a 0 load-bound");
}
