//! The chart of requests over time, with lanes for errors.

use linerate_harness::table::{grouped, scaled};
use ratatui::{
    Frame,
    layout::Rect,
    style::{Modifier, Style},
    text::{Line, Span},
    widgets::Paragraph,
};

use super::super::super::{
    chart::{columns, sparkline},
    text::{counted, duration, moment, precise_moment},
};
use super::super::columns::Columns;
use super::super::state::State;
use super::super::theme::Theme;
use super::head::period;

/// The width of the labels at the left.
const GUTTER: usize = 8;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, state: &mut State, theme: Theme) {
    let width = usize::from(area.width).saturating_sub(GUTTER + 1);
    if area.height < 4 || width < 8 {
        state.sizes.chart = 0;
        state.chart_at = None;
        return;
    }
    state.sizes.chart = width;
    let Some(parts) = state.columns() else {
        return;
    };
    let selected = state.chart_at.map(|at| parts.at(at));
    let chart = Chart {
        width,
        selected: selected.map(|column| cells(column, parts.all.len(), width)),
        theme,
    };
    let mut lines = vec![heading(&parts, selected, theme)];
    let lanes: Vec<_> = [
        ("4xx", &parts.client_errors, theme.client_error()),
        ("5xx", &parts.server_errors, theme.server_error()),
    ]
    .into_iter()
    .filter(|(_, counts, _)| counts.iter().any(|&count| count > 0))
    .collect();
    let height = usize::from(area.height)
        .saturating_sub(2 + lanes.len())
        .max(1);
    let peak = parts.all.iter().copied().max().unwrap_or(0);
    let spread = Columns::spread(&parts.all, width);
    for (row, text) in columns(&spread, height).iter().enumerate() {
        let label = if row == 0 { short(peak) } else { String::new() };
        lines.push(chart.line(&label, text, theme.bar()));
    }
    for (name, counts, style) in lanes {
        let text = sparkline(&Columns::spread(counts, width));
        lines.push(chart.line(name, &text, style));
    }
    lines.push(axis(&parts, width, theme));
    frame.render_widget(Paragraph::new(lines), area);
}

struct Chart {
    width: usize,
    /// The cells of the selected column.
    selected: Option<std::ops::Range<usize>>,
    theme: Theme,
}

impl Chart {
    /// Returns a line of the chart with a label at its left.
    fn line(&self, label: &str, text: &str, style: Style) -> Line<'static> {
        let chars: Vec<char> = text.chars().collect();
        let label = Span::styled(
            format!("{label:>width$} ", width = GUTTER - 1),
            self.theme.dim(),
        );
        let part = |from: usize, to: usize, style| {
            let to = to.min(chars.len());
            let text: String = chars[from.min(to)..to].iter().collect();
            Span::styled(text, style)
        };
        let Some(selected) = &self.selected else {
            return Line::from(vec![label, part(0, self.width, style)]);
        };
        Line::from(vec![
            label,
            part(0, selected.start, style),
            part(
                selected.start,
                selected.end,
                style.add_modifier(Modifier::REVERSED),
            ),
            part(selected.end, self.width, style),
        ])
    }
}

/// Returns the cells that a column occupies after [`Columns::spread`].
fn cells(column: usize, columns: usize, width: usize) -> std::ops::Range<usize> {
    let start = |column: usize| (column * width).div_ceil(columns.max(1));
    start(column)..start(column + 1)
}

fn heading(parts: &Columns, selected: Option<usize>, theme: Theme) -> Line<'static> {
    let Some(column) = selected else {
        let peak = parts.all.iter().copied().max().unwrap_or(0);
        let text = format!(
            "   each column is {}, peak {}",
            duration(parts.seconds),
            grouped(peak)
        );
        return Line::from(vec![
            Span::styled("  Requests over time", theme.bold()),
            Span::styled(text, theme.dim()),
        ]);
    };
    let of = |counts: &[u64]| counts.get(column).copied().unwrap_or(0);
    let at = parts.period(column);
    let errors = [
        (
            of(&parts.client_errors),
            "client error",
            theme.client_error(),
        ),
        (
            of(&parts.server_errors),
            "server error",
            theme.server_error(),
        ),
    ];
    let mut line = Line::from(vec![
        Span::styled("▸ ", theme.accent()),
        Span::styled(period(Some(at.from), Some(at.until)), theme.bold()),
        Span::raw(format!("   {}", counted(of(&parts.all), "request"))),
    ]);
    for (count, name, style) in errors.into_iter().filter(|(count, ..)| *count > 0) {
        line.push_span(Span::styled(format!(", {}", counted(count, name)), style));
    }
    line
}

fn axis(parts: &Columns, width: usize, theme: Theme) -> Line<'static> {
    let moment = match parts.seconds {
        ..60 => precise_moment,
        60.. => moment,
    };
    let (start, end) = (moment(parts.start), moment(parts.end));
    let gap = width.saturating_sub(start.len());
    let text = match gap > end.len() {
        true => format!("{:GUTTER$}{start}{end:>gap$}", ""),
        false => format!("{:GUTTER$}{start}", ""),
    };
    Line::styled(text, theme.dim())
}

/// Returns a number with at most three significant digits.
fn short(number: u64) -> String {
    let text = scaled(number as f64, 1_000.0, &["", "k", "M", "G", "T"], ' ');
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::{cells, short};
    use crate::logs::screen::columns::Columns;

    #[test]
    fn the_selected_cells_are_those_of_the_column() {
        for (columns, width) in [(3, 10), (10, 10), (7, 100), (1, 5)] {
            let numbers: Vec<usize> = (0..columns).collect();
            let spread = Columns::spread(&numbers, width);
            for column in numbers {
                let expected = spread.iter().filter(|&&it| it == column).count();
                let cells = cells(column, columns, width);
                assert_eq!(cells.len(), expected);
                assert!(spread[cells].iter().all(|&it| it == column));
            }
        }
    }

    #[test]
    fn labels_are_short() {
        assert_eq!(
            [short(0), short(412), short(12_345)],
            ["0", "412", "12.3 k"]
        );
        assert!(short(u64::MAX).len() < 12);
    }
}
