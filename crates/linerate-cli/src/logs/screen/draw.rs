//! Draws the view.

mod chart;
mod excerpt;
mod footer;
mod head;
mod help;
mod table;

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    text::Line,
    widgets::Paragraph,
};

use super::state::State;
use super::theme::Theme;

/// The smallest terminal that is drawn on.
const WIDTH_MIN: u16 = 20;
const HEIGHT_MIN: u16 = 6;
/// The smallest table, including its border.
const TABLE_WIDTH: u16 = 60;
const TABLE_HEIGHT: u16 = 9;
/// More tables side by side would be hard to survey.
const TABLES_ACROSS_MAX: u16 = 3;

/// Draws everything, and notes in the state how much was visible.
pub(super) fn draw(frame: &mut Frame<'_>, state: &mut State, theme: Theme) {
    let area = frame.area();
    if area.width < WIDTH_MIN || area.height < HEIGHT_MIN {
        frame.render_widget(Paragraph::new("terminal too small"), area);
        return;
    }
    match state.excerpt.is_some() {
        true => excerpt::draw(frame, area, state, theme),
        false => draw_tables(frame, area, state, theme),
    }
    if state.is_help_open {
        help::draw(frame, area, theme);
    }
}

fn draw_tables(frame: &mut Frame<'_>, area: Rect, state: &mut State, theme: Theme) {
    let totals_height = u16::from(area.height >= 12);
    let chart_height = match area.height {
        ..16 => 0,
        16..20 => 5,
        20..32 => 7,
        32.. => 10,
    };
    let footer_height = footer::height(state, area);
    let [title, totals, filters, chart, tables, footer] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(totals_height),
        Constraint::Length(1),
        Constraint::Length(chart_height),
        Constraint::Min(1),
        Constraint::Length(footer_height),
    ])
    .areas(area);
    frame.render_widget(head::title(state, theme, title.width), title);
    frame.render_widget(head::totals(state, theme, totals.width), totals);
    frame.render_widget(head::filters(state, theme), filters);
    chart::draw(frame, chart, state, theme);
    draw_grid(frame, tables, state, theme);
    footer::draw(frame, footer, state, theme);
}

/// Draws as many tables as fit side by side and one above the other, among them the one that has
/// the focus.
fn draw_grid(frame: &mut Frame<'_>, area: Rect, state: &mut State, theme: Theme) {
    let count = state.tables.panels().len();
    if count == 0 {
        let text = Line::styled("  reading…", theme.dim());
        frame.render_widget(Paragraph::new(text), area);
        return;
    }
    let across = (area.width / TABLE_WIDTH).clamp(1, TABLES_ACROSS_MAX);
    let fits = |height: u16| across * (height / TABLE_HEIGHT).max(1);
    let has_strip = usize::from(fits(area.height)) < count && area.height >= TABLE_HEIGHT;
    let [strip, area] =
        Layout::vertical([Constraint::Length(u16::from(has_strip)), Constraint::Min(1)])
            .areas(area);
    if has_strip {
        frame.render_widget(head::strip(state, theme, strip.width), strip);
    }
    let per_page = usize::from(fits(area.height));
    let first = state.tables.focus() / per_page * per_page;
    let shown = (count - first).min(per_page);
    let across = usize::from(across).min(shown);
    let rows = Layout::vertical(vec![Constraint::Fill(1); shown.div_ceil(across)]).split(area);
    let mut visible_rows = 1;
    for (row, area) in rows.iter().enumerate() {
        let cells = Layout::horizontal(vec![Constraint::Fill(1); across]).split(*area);
        for (column, area) in cells.iter().enumerate() {
            let index = first + row * across + column;
            if let Some(panel) = state
                .tables
                .panels()
                .get(index)
                .filter(|_| index < first + shown)
            {
                table::draw(frame, *area, state, panel, theme);
                visible_rows = table::visible_rows(*area);
            }
        }
    }
    state.sizes.rows = visible_rows;
}

#[cfg(test)]
mod tests;
