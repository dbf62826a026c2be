//! Markdown for a README: the summary, some headline figures, and every cell in which linerate is
//! not first.

use linerate_harness::table::{Align, Table, escaped};

use crate::record::Record;
use crate::report::about::machine_line;
use crate::report::number::{NONE, bytes, ratio};
use crate::report::words::{Names, figure, metric_short};
use crate::report::{date, heat};
use crate::summary::{Base, CellSummary, LostCell, Mean, REFERENCE, Standing, Summary};

/// Largest number of characters in a line.
const LINE_CHARS_MAX: usize = 120;

/// Replaces the figures of a cell that has no first.
const NOT_MEASURABLE: &str = "not measurable here: load-bound";

/// Renders the Markdown of a record, without a heading.
pub fn markdown(record: &Record) -> String {
    let summary = Summary::of(record);
    let names = Names::new(record);
    let run = &record.run;
    let mut text = String::new();
    text.push_str(&filled(
        &format!(
            "{}, {}; effort “{}”, taken by `{}`.",
            date(&run.started),
            machine_line(&run.host),
            run.effort,
            run.command
        ),
        "",
    ));
    text.push('\n');
    text.push_str(&filled(&heat::sentences(&summary, &names).join(" "), ""));
    text.push_str(&ratios(&summary, &names));
    text.push_str(&headlines(&summary, &names));
    text.push_str(&compressed(&summary, &names));
    text.push_str(&behind(&summary, &names));
    text
}

/// Renders the table of contenders by scenarios.
fn ratios(summary: &Summary, names: &Names<'_>) -> String {
    let has_overall = summary.scenarios.iter().any(|it| it.base == Base::RawTcp);
    let mut head = vec![String::new()];
    head.extend(has_overall.then(|| "overall".into()));
    head.extend(summary.scenarios.iter().map(|scenario| {
        let mark = if scenario.base == Base::First {
            " †"
        } else {
            ""
        };
        format!("{}{mark}", scenario.note.name)
    }));
    let rows = summary.contenders.iter().map(|name| {
        let mut row = vec![names.title(name).to_owned()];
        row.extend(has_overall.then(|| mean(summary.overall(name, Base::RawTcp))));
        row.extend(summary.scenarios.iter().map(|it| mean(it.mean(name))));
        row
    });
    let mut text = String::from("\n");
    text.push_str(&filled(
        "Performance relative to a bare TCP echo: the geometric mean over the cells of each scenario. A count in brackets \
         means that the mean covers only some of the cells (or scenarios). † Relative to the first of each cell, because the \
         bare echo cannot take part or memory is compared. Scenarios in which the bare echo is not an upper bound (it answers \
         each piece that arrives, and writes to each subscriber separately) have a column, but are not part of the overall mean.",
        "",
    ));
    text.push('\n');
    text.push_str(&table(&head, rows));
    text
}

fn mean(mean: Option<Mean>) -> String {
    match mean {
        None => NONE.into(),
        Some(it) if it.count < it.of => format!("{} ({}/{})", ratio(it.ratio), it.count, it.of),
        Some(it) => ratio(it.ratio),
    }
}

/// Renders the first cell of each scenario: a choice that was not influenced by the figures.
fn headlines(summary: &Summary, names: &Names<'_>) -> String {
    let head = [
        "first cell of scenario",
        "metric",
        "linerate",
        "best other",
        "raw TCP",
    ]
    .map(String::from);
    let cells = summary.scenarios.iter().filter_map(|it| it.cells.first());
    let rows = cells.map(|cell| {
        let text = |standing: Option<&Standing>| {
            let median = standing.and_then(|it| it.headline).map(|it| it.median);
            median.map_or(NONE.into(), |it| figure(cell.metric, it))
        };
        let (ours, other) = (cell.ours(), cell.best_peer());
        let metric = metric_short(cell.metric).to_owned();
        let title = format!("{}: {}", cell.cell.scenario, cell.cell.title);
        if cell.is_load_bound() {
            let raw = text(cell.standing(REFERENCE));
            return vec![
                title,
                metric,
                NOT_MEASURABLE.into(),
                NOT_MEASURABLE.into(),
                raw,
            ];
        }
        let named = |standing: Option<&Standing>| {
            let counted = standing.filter(|it| it.headline.is_some());
            let name = counted.map(|it| format!(" ({})", names.title(&it.contender)));
            format!("{}{}", text(standing), name.unwrap_or_default())
        };
        vec![
            title,
            metric,
            named(ours),
            named(other),
            text(cell.standing(REFERENCE)),
        ]
    });
    format!("\n{}", table(&head, rows))
}

/// Compares the cells whose messages are compressed. A server that compresses less is faster
/// because of that.
fn compressed(summary: &Summary, names: &Names<'_>) -> String {
    let cells = summary.scenarios.iter().flat_map(|it| &it.cells);
    let rows: Vec<_> = cells
        .filter(|cell| cell.is_compressed())
        .map(|cell| compressed_row(cell, names))
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let head = [
        "compressed cell",
        "linerate",
        "best other",
        "best other of similar size",
    ];
    let about = "Compressed messages: the compared figure, with the size of a message on the wire in brackets. The last column \
         has the best other contender whose messages are at most 2 % longer than linerate's, and linerate's factor over it.";
    let table = table(&head.map(String::from), rows.into_iter());
    format!("\n{}\n{table}", filled(about, ""))
}

fn compressed_row(cell: &CellSummary, names: &Names<'_>) -> Vec<String> {
    let text = |standing: Option<&Standing>| {
        let Some((it, headline)) = standing.and_then(|it| Some((it, it.headline?))) else {
            return NONE.into();
        };
        let wire = it.medians.as_ref().and_then(|it| it.wire_bytes);
        let wire = wire.map_or(NONE.into(), |it| bytes(it.median));
        let title = names.title(&it.contender);
        format!("{title}: {} ({wire})", figure(cell.metric, headline.median))
    };
    let (ours, alike) = (cell.ours(), cell.best_peer_alike());
    let medians = ours
        .and_then(|it| it.headline)
        .zip(alike.and_then(|it| it.headline));
    let times = medians.map(|(ours, it)| cell.metric.ratio(ours.median, it.median));
    let times = times.map(|it| format!(", {}×", ratio(it)));
    vec![
        cell.cell.title.clone(),
        text(ours),
        text(cell.best_peer()),
        format!("{}{}", text(alike), times.unwrap_or_default()),
    ]
}

/// Lists the cells in which linerate is not first, in one paragraph for each scenario.
fn behind(summary: &Summary, names: &Names<'_>) -> String {
    let all = summary.lost_cells();
    if all.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "\n{}",
        filled(
            "Every cell in which the best of linerate's servers is not first, with the first contender and its lead. In **bold**, \
             every round of the first was better than every round of linerate; other differences are within the spread. In \
             “load-bound” cells no contender is ranked first, and the best measured figure is listed:",
            ""
        )
    );
    text.push('\n');
    for scenario in &summary.scenarios {
        let name = &scenario.note.name;
        let entries: Vec<String> = all
            .iter()
            .filter(|it| it.cell.cell.scenario == *name)
            .map(|it| entry(it, names))
            .collect();
        if !entries.is_empty() {
            let line = format!(
                "- `{name}`, {} of {}: {}",
                entries.len(),
                scenario.cells.len(),
                entries.join(", ")
            );
            text.push_str(&filled(&line, "  "));
        }
    }
    text
}

fn entry(behind: &LostCell<'_>, names: &Names<'_>) -> String {
    let bound = match behind.cell.is_load_bound() {
        true => " (load-bound)",
        false => "",
    };
    let cell = format!("{}{bound}", behind.cell.cell.name);
    let first = escaped(names.title(&behind.first.contender));
    match behind.lead {
        None => format!("{cell} ({first}; linerate has no figure)"),
        Some(lead) if lead.is_clear => format!("**{cell}** ({first} {}×)", ratio(lead.factor)),
        Some(lead) => format!("{cell} ({first} {}×)", ratio(lead.factor)),
    }
}

fn table(head: &[String], rows: impl Iterator<Item = Vec<String>>) -> String {
    let columns = head.iter().map(|head| (head.as_str(), Align::Left));
    Table::new(columns, rows).markdown()
}

/// Breaks a paragraph into lines at spaces. Lines after the first are indented.
fn filled(paragraph: &str, indent: &str) -> String {
    let mut text = String::new();
    let mut chars = 0;
    for word in paragraph.split(' ').filter(|word| !word.is_empty()) {
        let word_chars = word.chars().count();
        if chars > 0 && chars + 1 + word_chars > LINE_CHARS_MAX {
            text.push('\n');
            text.push_str(indent);
            chars = indent.len();
        } else if chars > 0 {
            text.push(' ');
            chars += 1;
        }
        text.push_str(word);
        chars += word_chars;
    }
    text.push('\n');
    text
}
