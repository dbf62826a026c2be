//! Filters that keep a worker busy with parsing or evaluating them.

use anyhow::Result;

use super::{BOUNDS, abused};
use crate::{
    Row,
    attack::{
        Abuse,
        filters::{PUBLISHED, REFUSED, TAKEN},
    },
    figures::Effort,
    outcome::{Finding, Outcome},
};

/// The number of clients with an expensive filter each.
const DEAR: usize = 64;

pub(super) fn rows() -> [Row; 3] {
    [
        (Abuse::Filters, "filters-of-one", 1),
        (Abuse::Filters, "filters-of-four", 4),
        (Abuse::DearFilters, "dear-filters", DEAR),
    ]
    .map(|(abuse, name, peers)| {
        Row::new(format!("serve/{name}"), move |effort| {
            run(abuse, peers, effort)
        })
    })
}

fn run(abuse: Abuse, peers: usize, effort: &Effort) -> Result<Outcome> {
    let figures = abused(effort, abuse, peers, &[])?;
    let (taken, refused) = (figures.counted(TAKEN), figures.counted(REFUSED));
    Ok(Outcome {
        abuse: match abuse {
            Abuse::DearFilters => format!(
                "{peers} filters that search each of {} publications of 60 KB 12 times",
                figures.counted(PUBLISHED)
            ),
            _ => format!(
                "{peers} clients that subscribe with a new filter of 1 KB 400 times per second"
            ),
        },
        bounds: BOUNDS,
        figures,
        also: vec![Finding::new(
            format!("{taken} filters accepted, {refused} commands refused (0)"),
            taken > 0 && refused == 0,
        )],
    })
}
