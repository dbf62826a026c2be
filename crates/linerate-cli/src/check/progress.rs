//! What a person sees while inputs are sent.

use std::cell::Cell;

use indicatif::{ProgressBar, ProgressStyle};
use linerate_check::{Finding, Row};

/// A line on standard error, where that is a terminal.
#[derive(Debug)]
pub(super) struct Progress {
    bar: ProgressBar,
    ids: Vec<&'static str>,
    bad: Cell<usize>,
}

impl Progress {
    pub(super) fn new(rows: &[Row]) -> Self {
        let inputs: usize = rows.iter().map(|row| row.cases.len()).sum();
        let template = "{bar:24} {pos}/{len} inputs  {prefix}  {msg}";
        let style = ProgressStyle::with_template(template).expect("the template is well-formed");
        Self {
            bar: ProgressBar::new(inputs as u64).with_style(style),
            ids: rows.iter().map(|row| row.id).collect(),
            bad: Cell::new(0),
        }
    }

    /// Counts an input.
    pub(super) fn tell(&self, finding: &Finding) {
        self.bar.inc(1);
        if let Some(id) = self.ids.get(finding.row) {
            self.bar.set_prefix(*id);
        }
        if finding.judgement.verdict.is_bad() {
            self.bad.set(self.bad.get() + 1);
            self.bar.set_message(format!("{} wrong", self.bad.get()));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
