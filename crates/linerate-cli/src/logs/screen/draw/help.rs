//! The list of keys.

use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Span},
    widgets::{Block, BorderType, Clear, Paragraph},
};

use super::super::keys::HELP;
use super::super::theme::Theme;

/// The width of the list, and of the keys in it.
const WIDTH: u16 = 72;
const KEYS_WIDTH: usize = 16;

/// Draws the keys in the middle of everything else.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, theme: Theme) {
    let mut lines: Vec<_> = HELP
        .iter()
        .map(|(keys, action)| line(keys, action, theme))
        .collect();
    lines.push(Line::default());
    for (example, meaning) in [
        ("status >= 500", "server errors"),
        ("path == \"/api/*\"", "* stands for any characters"),
        ("address == \"10.0.0.0/8\"", "a network"),
        ("!agent.contains(\"bot\")", "everything else"),
    ] {
        lines.push(Line::from(vec![
            Span::styled(format!("  {example:<26}"), theme.bold()),
            Span::styled(meaning, theme.dim()),
        ]));
    }
    let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX);
    let (width, height) = (WIDTH.min(area.width), height.min(area.height));
    let area = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    let block = Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(theme.accent())
        .title(Span::styled(" Keys ", theme.bold()))
        .title(Line::styled(" Esc closes ", theme.dim()).right_aligned());
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn line(keys: &str, action: &str, theme: Theme) -> Line<'static> {
    Line::from(vec![
        Span::styled(format!("  {keys:<KEYS_WIDTH$}"), theme.bold()),
        Span::raw(action.to_owned()),
    ])
}
