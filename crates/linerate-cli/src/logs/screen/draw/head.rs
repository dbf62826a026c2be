//! The lines at the top: the log, its totals, and which requests are selected.

use linerate_harness::table::grouped;
use linerate_logview::summary::Summary;
use ratatui::{
    style::Style,
    text::{Line, Span},
};

use super::super::super::{
    chart::bar,
    text::{
        bytes, counted, duration, microseconds, percent, precise_moment, printable, without_middle,
    },
};
use super::super::message::{Phase, Progress};
use super::super::selection::{Selection, searched};
use super::super::state::State;
use super::super::theme::Theme;

/// The width of the progress bar.
const PROGRESS_WIDTH: usize = 10;

/// Returns the line with the name of the log and what is done with it.
pub(super) fn title(state: &State, theme: Theme, width: u16) -> Line<'static> {
    let status = status(state, theme);
    let format = state.figures.as_ref().map_or("", |it| &it.format);
    let left = 17 + format.chars().count();
    let room = usize::from(width).saturating_sub(left + status.width() + 1);
    let name = without_middle(&printable(&state.name), room.max(8));
    let mut spans = vec![
        Span::styled(" linerate logs ", theme.selected()),
        Span::raw(" "),
        Span::styled(name, theme.bold()),
        Span::raw(" "),
        Span::styled(printable(format), theme.dim()),
    ];
    let used: usize = spans.iter().map(Span::width).sum();
    let gap = usize::from(width).saturating_sub(used + status.width() + 1);
    spans.push(Span::raw(" ".repeat(gap.max(1))));
    spans.extend(status.spans);
    Line::from(spans)
}

fn status(state: &State, theme: Theme) -> Line<'static> {
    let progress = &state.progress;
    if state.failure.is_some() {
        return Line::styled("✗ reading failed", theme.failure());
    }
    let damaged = state.figures.as_ref().map_or(0, |it| it.damaged.len());
    match progress.phase {
        _ if damaged > 0 => {
            let is = if damaged == 1 { "is" } else { "are" };
            let text = format!("✗ {} {is} incomplete", counted(damaged as u64, "file"));
            Line::styled(text, theme.failure())
        }
        Phase::Complete => Line::styled(format!("{} read", bytes(progress.bytes)), theme.dim()),
        Phase::Following => Line::styled("● live", theme.success()),
        Phase::Reading => reading(progress, theme),
    }
}

fn reading(progress: &Progress, theme: Theme) -> Line<'static> {
    let Some(size) = progress.size.filter(|size| *size > 0) else {
        return Line::styled(
            format!("reading, {}", bytes(progress.bytes)),
            theme.accent(),
        );
    };
    let left = size.saturating_sub(progress.bytes) as f64 / progress.rate.max(1.0);
    let bar = bar(progress.bytes.min(size), size, PROGRESS_WIDTH);
    Line::from(vec![
        Span::styled(
            format!("reading {} ", percent(progress.bytes, size)),
            theme.accent(),
        ),
        Span::styled(format!("{bar:░<PROGRESS_WIDTH$}"), theme.accent()),
        Span::styled(
            format!(" {} left", duration(left.ceil() as u64)),
            theme.dim(),
        ),
    ])
}

/// Returns the line with the totals of the selected requests, as many as fit.
pub(super) fn totals(state: &State, theme: Theme, width: u16) -> Line<'static> {
    let Some(figures) = &state.figures else {
        return Line::default();
    };
    let mut line = Line::raw(" ");
    let mut room = usize::from(width).saturating_sub(1);
    let mut add = |number: String, label: &str, style: Style| {
        let needed = number.chars().count() + label.len() + 1;
        if needed > room {
            room = 0;
            return;
        }
        room = room.saturating_sub(needed + 3);
        line.push_span(Span::styled(number, style.patch(theme.bold())));
        line.push_span(Span::styled(format!(" {label}   "), theme.dim()));
    };
    let plain = Style::new();
    let label = match state.filtering.applied.is_all() {
        true => word(figures.requests, ["request", "requests"]).to_owned(),
        false => {
            // Lines are those of the whole log.
            let all = figures.lines - figures.unparsed - figures.blank;
            format!("of {} requests", grouped(all))
        }
    };
    add(grouped(figures.requests), &label, plain);
    let errors = errors(figures);
    let style = if errors > 0 {
        theme.client_error()
    } else {
        plain
    };
    add(percent(errors, figures.requests), "errors", style);
    add(bytes(figures.bytes_sent), "sent", plain);
    let about = |is_exact| if is_exact { "" } else { "about " };
    let (addresses, paths) = (&figures.panels.address, &figures.panels.path);
    for (values, words) in [
        (addresses, ["address", "addresses"]),
        (paths, ["path", "paths"]),
    ] {
        let count = format!("{}{}", about(values.exact), grouped(values.distinct));
        add(count, word(values.distinct, words), plain);
    }
    if let Some(latency) = figures.latency.as_ref().filter(|it| it.count > 0) {
        add(microseconds(latency.p50_us), "median", plain);
        add(microseconds(latency.p99_us), "p99", plain);
    }
    if figures.unparsed > 0 {
        add(grouped(figures.unparsed), "did not parse", plain);
    }
    line
}

/// Returns the word for one or the word for several.
const fn word(count: u64, [one, several]: [&'static str; 2]) -> &'static str {
    match count {
        1 => one,
        _ => several,
    }
}

/// Returns how many requests have a status of 400 to 599.
fn errors(figures: &Summary) -> u64 {
    let classes = ["4xx", "5xx"].iter();
    classes
        .filter_map(|class| figures.status_classes.get(class))
        .sum()
}

/// Returns the line with the filters, and with those that are being applied.
pub(super) fn filters(state: &State, theme: Theme) -> Line<'static> {
    let mut line = Line::raw(" ");
    for chip in chips(&state.filtering.applied) {
        line.push_span(Span::styled(format!(" {chip} "), theme.selected()));
        line.push_span(Span::raw(" "));
    }
    if let Some(pending) = &state.filtering.pending {
        let percent = (pending.fraction * 100.0) as u64;
        let mut wanted = chips(&pending.selection).join(" and ");
        if wanted.is_empty() {
            wanted = "all requests".to_owned();
        }
        let text = format!("filtering, {percent} %: {wanted}");
        line.push_span(Span::styled(text, theme.dim()));
    } else if state.filtering.applied.is_all() {
        let text = match state
            .figures
            .as_ref()
            .and_then(|it| it.first_time.zip(it.last_time))
        {
            Some((first, last)) => {
                format!("all requests, {}", period(Some(first), Some(last)))
            }
            None => "no requests yet".to_owned(),
        };
        line.push_span(Span::styled(text, theme.dim()));
    }
    line
}

/// Returns a short text for each filter and for the period.
fn chips(selection: &Selection) -> Vec<String> {
    let filters = selection.filters.iter();
    let filters = filters.map(|filter| match searched(filter) {
        Some(text) => format!("contains {}", printable(text)),
        None => printable(filter),
    });
    let has_period = selection.from.is_some() || selection.until.is_some();
    let period = has_period.then(|| period(selection.from, selection.until));
    filters.chain(period).collect()
}

/// Returns a period, whose ends are on the same day if the day is named once.
pub(super) fn period(from: Option<i64>, until: Option<i64>) -> String {
    let text = |at: i64| precise_moment(at).trim_end_matches(" UTC").to_owned();
    match (from.map(text), until.map(text)) {
        (Some(from), Some(until)) => {
            let until = match (from.split_once(' '), until.split_once(' ')) {
                (Some((day, _)), Some((same, time))) if day == same => time,
                _ => &until,
            };
            format!("{from} – {until} UTC")
        }
        (Some(from), None) => format!("from {from} UTC"),
        (None, Some(until)) => format!("until {until} UTC"),
        (None, None) => "all times".to_owned(),
    }
}

/// Returns the names of all tables, of which those around the focus are visible.
pub(super) fn strip(state: &State, theme: Theme, width: u16) -> Line<'static> {
    let panels = state.tables.panels();
    let focus = state.tables.focus();
    // A name, a space on each side, and the line between two names.
    let widths: Vec<usize> = panels
        .iter()
        .map(|it| it.name.chars().count() + 3)
        .collect();
    let room = usize::from(width).saturating_sub(4);
    let first = (0..=focus).find(|&first| {
        let next = (focus + 2).min(panels.len());
        first == focus || widths[first..next].iter().sum::<usize>() <= room
    });
    let first = first.unwrap_or(focus);
    let before = if first > 0 { "‹ " } else { "  " };
    let mut line = Line::from(Span::styled(before, theme.dim()));
    let mut used = 0;
    for (index, panel) in panels.iter().enumerate().skip(first) {
        used += widths[index];
        if used > room && index > focus {
            line.push_span(Span::styled("›", theme.dim()));
            break;
        }
        let has_focus = index == focus && state.chart_at.is_none();
        let style = match has_focus {
            true => theme.selected(),
            false => theme.dim(),
        };
        line.push_span(Span::styled(format!(" {} ", panel.name), style));
        line.push_span(Span::styled("│", theme.dim()));
    }
    line
}
