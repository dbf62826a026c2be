//! Small multiples: the many cells of a matrix, laid out by the settings that vary.
//!
//! For each payload there is a grid with connections from top to bottom, and messages and their
//! framing from left to right, so that readers can follow one of these while the others stay the
//! same.

use std::collections::BTreeSet;

use maud::{Markup, html};

use crate::cell::{Echo, Load};
use crate::report::behind::anchor;
use crate::report::number::{counted, size};
use crate::report::verdict::{not_counted, short_verdict, verdict};
use crate::report::words::{Names, metric};
use crate::report::{chart, table};
use crate::summary::CellSummary;

/// A scenario with fewer cells is better drawn cell by cell.
const CELLS_MIN: usize = 9;

/// The cells of a scenario, laid out as a matrix.
pub(super) struct Matrix<'a> {
    cells: Vec<(Coordinates, &'a CellSummary)>,
}

/// The coordinates of a cell in the matrix.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Coordinates {
    payload_bytes: u32,
    connections: u32,
    column: Column,
}

/// Number of messages that each connection sends, and whether each goes out in several frames.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Column {
    is_fragmented: bool,
    messages: u32,
}

impl<'a> Matrix<'a> {
    /// Lays out cells. Returns `None` if there are few of them, or if they differ in a setting that
    /// the layout does not show.
    pub(super) fn of(cells: &'a [CellSummary]) -> Option<Self> {
        if cells.len() < CELLS_MIN {
            return None;
        }
        let placed: Vec<(Coordinates, &CellSummary)> = cells
            .iter()
            .map(|cell| Some((Coordinates::of(&cell.cell.load)?, cell)))
            .collect::<Option<_>>()?;
        let places: BTreeSet<Coordinates> = placed.iter().map(|(place, _)| *place).collect();
        (places.len() == cells.len()).then_some(Self { cells: placed })
    }

    pub(super) fn draw(&self, names: &Names<'_>) -> Markup {
        let compared = self.cells.first().map(|(_, cell)| metric(cell.metric));
        html! {
            p.metric { "Each picture: " (compared.unwrap_or_default()) ". Each has its own scale, so compare the shapes." }
            @for payload_bytes in self.distinct(|place| place.payload_bytes) {
                h3 { "Messages of " (size(payload_bytes.into())) }
                (self.grid(payload_bytes, names))
            }
            details {
                summary { "All figures of the " (counted(self.cells.len(), "cell")) }
                @for (_, cell) in &self.cells {
                    h4 { (cell.cell.title) }
                    p.verdict { (verdict(cell, names)) }
                    (not_counted(cell, names))
                    (table::table(cell, names))
                }
            }
        }
    }

    fn grid(&self, payload_bytes: u32, names: &Names<'_>) -> Markup {
        let columns = self.distinct(|place| place.column);
        html! {
            div.scroll role="region" tabindex="0" aria-label=(format!("Messages of {}", size(payload_bytes.into()))) {
                table.matrix {
                    thead {
                        tr {
                            th scope="col" { span.unseen { "connections" } }
                            @for column in &columns { th scope="col" { (column.title()) } }
                        }
                    }
                    tbody {
                        @for connections in self.distinct(|place| place.connections) {
                            tr {
                                th scope="row" { (counted(connections as usize, "connection")) }
                                @for column in &columns {
                                    (self.picture(Coordinates { payload_bytes, connections, column: *column }, names))
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    fn picture(&self, place: Coordinates, names: &Names<'_>) -> Markup {
        let found = self.cells.iter().find(|(it, _)| *it == place);
        let Some((_, cell)) = found else {
            return html! { td {} };
        };
        html! {
            td.mini id=(anchor(&cell.cell.id())) {
                p.verdict { (short_verdict(cell, names)) }
                (chart::bars(cell, names))
                @let missing = cell.not_counted().count();
                @if missing > 0 { p.missing { (missing) " without a figure" } }
            }
        }
    }

    /// Returns the distinct values of a coordinate, in ascending order.
    fn distinct<T: Ord>(&self, coordinate: impl Fn(&Coordinates) -> T) -> BTreeSet<T> {
        self.cells
            .iter()
            .map(|(place, _)| coordinate(place))
            .collect()
    }
}

impl Coordinates {
    fn of(load: &Load) -> Option<Self> {
        let Load::Echo(echo) = load else { return None };
        let Echo {
            payload_bytes,
            connections,
            frames,
            messages,
            ..
        } = echo;
        Some(Self {
            payload_bytes: *payload_bytes,
            connections: *connections,
            column: Column {
                is_fragmented: *frames > 1,
                messages: (*messages)?,
            },
        })
    }
}

impl Column {
    fn title(self) -> String {
        let messages = counted(self.messages as usize, "message");
        if self.is_fragmented {
            format!("{messages}, fragmented")
        } else {
            messages
        }
    }
}
