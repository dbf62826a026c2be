//! The interactive view of `linerate logs`, on a pseudo-terminal.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::Path,
    process::Command,
};

use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::support::made_log;
use crate::terminal::Terminal;

const ENTER: &str = "\r";
const DOWN: &str = "\x1b[B";
const TAB: &str = "\t";

/// A view of a log in a file.
struct Stage {
    terminal: Terminal,
    folder: TempDir,
}

impl Stage {
    fn new(log: &str, arguments: &[&str]) -> Self {
        Self::with(log, arguments, &[])
    }

    fn with(log: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("access.log");
        fs::write(&file, log).unwrap();
        // The size and the signals of a terminal are those of the controlling terminal.
        let mut command = Command::new("setsid");
        command.args(["--ctty", env!("CARGO_BIN_EXE_linerate"), "logs"]);
        command.arg(&file).args(arguments);
        command.env_remove("NO_COLOR").env("TERM", "xterm-256color");
        command.envs(variables.iter().copied());
        Self {
            terminal: Terminal::run(&mut command),
            folder,
        }
    }

    fn append(&self, text: &str) {
        let path: &Path = &self.folder.path().join("access.log");
        let mut file = OpenOptions::new().append(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }
}

/// Returns how many lines of a log contain a text.
fn count(log: &str, text: &str) -> usize {
    log.lines().filter(|line| line.contains(text)).count()
}

#[test]
fn enter_filters_by_a_value_and_q_restores_the_terminal() {
    let (log, _) = made_log(900);
    let mut stage = Stage::new(&log, &[]);
    let terminal = &mut stage.terminal;
    terminal.wait_for(" 900 requests");
    // The third table is that of statuses, and its second row that of 404.
    terminal.press(&format!("{TAB}{TAB}{DOWN}"));
    terminal.wait_for("▸      100  11.1 %");
    terminal.press(ENTER);
    let not_found = count(&log, "\" 404 ");
    terminal.wait_for(&format!(" {not_found} of 900 requests"));
    terminal.wait_for(" status == 404 ");
    terminal.press(&format!("/path == \"/page/1\"{ENTER}"));
    let of_both = log
        .lines()
        .filter(|line| line.contains("\" 404 ") && line.contains("/page/1 "));
    terminal.wait_for(&format!(" {} of 900 requests", of_both.count()));
    terminal.press("uu");
    terminal.wait_for(" 900 requests");
    terminal.press("q");
    assert!(terminal.exit().success());
}

#[test]
fn lines_are_shown_and_searched() {
    let (log, _) = made_log(900);
    let mut stage = Stage::new(&log, &["--filter", "status == 404"]);
    let terminal = &mut stage.terminal;
    terminal.wait_for(&format!(" {} of 900 requests", count(&log, "\" 404 ")));
    terminal.press("e");
    terminal.wait_for("of 100");
    terminal.wait_for("GET /page/0 HTTP/1.1");
    terminal.press(&format!("/page/3{ENTER}"));
    let found = log
        .lines()
        .filter(|line| line.contains("\" 404 ") && line.contains("page/3"));
    terminal.wait_for(&format!("of {} that contain \"page/3\"", found.count()));
    terminal.press("\x03");
    assert!(terminal.exit().success());
}

#[test]
fn a_log_that_grows_is_followed_with_its_filter() {
    let (log, _) = made_log(90);
    let mut stage = Stage::new(&log, &["--watch", "--filter", "status == 404"]);
    stage.terminal.wait_for(" 10 of 90 requests");
    stage.terminal.wait_for("● live");
    stage.append(&log);
    stage.terminal.wait_for(" 20 of 180 requests");
    stage.terminal.press("q");
    assert!(stage.terminal.exit().success());
}

#[test]
fn signals_restore_the_terminal() {
    let (log, _) = made_log(90);
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        let mut stage = Stage::new(&log, &[]);
        stage.terminal.wait_for(" 90 requests");
        stage.terminal.signal(signal);
        assert!(stage.terminal.exit().success(), "{signal}");
    }
}

#[test]
fn another_size_of_the_terminal_is_used_at_once() {
    let (log, _) = made_log(90);
    let mut stage = Stage::new(&log, &[]);
    stage.terminal.wait_for("Requests over time");
    stage.terminal.resize(10, 40);
    stage.terminal.wait_for("Enter filter");
    stage.terminal.resize(50, 200);
    stage.terminal.wait_for("Methods");
    stage.terminal.press("q");
    assert!(stage.terminal.exit().success());
}

#[test]
fn a_log_without_requests_is_an_error_after_the_terminal_is_restored() {
    let mut stage = Stage::new("not a request\n", &[]);
    assert_eq!(stage.terminal.exit().code(), Some(1));
    stage.terminal.wait_for("Error: no requests in ");
}

#[test]
fn a_hostile_log_cannot_control_the_terminal() {
    let hostile = "\x1b]0;title\x07\x1b[2J\u{9b}3J\x1bc\u{202e}";
    let line = format!(
        "192.0.2.7 - - [22/Jan/2021:01:00:00 +0000] \"GET /{hostile} HTTP/1.1\" 200 1 \"{hostile}\" \"{hostile}\"\n"
    );
    let mut stage = Stage::new(&line.repeat(3), &[]);
    stage.terminal.wait_for("\\u{1b}]0;title");
    stage.terminal.press("e");
    stage.terminal.wait_for("\"GET /\\u{1b}]0;title");
    stage.terminal.press("q");
    stage.terminal.wait_for("Paths");
    stage.terminal.press("q");
    assert!(stage.terminal.exit().success());
    let output = stage.terminal.output();
    for sequence in ["\x1b]0;", "\x07", "\u{9b}", "\x1bc", "\u{202e}"] {
        assert!(!output.contains(sequence), "{sequence:?} in {output:?}");
    }
}

#[test]
fn a_report_is_printed_on_demand_and_on_simple_terminals() {
    let (log, _) = made_log(90);
    for (arguments, variables) in [
        (&["--plain"][..], &[][..]),
        (&[], &[("TERM", "dumb")]),
        (&["--json"], &[]),
    ] {
        let mut stage = Stage::with(&log, arguments, variables);
        stage.terminal.wait_for_output("requests");
        assert!(stage.terminal.exit().success());
        let output = stage.terminal.output();
        assert!(!output.contains("\x1b[?1049h"), "{output:?}");
    }
}

#[test]
fn colours_are_not_used_if_they_are_unwanted() {
    let (log, _) = made_log(90);
    for (variables, has_colors) in [(&[][..], true), (&[("NO_COLOR", "1")], false)] {
        let mut stage = Stage::with(&log, &[], variables);
        stage.terminal.wait_for(" 90 requests");
        stage.terminal.press("q");
        assert!(stage.terminal.exit().success());
        let output = stage.terminal.output();
        assert_eq!(output.contains("\x1b[38;5;"), has_colors, "{output:?}");
    }
}
