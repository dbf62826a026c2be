//! Shows the progress of a run: a bar with the remaining time on a terminal, or a line for each
//! cell.

mod estimate;

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cell::Cell;
use crate::load::Budget;
use estimate::Estimate;

/// Initial estimate of what a turn takes in addition to warm-up and measurement: opening
/// connections, and waiting until the server is idle.
const OVERHEAD: Duration = Duration::from_millis(60);

/// Shows the progress of a run.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    prints_lines: bool,
    estimate: Estimate,
    cells: usize,
    cell: Option<(String, Instant)>,
}

impl Progress {
    /// Creates a progress bar on standard error if that is a terminal, and prints lines otherwise.
    pub fn on_stderr() -> Self {
        let target = ProgressDrawTarget::stderr();
        let prints_lines = target.is_hidden();
        Self::with(target, prints_lines)
    }

    /// Creates a progress that shows nothing.
    pub fn hidden() -> Self {
        Self::with(ProgressDrawTarget::hidden(), false)
    }

    fn with(target: ProgressDrawTarget, prints_lines: bool) -> Self {
        let template = "{bar:24} {percent:>3} %  {prefix}  {msg}";
        let style = ProgressStyle::with_template(template).expect("the template is well-formed");
        let bar = ProgressBar::with_draw_target(Some(0), target).with_style(style);
        Self {
            bar,
            prints_lines,
            estimate: Estimate::default(),
            cells: 0,
            cell: None,
        }
    }

    /// Begins a run. `turns` has the number of turns of each contender in each cell, by their
    /// indices.
    pub(crate) fn begin(&mut self, turns: &[Vec<u32>], budget: Budget) {
        let nominal = budget.warm_up + budget.measured + OVERHEAD;
        self.estimate = Estimate::new(turns, nominal);
        self.cells = turns.len();
        self.bar.set_length(self.estimate.turns_left());
    }

    pub(crate) fn begin_cell(&mut self, index: usize, cell: &Cell) {
        let place = format!("{}/{}", index + 1, self.cells);
        self.bar.set_prefix(format!("{place} {}", cell.id()));
        let line = format!("[{place}] {}: {}", cell.id(), cell.title);
        self.cell = Some((line, Instant::now()));
    }

    pub(crate) fn begin_turn(&mut self, contender: &str, round: u32, rounds: u32) {
        let left = in_words(self.estimate.left());
        self.bar.set_message(format!(
            "{contender}, round {} of {rounds}, {left} left",
            round + 1
        ));
    }

    pub(crate) fn end_turn(&mut self, cell: usize, contender: usize, took: Duration) {
        self.estimate.took(cell, contender, took);
        self.bar.inc(1);
    }

    /// Skips a turn that was announced.
    pub(crate) fn skip(&mut self, cell: usize, contender: usize) {
        self.estimate.skip(cell, contender);
        self.bar.inc(1);
    }

    pub(crate) fn end_cell(&mut self) {
        if let Some((line, started)) = self.cell.take()
            && self.prints_lines
        {
            let took = in_words(started.elapsed());
            let left = in_words(self.estimate.left());
            eprintln!("{line}: {took}, {left} left");
        }
    }

    /// Prints a line that stays on the screen.
    pub fn say(&self, line: &str) {
        if self.prints_lines {
            eprintln!("{line}");
        } else {
            self.bar.println(line);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Formats a duration for people.
fn in_words(time: Duration) -> String {
    let seconds = time.as_secs_f64().round() as u64;
    match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_in_two_units_at_most() {
        for (seconds, words) in [
            (0.4, "0 s"),
            (59.6, "1 min 0 s"),
            (3_599.0, "59 min 59 s"),
            (3_661.0, "1 h 1 min"),
        ] {
            assert_eq!(in_words(Duration::from_secs_f64(seconds)), words);
        }
    }
}
