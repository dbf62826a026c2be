//! A table with a border.

use ratatui::{
    Frame,
    layout::Rect,
    style::{Modifier, Style},
    text::{Line, Span},
    widgets::{Block, BorderType, Paragraph},
};

use super::super::super::{chart::bar, text::without_middle};
use super::super::panels::{Panel, Row};
use super::super::state::State;
use super::super::theme::Theme;

/// The width of the bars.
const BAR_WIDTH: usize = 10;
/// Values that are longer than this are shortened, rather than columns left out.
const VALUE_WIDTH: usize = 36;
/// The space for the mark of a row.
const MARK_WIDTH: usize = 2;

/// Returns how many rows of a table are visible.
pub(super) fn visible_rows(area: Rect) -> usize {
    // The border and the head.
    usize::from(area.height).saturating_sub(3).max(1)
}

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, state: &State, panel: &Panel, theme: Theme) {
    let is_focused = state.chart_at.is_none()
        && state
            .tables
            .focused()
            .is_some_and(|it| it.name == panel.name);
    let block = block(panel, is_focused, theme);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let width = usize::from(inner.width);
    if panel.rows.is_empty() {
        let text = Line::styled("  no values", theme.dim());
        frame.render_widget(Paragraph::new(text), inner);
        return;
    }
    let cursor = state.tables.cursor(panel);
    let height = usize::from(inner.height).saturating_sub(1);
    let first = cursor.saturating_sub(height / 2);
    let first = first.min(panel.rows.len().saturating_sub(height));
    let rows = &panel.rows[first..panel.rows.len().min(first + height)];
    let shape = Shape::of(panel, rows, width);
    let mut lines = vec![shape.head(panel, theme)];
    for (index, row) in rows.iter().enumerate() {
        let filter = row.target.filter("==");
        let is_applied =
            filter.is_ok_and(|filter| state.filtering.applied.filters.contains(&filter));
        let is_selected = is_focused && first + index == cursor;
        let mut line = shape.row(row, is_applied, is_selected, panel, theme);
        if is_selected {
            // Reaches to the border.
            let gap = width.saturating_sub(line.width());
            line.push_span(Span::raw(" ".repeat(gap)));
            line = line.style(theme.selected());
        }
        lines.push(line);
    }
    frame.render_widget(Paragraph::new(lines), inner);
}

fn block(panel: &Panel, is_focused: bool, theme: Theme) -> Block<'static> {
    let (border, style, title) = match is_focused {
        true => (
            BorderType::Thick,
            theme.accent(),
            theme.accent().patch(theme.bold()),
        ),
        false => (BorderType::Rounded, theme.dim(), theme.bold()),
    };
    let mut block = Block::bordered()
        .border_type(border)
        .border_style(style)
        .title(Span::styled(format!(" {} ", panel.name), title));
    if !panel.note.is_empty() {
        let note = Line::styled(format!(" {} ", panel.note), theme.dim());
        block = block.title(note.right_aligned());
    }
    block
}

/// Which columns are shown, and how wide they are.
struct Shape {
    /// The width of each column, or `None` if it is left out.
    columns: Vec<Option<usize>>,
    bar: usize,
    value: usize,
}

impl Shape {
    /// Leaves out what does not fit beside the values: first the bars, then optional columns, then
    /// all others but the first.
    fn of(panel: &Panel, rows: &[Row], width: usize) -> Self {
        let width_of = |index: usize| {
            let cells = rows.iter().filter_map(|row| row.cells.get(index));
            let cells = cells.map(|cell| cell.chars().count());
            let title = panel.columns[index].title.chars().count();
            cells.chain([title]).max().unwrap_or(0)
        };
        let longest = rows.iter().map(|row| row.shown.chars().count()).max();
        let wanted = longest.unwrap_or(0).min(VALUE_WIDTH);
        let mut shape = Self {
            columns: (0..panel.columns.len())
                .map(|index| Some(width_of(index)))
                .collect(),
            bar: match rows.iter().any(|row| row.share > 0.0) {
                true => BAR_WIDTH,
                false => 0,
            },
            value: 0,
        };
        let room = width.saturating_sub(MARK_WIDTH);
        if shape.numbers_width() + wanted > room {
            shape.bar = 0;
        }
        let optional = panel.columns.iter().enumerate();
        let optional = optional.filter(|(_, column)| column.is_optional);
        let optional: Vec<_> = optional.map(|(index, _)| index).collect();
        let others = (1..panel.columns.len()).filter(|it| !optional.contains(it));
        // A shorter value is better than no share and no errors.
        let least = wanted.min(width / 3);
        for (index, wanted) in optional
            .iter()
            .map(|&index| (index, wanted))
            .chain(others.map(|index| (index, least)))
        {
            if shape.numbers_width() + wanted > room {
                shape.columns[index] = None;
            }
        }
        shape.value = room.saturating_sub(shape.numbers_width());
        shape
    }

    /// Returns the width of everything between the mark and the value.
    fn numbers_width(&self) -> usize {
        let columns = self.columns.iter().flatten().map(|width| width + 2);
        let bar = if self.bar > 0 { self.bar + 2 } else { 0 };
        columns.sum::<usize>() + bar
    }

    fn head(&self, panel: &Panel, theme: Theme) -> Line<'static> {
        let mut text = " ".repeat(MARK_WIDTH);
        for (index, (column, width)) in panel.columns.iter().zip(&self.columns).enumerate() {
            if let Some(width) = width {
                text += &format!("{:>width$}  ", column.title);
            }
            if index == self.bar_after() && self.bar > 0 {
                text += &" ".repeat(self.bar + 2);
            }
        }
        Line::styled(text, theme.dim())
    }

    /// Returns the index of the column before the bar: the share, or the number itself.
    fn bar_after(&self) -> usize {
        usize::from(self.columns.len() > 1 && self.columns[1].is_some())
    }

    fn row(
        &self,
        row: &Row,
        is_applied: bool,
        is_selected: bool,
        panel: &Panel,
        theme: Theme,
    ) -> Line<'static> {
        let mark = match (is_applied, is_selected) {
            (true, _) => "✓ ",
            (false, true) => "▸ ",
            (false, false) => "  ",
        };
        let mut line = Line::from(Span::styled(mark, theme.accent()));
        for (index, (cell, width)) in row.cells.iter().zip(&self.columns).enumerate() {
            if let Some(width) = width {
                let style = match panel.columns[index].title {
                    "errors" if row.errors > 0 => theme.client_error(),
                    "errors" | "share" | "sent" => theme.dim(),
                    _ => Style::new(),
                };
                line.push_span(Span::styled(format!("{cell:>width$}  "), style));
            }
            if index == self.bar_after() && self.bar > 0 {
                let eighths = (row.share * 8_000.0) as u64;
                let bar = bar(eighths, 8_000, self.bar);
                let bar = format!("{bar:<width$}  ", width = self.bar);
                line.push_span(Span::styled(bar, theme.bar()));
            }
        }
        let value = without_middle(&row.shown, self.value);
        let style = match row.shown.as_bytes() {
            [b'4', ..] if panel.name == "Statuses" => theme.client_error(),
            [b'5', ..] if panel.name == "Statuses" => theme.server_error(),
            _ => Style::new(),
        };
        let style = if is_applied {
            style.add_modifier(Modifier::BOLD)
        } else {
            style
        };
        line.push_span(Span::styled(value, style));
        match is_selected {
            // One style for the whole row.
            true => {
                let spans = line.spans.into_iter().map(|span| span.style(Style::new()));
                Line::from(spans.collect::<Vec<_>>())
            }
            false => line,
        }
    }
}
