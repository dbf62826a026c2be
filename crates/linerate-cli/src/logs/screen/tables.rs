//! The tables, which of them has the focus, and the selected row of each.

use std::collections::HashMap;

use super::action::Move;
use super::panels::{Panel, Row};

/// All tables. Each remembers its selected row.
#[derive(Clone, Debug, Default)]
pub(super) struct Tables {
    panels: Vec<Panel>,
    focus: usize,
    cursors: HashMap<&'static str, Cursor>,
}

/// The selected row of a table.
#[derive(Clone, Debug, Default)]
struct Cursor {
    index: usize,
    /// The value in this row. It stays selected if its place changes while the log grows.
    shown: String,
}

impl Tables {
    /// Replaces the tables. Focus and selected rows stay at the same names and values, if they
    /// still exist.
    pub(super) fn replace(&mut self, panels: Vec<Panel>) {
        let name = self.focused().map(|panel| panel.name);
        self.panels = panels;
        let same = self.panels.iter().position(|it| Some(it.name) == name);
        let last = self.panels.len().saturating_sub(1);
        self.focus = same.unwrap_or(self.focus).min(last);
        for panel in &self.panels {
            let Some(cursor) = self.cursors.get_mut(panel.name) else {
                continue;
            };
            let same = panel.rows.iter().position(|row| row.shown == cursor.shown);
            let last = panel.rows.len().saturating_sub(1);
            cursor.index = same.unwrap_or(cursor.index).min(last);
        }
    }

    pub(super) fn panels(&self) -> &[Panel] {
        &self.panels
    }

    /// Returns the index of the table that has the focus.
    pub(super) fn focus(&self) -> usize {
        self.focus
    }

    pub(super) fn focused(&self) -> Option<&Panel> {
        self.panels.get(self.focus)
    }

    /// Moves the focus to the next table. Returns false if there is none.
    pub(super) fn focus_next(&mut self) -> bool {
        let has_next = self.focus + 1 < self.panels.len();
        self.focus += usize::from(has_next);
        has_next
    }

    /// Moves the focus to the previous table. Returns false if there is none.
    pub(super) fn focus_previous(&mut self) -> bool {
        let has_previous = self.focus > 0;
        self.focus -= usize::from(has_previous);
        has_previous
    }

    pub(super) fn focus_first(&mut self) {
        self.focus = 0;
    }

    pub(super) fn focus_last(&mut self) {
        self.focus = self.panels.len().saturating_sub(1);
    }

    /// Returns the index of the selected row of a table.
    pub(super) fn cursor(&self, panel: &Panel) -> usize {
        self.cursors.get(panel.name).map_or(0, |it| it.index)
    }

    /// Returns the selected row of the table that has the focus.
    pub(super) fn selected(&self) -> Option<&Row> {
        let panel = self.focused()?;
        panel.rows.get(self.cursor(panel))
    }

    /// Moves the selected row; `page` rows are visible.
    pub(super) fn move_cursor(&mut self, to: Move, page: usize) {
        let Some(panel) = self.panels.get(self.focus) else {
            return;
        };
        let last = panel.rows.len().saturating_sub(1);
        let index = moved(self.cursor(panel), to, page, last);
        let shown = panel.rows.get(index).map(|row| row.shown.clone());
        let shown = shown.unwrap_or_default();
        self.cursors.insert(panel.name, Cursor { index, shown });
    }
}

/// Returns where a cursor is after a movement.
pub(super) fn moved(index: usize, to: Move, page: usize, last: usize) -> usize {
    let index = match to {
        Move::First => 0,
        Move::Last => last,
        Move::Next => index + 1,
        Move::PageNext => index + page.max(1),
        Move::PagePrevious => index.saturating_sub(page.max(1)),
        Move::Previous => index.saturating_sub(1),
    };
    index.min(last)
}

#[cfg(test)]
mod tests {
    use super::Tables;
    use crate::logs::screen::action::Move;
    use crate::logs::screen::panels::{Panel, Row, Target};

    fn panel(name: &'static str, values: &[&str]) -> Panel {
        let row = |value: &&str| Row {
            cells: Vec::new(),
            share: 0.0,
            shown: (*value).to_owned(),
            errors: 0,
            target: Target::None(""),
        };
        Panel {
            name,
            note: String::new(),
            columns: &[],
            rows: values.iter().map(row).collect(),
        }
    }

    fn selected(tables: &Tables) -> &str {
        tables.selected().map_or("", |row| &row.shown)
    }

    #[test]
    fn a_value_stays_selected_when_its_place_changes() {
        let mut tables = Tables::default();
        tables.replace(vec![panel("a", &["1"]), panel("b", &["x", "y", "z"])]);
        assert!(tables.focus_next() && !tables.focus_next());
        tables.move_cursor(Move::Next, 10);
        assert_eq!(selected(&tables), "y");
        tables.replace(vec![panel("b", &["y", "x"]), panel("c", &["1"])]);
        assert_eq!((tables.focus(), selected(&tables)), (0, "y"));
        // The value has disappeared, so that the row at its place is selected.
        tables.move_cursor(Move::Last, 10);
        tables.replace(vec![panel("b", &["v", "w"])]);
        assert_eq!(selected(&tables), "w");
        tables.replace(Vec::new());
        assert!(tables.selected().is_none() && !tables.focus_next());
    }

    #[test]
    fn the_selected_row_stays_within_the_table() {
        let mut tables = Tables::default();
        tables.replace(vec![
            panel("a", &["0", "1", "2", "3", "4"]),
            panel("b", &[]),
        ]);
        for (to, expected) in [
            (Move::Previous, "0"),
            (Move::PageNext, "3"),
            (Move::PageNext, "4"),
            (Move::Next, "4"),
            (Move::PagePrevious, "1"),
            (Move::Last, "4"),
            (Move::First, "0"),
        ] {
            tables.move_cursor(to, 3);
            assert_eq!(selected(&tables), expected, "{to:?}");
        }
        tables.focus_next();
        tables.move_cursor(Move::Last, 3);
        assert!(tables.selected().is_none());
    }
}
