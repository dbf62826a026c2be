//! The tables of the view: what a summary ranks, as rows of text.

use linerate_harness::table::grouped;
use linerate_logview::{
    query::Field,
    summary::{Panel as Values, Ranked, Summary, Suspect},
};

use super::super::text::{bytes, counted, moment, percent, printable};
use super::selection::filter_of;

/// A table with values, most frequent first.
#[derive(Clone, Debug)]
pub(super) struct Panel {
    pub(super) name: &'static str,
    /// How many values there are, and how exact the numbers are.
    pub(super) note: String,
    pub(super) columns: &'static [Column],
    pub(super) rows: Vec<Row>,
}

/// A column of a table before the values.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Column {
    pub(super) title: &'static str,
    /// True if narrow tables leave it out.
    pub(super) is_optional: bool,
}

/// A value with its numbers.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// The text in each column.
    pub(super) cells: Vec<String>,
    /// The length of the bar relative to that of the first row, 0 to 1.
    pub(super) share: f64,
    /// The value as shown, without control characters.
    pub(super) shown: String,
    pub(super) errors: u64,
    pub(super) target: Target,
}

/// What a row selects.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Target {
    /// Nothing, for this reason.
    None(&'static str),
    /// The requests with a value of a field.
    Value(Field, String),
}

impl Target {
    /// Returns the filter that selects the requests.
    pub(super) fn filter(&self, comparison: &str) -> Result<String, &'static str> {
        match self {
            Self::None(reason) => Err(reason),
            Self::Value(field, value) => Ok(filter_of(*field, value, comparison)),
        }
    }
}

const fn column(title: &'static str) -> Column {
    Column {
        title,
        is_optional: false,
    }
}

const fn optional(title: &'static str) -> Column {
    Column {
        title,
        is_optional: true,
    }
}

const RANKED: &[Column] = &[
    column("requests"),
    column("share"),
    optional("sent"),
    column("errors"),
];
const SUSPECTS: &[Column] = &[
    column("per minute"),
    optional("requests"),
    column("errors"),
    optional("busiest minute"),
];
const UNPARSED: &[Column] = &[column("line"), column("reason")];

/// Returns all tables that have rows, and the most important ones even if they have none.
pub(super) fn panels(summary: &Summary) -> Vec<Panel> {
    let of = &summary.panels;
    let total = summary.requests;
    let field = |name, field, values| of_values(name, field, values, total);
    let mut panels = vec![
        field("Paths", Field::Path, &of.path),
        field("Addresses", Field::Address, &of.address),
        field("Statuses", Field::Status, &of.status),
        field("Agents", Field::Agent, &of.agent),
        field("Referrers", Field::Referrer, &of.referrer),
        field("Methods", Field::Method, &of.method),
    ];
    let main = panels.len();
    panels.extend([
        field("Virtual hosts", Field::Host, &of.host),
        bots(summary),
        field("Browsers", Field::Browser, &summary.browsers),
        field("Systems", Field::System, &summary.systems),
        errors(
            "Paths with client errors",
            &summary.error_paths.client,
            total,
        ),
        errors(
            "Paths with server errors",
            &summary.error_paths.server,
            total,
        ),
        suspects(
            "Busiest addresses",
            "by their busiest minute",
            &summary.firewall.by_rate,
        ),
        suspects(
            "Failing addresses",
            "by errors",
            &summary.firewall.by_errors,
        ),
        unparsed(summary),
    ]);
    panels.extend(countries(summary));
    let mut index = 0;
    panels.retain(|panel| {
        index += 1;
        index <= main || !panel.rows.is_empty()
    });
    panels
}

fn of_values(name: &'static str, field: Field, values: &Values, total: u64) -> Panel {
    let mut rows = ranked(field, &values.top, total);
    if values.none > 0 && !values.top.is_empty() && !field.is_number() {
        rows.push(Row {
            cells: vec![
                grouped(values.none),
                percent(values.none, total),
                String::new(),
                String::new(),
            ],
            share: 0.0,
            shown: "(none)".to_owned(),
            errors: 0,
            target: Target::Value(field, String::new()),
        });
    }
    Panel {
        name,
        note: note(values),
        columns: RANKED,
        rows,
    }
}

fn note(values: &Values) -> String {
    let about = if values.exact { "" } else { "about " };
    let mut note = format!("{about}{}", grouped(values.distinct));
    if values.error_max > 0 {
        note += &format!(", up to {} too low", grouped(values.error_max));
    }
    if values.not_counted > 0 {
        note += &format!(", {} not listed", counted(values.not_counted, "request"));
    }
    note
}

fn bots(summary: &Summary) -> Panel {
    Panel {
        name: "Bots",
        note: counted(summary.bots.requests, "request"),
        columns: RANKED,
        rows: ranked(Field::Bot, &summary.bots.top, summary.requests),
    }
}

fn errors(name: &'static str, rows: &[Ranked], total: u64) -> Panel {
    Panel {
        name,
        note: String::new(),
        columns: RANKED,
        rows: ranked(Field::Path, rows, total),
    }
}

fn countries(summary: &Summary) -> Option<Panel> {
    let (values, names) = (
        summary.panels.country.as_ref()?,
        summary.country_names.as_ref()?,
    );
    let mut panel = of_values("Countries", Field::Country, values, summary.requests);
    for row in &mut panel.rows {
        if let Some(name) = names.get(&row.shown) {
            row.shown = format!("{} {}", row.shown, printable(name));
        }
    }
    Some(panel)
}

fn ranked(field: Field, rows: &[Ranked], total: u64) -> Vec<Row> {
    let max = rows.iter().map(|row| row.requests).max().unwrap_or(0);
    let row = |row: &Ranked| Row {
        cells: vec![
            grouped(row.requests),
            percent(row.requests, total),
            bytes(row.bytes),
            grouped(row.errors),
        ],
        share: row.requests as f64 / max.max(1) as f64,
        shown: printable(&row.value),
        errors: row.errors,
        target: match row.value.as_str() {
            "(other)" => Target::None("these are several values"),
            value => Target::Value(field, value.to_owned()),
        },
    };
    rows.iter().map(row).collect()
}

fn suspects(name: &'static str, note: &str, rows: &[Suspect]) -> Panel {
    let max = rows
        .iter()
        .map(|row| row.peak_per_minute)
        .max()
        .unwrap_or(0);
    let row = |row: &Suspect| Row {
        cells: vec![
            grouped(row.peak_per_minute),
            grouped(row.requests),
            grouped(row.errors),
            moment(row.peak_at).trim_end_matches(" UTC").to_owned(),
        ],
        share: row.peak_per_minute as f64 / max.max(1) as f64,
        shown: printable(&row.value),
        errors: row.errors,
        target: Target::Value(Field::Address, row.value.clone()),
    };
    Panel {
        name,
        note: note.to_owned(),
        columns: SUSPECTS,
        rows: rows.iter().map(row).collect(),
    }
}

fn unparsed(summary: &Summary) -> Panel {
    let samples = summary.unparsed_samples.iter().map(|sample| Row {
        cells: vec![grouped(sample.line), sample.reason.to_owned()],
        share: 0.0,
        shown: printable(&sample.text),
        errors: 0,
        target: Target::None("these lines are not requests"),
    });
    let reasons = summary.unparsed_reasons.iter();
    let reasons: Vec<_> = reasons
        .map(|(reason, count)| format!("{} {reason}", grouped(*count)))
        .collect();
    Panel {
        name: "Lines that did not parse",
        note: reasons.join(", "),
        columns: UNPARSED,
        rows: samples.collect(),
    }
}

#[cfg(test)]
mod tests {
    use linerate_logview::{
        aggregate::{Aggregator, Limits},
        query::Query,
    };

    use super::panels;

    #[test]
    fn each_row_selects_as_many_requests_as_it_says() {
        let mut log = Aggregator::new(Limits::default());
        for n in 0..300 {
            let line = format!(
                "192.0.2.{} - - [22/Jan/2021:01:{:02}:05 +0000] \"GET /a*{} HTTP/1.1\" {} 10 \"{}\" \"{}{}\"\n",
                n % 7,
                n % 60,
                n % 11,
                [200, 404, 500][n % 3],
                ["-", "https://example.org/\u{202e}"][n % 2],
                ["Googlebot/", "Mozilla/5.0 (X11; Linux x86_64) Firefox/"][n / 2 % 2],
                n % 5,
            );
            log.handle_input(line.as_bytes());
        }
        log.handle_input(b"\x1b[2J\n");
        let panels = panels(&log.summary());
        let mut selected = 0;
        for (panel, row) in panels
            .iter()
            .flat_map(|it| it.rows.iter().map(move |row| (it, row)))
        {
            assert_eq!(row.cells.len(), panel.columns.len(), "{}", panel.name);
            assert!(!row.shown.contains(['\x1b', '\u{202e}']), "{}", row.shown);
            let counts = panel
                .columns
                .iter()
                .position(|column| column.title == "requests");
            let (Ok(filter), Some(counts)) = (row.target.filter("=="), counts) else {
                continue;
            };
            let query = Query {
                filters: vec![filter],
                ..Query::default()
            };
            let figures = log.figures(&query).unwrap();
            // Tables of errors count only errors.
            let is_of_errors = panel.name.contains(" with ");
            let requests = match is_of_errors {
                true => row.cells[3].clone(),
                false => figures.requests.to_string(),
            };
            assert_eq!(row.cells[counts], requests, "{}: {}", panel.name, row.shown);
            selected += 1;
        }
        assert!(selected > 40, "{selected}");
        let names: Vec<_> = panels.iter().map(|panel| panel.name).collect();
        assert!(names.contains(&"Browsers") && names.contains(&"Systems"));
        assert_eq!(names[..3], ["Paths", "Addresses", "Statuses"]);
        assert_eq!(names.last(), Some(&"Lines that did not parse"));
    }
}
