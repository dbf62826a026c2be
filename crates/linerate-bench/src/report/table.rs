//! The table of all figures of a cell.

use maud::{Markup, html};

use crate::report::number::{NONE, bytes, decimal_bytes, duration_us, percent, ratio, si};
use crate::report::words::{NO_HEADLINE, Names, figure, metric_short, status};
use crate::summary::{CellSummary, Medians, Metric, Spread, Standing};

/// A column: its head, and how its figures are formatted.
struct Column {
    head: &'static str,
    text: fn(&Medians) -> String,
}

const fn column(head: &'static str, text: fn(&Medians) -> String) -> Column {
    Column { head, text }
}

const P50: Column = column("p50", |it| median(it.p50_us, duration_us));
const P99: Column = column("p99", |it| median(it.p99_us, duration_us));
const P999: Column = column("p99.9", |it| median(it.p999_us, duration_us));
const PER_SECOND: Column = column("messages/s", |it| median(it.messages_per_second, si));
const PAYLOAD: Column = column("payload/s", |it| median(it.bytes_per_second, decimal_bytes));
const WIRE: Column = column("on the wire", |it| median(it.wire_bytes, bytes));
const SHRUNK: Column = column("compression ratio", |it| median(it.wire_ratio, ratio));
const PER_CPU_SECOND: Column = column("messages/CPU-s", |it| {
    median(it.messages_per_cpu_second, si)
});
const USER: Column = column("user CPU/message", |it| median(it.user_us, duration_us));
const SYSTEM: Column = column("system CPU/message", |it| median(it.system_us, duration_us));
const PEAK: Column = column("peak memory", |it| median(it.resident_bytes_peak, bytes));
const BEFORE: Column = column("bytes/connection before", |it| {
    median(it.idle_bytes_before, bytes)
});

/// Renders a table with a row for each contender that had a turn.
pub(super) fn table(cell: &CellSummary, names: &Names<'_>) -> Markup {
    let columns = columns(cell);
    let label = format!("All figures: {}", cell.cell.title);
    html! {
        div.scroll role="region" tabindex="0" aria-label=(label) {
            table {
                caption.unseen { (label) }
                thead {
                    tr {
                        th scope="col" { "contender" }
                        th scope="col" { (metric_short(cell.metric)) }
                        th scope="col" { "±" }
                        th scope="col" { "÷ raw TCP" }
                        th scope="col" { "÷ best peer" }
                        @for column in &columns { th scope="col" { (column.head) } }
                    }
                }
                tbody {
                    @for standing in &cell.standings {
                        (row(cell, standing, &columns, names))
                    }
                }
            }
        }
    }
}

fn row(cell: &CellSummary, standing: &Standing, columns: &[Column], names: &Names<'_>) -> Markup {
    let headline = standing.headline;
    let note = status(&standing.status);
    html! {
        tr class=(names.class(&standing.contender)) {
            th scope="row" { (names.title(&standing.contender)) }
            @if let Some(medians) = &standing.medians {
                td { (median(headline, |it| figure(cell.metric, it))) }
                td { (headline.map_or(NONE.into(), |it| percent(it.relative()))) }
                td { (standing.to_reference.map_or(NONE.into(), ratio)) }
                td { (standing.to_best_peer.map_or(NONE.into(), ratio)) }
                @for column in columns { td { ((column.text)(medians)) } }
            } @else {
                td.why colspan=(columns.len() + 4) { (note.unwrap_or_else(|| NO_HEADLINE.into())) }
            }
        }
    }
}

/// Returns the columns that follow the compared figure and its ratios. They do not repeat that
/// figure.
fn columns(cell: &CellSummary) -> Vec<Column> {
    let mut columns = match cell.metric {
        Metric::BytesPerConnection => vec![BEFORE, PEAK],
        Metric::LatencyP99 => vec![
            P50,
            P999,
            PER_SECOND,
            PAYLOAD,
            PER_CPU_SECOND,
            USER,
            SYSTEM,
            PEAK,
        ],
        Metric::PerServerCpuSecond => {
            vec![PER_SECOND, PAYLOAD, P50, P99, P999, USER, SYSTEM, PEAK]
        }
        Metric::PerSecond => vec![PAYLOAD, P50, P99, P999],
    };
    if cell.is_compressed() {
        columns.splice(0..0, [WIRE, SHRUNK]);
    }
    columns
}

fn median(spread: Option<Spread>, text: impl Fn(f64) -> String) -> String {
    spread.map_or(NONE.into(), |spread| text(spread.median))
}
