//! What a person sees while inputs are sent.

use std::{
    cell::{Cell, RefCell},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};
use linerate_check::{Finding, Row};

/// How often the line shows that time goes on.
const TICK: Duration = Duration::from_millis(500);

/// A line on standard error, where that is a terminal.
#[derive(Debug)]
pub(super) struct Progress {
    bar: ProgressBar,
    ids: Vec<&'static str>,
    bad: Cell<usize>,
    /// The rows that are waited for, and how many of their connections are still there.
    waiting: RefCell<Vec<(&'static str, usize)>>,
}

impl Progress {
    pub(super) fn new(rows: &[Row]) -> Self {
        let inputs: usize = rows.iter().map(|row| row.cases.len()).sum();
        let template = "{bar:24} {pos}/{len} inputs  {prefix}  {msg}";
        Self {
            bar: ProgressBar::new(inputs as u64).with_style(style(template)),
            ids: rows.iter().map(|row| row.id).collect(),
            bad: Cell::new(0),
            waiting: RefCell::default(),
        }
    }

    /// Says that the server is waited for, no longer than `patience`, to end the connections of `rows`.
    pub(super) fn wait_for(&self, rows: &[Row], patience: Duration) {
        let rows = rows.iter().map(|row| (row.id, row.cases.len()));
        *self.waiting.borrow_mut() = rows.collect();
        let seconds = patience.as_secs_f64();
        let template = format!(
            "{{bar:24}} {{pos}}/{{len}} inputs  {{elapsed}}  waits {seconds} s at most for the end of {{prefix}}  {{msg}}"
        );
        self.bar.set_style(style(&template));
        self.bar.enable_steady_tick(TICK);
        self.show_waiting();
    }

    /// Goes back to inputs that are answered soon.
    pub(super) fn stop_waiting(&self) {
        self.bar.disable_steady_tick();
        self.waiting.borrow_mut().clear();
    }

    /// Counts an input.
    pub(super) fn tell(&self, finding: &Finding) {
        self.bar.inc(1);
        if let Some(id) = self.ids.get(finding.row) {
            if self.waiting.borrow().is_empty() {
                self.bar.set_prefix(*id);
            }
            for (row, left) in self.waiting.borrow_mut().iter_mut() {
                *left -= usize::from(row == id && *left > 0);
            }
        }
        self.show_waiting();
        if finding.judgement.verdict.is_bad() {
            self.bad.set(self.bad.get() + 1);
            self.bar.set_message(format!("{} wrong", self.bad.get()));
        }
    }

    fn show_waiting(&self) {
        let waiting = self.waiting.borrow();
        let left = waiting.iter().filter(|(_, left)| *left > 0);
        let left: Vec<String> = left.map(|(id, left)| format!("{id} ({left})")).collect();
        if !left.is_empty() {
            self.bar.set_prefix(left.join(", "));
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is well-formed")
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
