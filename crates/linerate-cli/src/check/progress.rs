//! The progress bar that is shown while inputs are sent.

use std::{
    cell::{Cell, RefCell},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};
use linerate_check::{Finding, Row};

/// How often the elapsed time is updated.
const TICK: Duration = Duration::from_millis(500);

/// A progress bar on standard error, shown only if that is a terminal.
#[derive(Debug)]
pub(super) struct Progress {
    bar: ProgressBar,
    ids: Vec<&'static str>,
    bad: Cell<usize>,
    /// The rows that the check is waiting for, each with the number of its connections still open.
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

    /// Shows that the check waits up to `patience` for the server to end the connections of `rows`.
    pub(super) fn wait_for(&self, rows: &[Row], patience: Duration) {
        let rows = rows.iter().map(|row| (row.id, row.cases.len()));
        *self.waiting.borrow_mut() = rows.collect();
        let seconds = patience.as_secs_f64();
        let template = format!(
            "{{bar:24}} {{pos}}/{{len}} inputs  {{elapsed}}  waiting up to {seconds} s for the end of {{prefix}}  {{msg}}"
        );
        self.bar.set_style(style(&template));
        self.bar.enable_steady_tick(TICK);
        self.show_waiting();
    }

    /// Ends the waiting phase that [`Self::wait_for`] began.
    pub(super) fn stop_waiting(&self) {
        self.bar.disable_steady_tick();
        self.waiting.borrow_mut().clear();
    }

    /// Records that an input is finished.
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
