//! Reports of the findings: text, an HTML page, and JSON lines.

mod html;
mod json;
#[cfg(test)]
mod tests;
mod text;

use std::collections::BTreeMap;

use crate::{
    case::{Area, Row, Verdict},
    run::Finding,
};

pub use html::html;
pub use json::{line, summary_line};
pub use text::text;

/// How many bytes of the sent input a report shows.
const HEX_BYTES_MAX: usize = 40;

/// All findings about an endpoint.
#[derive(Debug)]
pub struct Report<'a> {
    /// The endpoint, as the user named it.
    pub name: &'a str,
    /// The rows whose inputs were to be sent.
    pub rows: &'a [Row],
    /// The results of the inputs.
    pub findings: &'a [Finding],
    /// What was left out, and the reasons.
    pub left_out: &'a [String],
    /// The figures of the endpoint's process, if it was observed.
    pub process: Option<&'a str>,
}

/// The number of inputs by verdict.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Counts(BTreeMap<Verdict, usize>);

impl Counts {
    /// Returns the number of inputs with this verdict.
    pub fn of(&self, verdict: Verdict) -> usize {
        self.0.get(&verdict).copied().unwrap_or(0)
    }

    /// Returns the number of all inputs.
    pub fn all(&self) -> usize {
        self.0.values().sum()
    }

    fn add(&mut self, verdict: Verdict) {
        *self.0.entry(verdict).or_default() += 1;
    }
}

impl Report<'_> {
    /// Returns the counts of all inputs.
    pub fn counts(&self) -> Counts {
        self.counts_where(|_| true)
    }

    /// Returns the areas that have inputs, with their counts.
    pub fn areas(&self) -> Vec<(Area, Counts)> {
        let counted = |area: Area| (area, self.counts_where(|row| row.area() == area));
        let areas = Area::all().map(counted);
        areas.filter(|(_, counts)| counts.all() > 0).collect()
    }

    /// Returns the rows with their findings.
    pub fn by_row(&self) -> impl Iterator<Item = (&Row, Vec<&Finding>)> {
        let rows = self.rows.iter().enumerate();
        rows.map(|(index, row)| {
            let findings = self.findings.iter();
            (
                row,
                findings.filter(|finding| finding.row == index).collect(),
            )
        })
    }

    fn counts_where(&self, is_meant: impl Fn(&Row) -> bool) -> Counts {
        let mut counts = Counts::default();
        for finding in self.findings {
            if self.rows.get(finding.row).is_some_and(&is_meant) {
                counts.add(finding.judgement.verdict);
            }
        }
        counts
    }
}
