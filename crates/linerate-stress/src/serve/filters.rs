//! Filters that keep a worker busy with parsing or evaluating them.

use anyhow::Result;

use super::{flood::P99_FREE, process::Serve};
use crate::{
    Row,
    attack::{
        ATTACK, Abuse,
        filters::{PUBLISHED, REFUSED, TAKEN},
    },
    child::Child,
    figures::{Effort, alternate},
    live::Live,
    outcome::{Bounds, Finding, Outcome},
};

/// The number of clients with an expensive filter each.
const DEAR: usize = 64;

pub(super) fn rows() -> [Row; 3] {
    [
        (Abuse::Filters, "filters-of-one", 1),
        (Abuse::Filters, "filters-of-four", 4),
        (Abuse::DearFilters, "dear-filters", DEAR),
    ]
    .map(|(abuse, name, peers)| Row {
        name: format!("serve/{name}"),
        run: Box::new(move |effort| run(abuse, peers, effort)),
    })
}

fn run(abuse: Abuse, peers: usize, effort: &Effort) -> Result<Outcome> {
    let server = Serve::start(&effort.linerate, &[])?;
    let address = server.address.to_string();
    let mut attackers = Child::start(&[ATTACK, abuse.as_str(), &address, &peers.to_string()])?;
    let mut live = Live::open(server.target())?;
    let twin = abuse.has_twin();
    let figures = alternate(server.usage(), &mut live, &mut attackers, twin, effort)?;
    drop(live);
    attackers.end()?;
    server.end()?;
    let count = |name: &str| figures.tally.get(name).copied().unwrap_or_default();
    let (taken, refused) = (count(TAKEN), count(REFUSED));
    Ok(Outcome {
        abuse: match abuse {
            Abuse::DearFilters => format!(
                "{peers} filters that search each of {} publications of 60 KB 12 times",
                count(PUBLISHED)
            ),
            _ => format!(
                "{peers} clients that subscribe with a new filter of 1 KB 400 times per second"
            ),
        },
        bounds: Bounds {
            memory_growth_max: 16 << 20,
            p99_free: P99_FREE,
        },
        figures,
        also: vec![Finding::new(
            format!("{taken} filters accepted, {refused} commands refused (0)"),
            taken > 0 && refused == 0,
        )],
    })
}
