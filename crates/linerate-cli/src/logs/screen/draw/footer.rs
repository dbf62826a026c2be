//! The lines at the bottom: keys, messages, or a text that is being typed.

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Position, Rect},
    text::{Line, Span},
    widgets::{Paragraph, Wrap},
};

use super::super::super::text::printable;
use super::super::action::Mode;
use super::super::field::TextField;
use super::super::selection::searched;
use super::super::selection::typed;
use super::super::state::{Prompt, State};
use super::super::theme::Theme;

/// The keys that are shown, most important first.
const TABLE_KEYS: &[(&str, &str)] = &[
    ("Enter", "filter"),
    ("Tab", "next"),
    ("/", "search"),
    ("u", "undo"),
    ("?", "help"),
    ("q", "leave"),
    ("e", "lines"),
    ("x", "exclude"),
    ("t", "chart"),
    ("c", "clear"),
];
const CHART_KEYS: &[(&str, &str)] = &[
    ("← →", "move"),
    ("Enter", "select"),
    ("[", "begin"),
    ("]", "end"),
    ("u", "undo"),
    ("Tab", "tables"),
    ("?", "help"),
    ("q", "leave"),
];
const EXCERPT_KEYS: &[(&str, &str)] = &[
    ("↑ ↓", "scroll"),
    ("← →", "sideways"),
    ("/", "find"),
    ("u", "all lines"),
    ("g G", "first, last"),
    ("Esc", "back"),
];

/// Returns the height of the lines at the bottom.
pub(super) fn height(state: &State, area: Rect) -> u16 {
    let Some(prompt) = &state.prompt else {
        return 1;
    };
    let (text, _) = message(prompt, state);
    let lines = text
        .chars()
        .count()
        .div_ceil(usize::from(area.width).max(1));
    let lines = u16::try_from(lines).unwrap_or(u16::MAX);
    1 + lines.clamp(1, (area.height / 3).max(1))
}

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, state: &State, theme: Theme) {
    if let Some(prompt) = &state.prompt {
        let [input, below] =
            Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
        let wrong = prompt.problem.as_ref().and_then(|(column, _)| *column);
        draw_field(frame, input, "Filter: ", &prompt.field, wrong, theme);
        let (text, is_error) = message(prompt, state);
        let style = if is_error {
            theme.failure()
        } else {
            theme.dim()
        };
        let text = Paragraph::new(Line::styled(text, style)).wrap(Wrap { trim: true });
        frame.render_widget(text, below);
        return;
    }
    if let Some(field) = state.excerpt.as_ref().and_then(|it| it.typed.as_ref()) {
        draw_field(frame, area, "Find: ", field, None, theme);
        return;
    }
    let line = match &state.notice {
        Some(notice) => {
            let (mark, style) = match notice.is_error {
                true => ("✗", theme.failure()),
                false => ("▸", theme.bold()),
            };
            Line::styled(format!(" {mark} {}", printable(&notice.text)), style)
        }
        None => keys(state, area.width, theme),
    };
    frame.render_widget(line, area);
}

/// Returns what is said below a filter that is being typed, and whether it is an error.
fn message(prompt: &Prompt, state: &State) -> (String, bool) {
    if let Some((column, problem)) = &prompt.problem {
        let problem = printable(problem);
        let text = match column {
            Some(column) => format!("✗ column {column}: {problem}"),
            None => format!("✗ {problem}"),
        };
        return (text, true);
    }
    if let Some(pending) = &state.filtering.pending {
        let percent = (pending.fraction * 100.0) as u64;
        return (format!("filtering, {percent} %; Esc cancels"), false);
    }
    let text = prompt.field.text();
    let text = match typed(&text, state.has_countries) {
        _ if text.trim().is_empty() => {
            "an expression such as status >= 500 && path == \"/api/*\", or a text to look for"
                .to_owned()
        }
        Ok(filter) if searched(&filter).is_some() => {
            "Enter: requests whose path, address, agent, referrer or host contains this".to_owned()
        }
        _ => "Enter: requests for which this is true".to_owned(),
    };
    (text, false)
}

/// Draws a text that is being typed, of which the part around the cursor is visible.
fn draw_field(
    frame: &mut Frame<'_>,
    area: Rect,
    label: &str,
    field: &TextField,
    wrong: Option<usize>,
    theme: Theme,
) {
    let room = usize::from(area.width)
        .saturating_sub(label.len() + 2)
        .max(1);
    let text = printable(&field.text());
    let before: String = field.text().chars().take(field.cursor()).collect();
    let cursor = Span::raw(printable(&before)).width();
    let skipped = (cursor + 1).saturating_sub(room);
    let mut line = Line::from(Span::styled(format!(" {label}"), theme.accent()));
    for (index, char) in text.chars().enumerate().skip(skipped) {
        let style = match wrong == Some(index + 1) {
            true => theme
                .failure()
                .add_modifier(ratatui::style::Modifier::UNDERLINED),
            false => theme.bold(),
        };
        line.push_span(Span::styled(char.to_string(), style));
    }
    frame.render_widget(line, area);
    let column = 1 + label.len() + cursor - skipped;
    let column = u16::try_from(column).unwrap_or(u16::MAX);
    frame.set_cursor_position(Position {
        x: area
            .x
            .saturating_add(column)
            .min(area.right().saturating_sub(1)),
        y: area.y,
    });
}

/// Returns as many keys as fit.
fn keys(state: &State, width: u16, theme: Theme) -> Line<'static> {
    let keys = match state.mode() {
        Mode::Chart => CHART_KEYS,
        Mode::Excerpt => EXCERPT_KEYS,
        _ => TABLE_KEYS,
    };
    let mut line = Line::raw(" ");
    for (key, action) in keys {
        let added = key.chars().count() + action.chars().count() + 4;
        if line.width() + added > usize::from(width) + 3 {
            break;
        }
        line.push_span(Span::styled(*key, theme.bold()));
        line.push_span(Span::styled(format!(" {action}   "), theme.dim()));
    }
    line
}
