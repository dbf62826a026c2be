//! The lines of the selected requests.

use linerate_harness::table::grouped;
use linerate_logview::query::LogLine;
use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::Style,
    text::{Line, Span},
    widgets::Paragraph,
};

use super::super::super::text::printable;
use super::super::excerpt::Excerpt;
use super::super::state::State;
use super::super::theme::Theme;
use super::{footer, head};

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, state: &mut State, theme: Theme) {
    let [title, filters, count, lines, footer] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
    ])
    .areas(area);
    state.sizes.lines = usize::from(lines.height);
    state.load_lines();
    frame.render_widget(head::title(state, theme, title.width), title);
    frame.render_widget(head::filters(state, theme), filters);
    if let Some(excerpt) = &state.excerpt {
        frame.render_widget(counts(excerpt, theme), count);
        frame.render_widget(text(excerpt, theme), lines);
    }
    footer::draw(frame, footer, state, theme);
}

/// Returns the line that says which lines are visible.
fn counts(excerpt: &Excerpt, theme: Theme) -> Line<'static> {
    let mut line = Line::raw(" ");
    match excerpt.total {
        None if excerpt.problem.is_some() => {}
        None => line.push_span(Span::styled("looking for lines…", theme.dim())),
        Some(0) => line.push_span(Span::styled("no lines", theme.bold())),
        Some(total) => {
            let visible = excerpt.visible().len() as u64;
            let (first, last) = (excerpt.top() + 1, excerpt.top() + visible);
            let range = match visible {
                0 => "…".to_owned(),
                _ => format!("{} – {}", grouped(first), grouped(last)),
            };
            line.push_span(Span::styled(format!("lines {range}"), theme.bold()));
            line.push_span(Span::raw(format!(" of {}", grouped(total))));
        }
    }
    if !excerpt.text.is_empty() {
        let text = format!(" that contain {:?}", printable(&excerpt.text));
        line.push_span(Span::raw(text));
    }
    if excerpt.is_loading() && excerpt.total.is_some() {
        line.push_span(Span::styled(" …", theme.dim()));
    }
    line
}

fn text(excerpt: &Excerpt, theme: Theme) -> Paragraph<'static> {
    if let Some(problem) = &excerpt.problem {
        return Paragraph::new(Line::styled(format!(" ✗ {problem}"), theme.failure()))
            .wrap(ratatui::widgets::Wrap { trim: false });
    }
    let lines = excerpt.visible();
    let width = lines.last().map_or(0, |line| grouped(line.line).len());
    let lines = lines.iter().map(|line| {
        let number = format!(" {:>width$}  ", grouped(line.line));
        let mut drawn = Line::from(Span::styled(number, theme.dim()));
        drawn.spans.extend(marked(line, excerpt, theme));
        drawn
    });
    Paragraph::new(lines.collect::<Vec<_>>())
}

/// Returns a line from the first visible column on, with the text that was searched for marked.
fn marked(line: &LogLine, excerpt: &Excerpt, theme: Theme) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    let mut hidden = excerpt.left;
    let mut add = |text: &str, style: Style| {
        let text = printable(text);
        let count = text.chars().count();
        let shown: String = text.chars().skip(hidden).collect();
        hidden = hidden.saturating_sub(count);
        if !shown.is_empty() {
            spans.push(Span::styled(shown, style));
        }
    };
    let mut rest = &*line.text;
    while !excerpt.text.is_empty()
        && let Some(at) = rest.find(&excerpt.text)
    {
        let (before, found) = rest.split_at(at);
        let (found, after) = found.split_at(excerpt.text.len());
        add(before, Style::new());
        add(found, theme.found());
        rest = after;
    }
    add(rest, Style::new());
    spans
}
