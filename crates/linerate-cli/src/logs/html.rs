//! `--html`: a report that can be filtered without a server or a network.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use base64::prelude::{BASE64_STANDARD, Engine};
use clap::Args;
use flate2::{Compression, write::GzEncoder};
use linerate_logview::{
    aggregate::{Aggregator, Detail, PackError},
    summary::Summary,
};
use serde::Serialize;

use super::files;
use crate::serve::assets;

/// The options of reports.
#[derive(Args, Debug)]
#[command(next_help_heading = "HTML report")]
pub(super) struct Options {
    /// Write the statistics to an HTML file, which can be filtered and zoomed in a browser without
    /// a server or a network. The name must end with .html.
    #[arg(long, value_name = "FILE", value_parser = html_file, conflicts_with_all = ["json", "watch", "filters", "from", "until", "what_changed"])]
    pub(super) html: Option<PathBuf>,

    /// Maximum size of this file in bytes. If a log does not fit, filters use less exact times and
    /// fewer different values; the file says which.
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 900_000,
        requires = "html"
    )]
    pub(super) html_bytes_max: usize,
}

/// Accepts a name that ends with `.html`, so that no log is overwritten by mistake.
fn html_file(text: &str) -> anyhow::Result<PathBuf> {
    let file = PathBuf::from(text);
    if !file
        .extension()
        .is_some_and(|it| it.eq_ignore_ascii_case("html"))
    {
        bail!("expected a name that ends with .html");
    }
    Ok(file)
}

/// How exactly the requests are stored, in the order in which this is tried.
const DETAILS: [Detail; 6] = [
    detail(1, usize::MAX, false),
    detail(60, usize::MAX, false),
    detail(60, 1_000, false),
    detail(60, 100, false),
    detail(3_600, 100, true),
    detail(3_600, 10, true),
];

const fn detail(seconds: u32, values_max: usize, rounds_numbers: bool) -> Detail {
    Detail {
        seconds,
        values_max,
        rounds_numbers,
    }
}

/// What a page knows about a log before a query.
#[derive(Serialize)]
struct Head<'a> {
    name: String,
    /// `None` if the log cannot be filtered.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<u32>,
    /// `None` for all values.
    #[serde(skip_serializing_if = "Option::is_none")]
    values_max: Option<usize>,
    rounds_numbers: bool,
    summary: &'a Summary,
}

/// Writes the report of a log that was read from `sources`. Returns a description of the file.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub(super) fn write(
    log: &Aggregator,
    sources: &[PathBuf],
    file: &Path,
    bytes_max: usize,
) -> anyhow::Result<String> {
    let template = assets::text("report.html");
    let (before, after) = template
        .split_once("{{report}}")
        .context("report.html of this build has no place for a log")?;
    // Base64 has four characters for three bytes.
    let room = bytes_max.saturating_sub(before.len() + after.len()) / 4 * 3;
    let (content, filters) = content(log, &name_of(sources), room, bytes_max)?;
    let page = [before, &BASE64_STANDARD.encode(content), after].concat();
    fs::write(file, &page).with_context(|| format!("cannot write {}", file.display()))?;
    let bytes = page.len();
    Ok(format!("{}: {bytes} bytes, {filters}\n", file.display()))
}

/// Returns the content of a report, compressed, and what its filters cover. The content has at most
/// `room` bytes, unless the statistics without filters have more.
fn content(
    log: &Aggregator,
    name: &str,
    room: usize,
    bytes_max: usize,
) -> anyhow::Result<(Vec<u8>, String)> {
    let mut summary = log.summary();
    let mut head = Head {
        name: name.to_owned(),
        seconds: None,
        values_max: None,
        rounds_numbers: false,
        summary: &summary,
    };
    let mut refusal = format!("it would exceed the {bytes_max} bytes that a report may have");
    for detail in DETAILS {
        let packed = match log.pack(detail) {
            Ok(packed) => packed,
            Err(error @ (PackError::Query(_) | PackError::TooManyRequests { .. })) => {
                refusal = error.to_string();
                break;
            }
            Err(error) => return Err(error.into()),
        };
        head.seconds = Some(detail.seconds);
        head.rounds_numbers = detail.rounds_numbers;
        head.values_max = Some(detail.values_max).filter(|&it| it < usize::MAX);
        if let Some(content) = compressed(&head, &packed, room)? {
            return Ok((content, described(detail)));
        }
    }
    let filters = format!("without filters: {refusal}");
    summary.filterable.refusal = Some(refusal);
    let head = Head {
        name: name.to_owned(),
        seconds: None,
        values_max: None,
        rounds_numbers: false,
        summary: &summary,
    };
    let content = compressed(&head, &[], usize::MAX)?;
    Ok((content.unwrap_or_default(), filters))
}

/// Compresses a head and a packed log. Returns `None` if they have more than `room` bytes then.
fn compressed(head: &Head<'_>, packed: &[u8], room: usize) -> anyhow::Result<Option<Vec<u8>>> {
    let head = serde_json::to_vec(head)?;
    let length = u32::try_from(head.len()).context("the statistics exceed 4 GiB")?;
    let mut encoder = GzEncoder::new(Bounded::new(room), Compression::best());
    let parts = [&length.to_le_bytes()[..], &head, packed];
    let written = parts
        .into_iter()
        .try_for_each(|part| encoder.write_all(part));
    let content = written.and_then(|()| encoder.finish());
    Ok(content.ok().map(|bounded| bounded.bytes))
}

fn described(detail: Detail) -> String {
    let mut limits = Vec::new();
    match detail.seconds {
        1 => {}
        60 => limits.push("times rounded down to minutes".to_owned()),
        _ => limits.push("times rounded down to hours".to_owned()),
    }
    if detail.rounds_numbers {
        limits.extend(["mean sizes".to_owned(), "rounded durations".to_owned()]);
    }
    if detail.values_max < usize::MAX {
        let values = detail.values_max;
        limits.push(format!("the {values} most frequent values of each field"));
    }
    match limits.as_slice() {
        [] => "filters are exact".to_owned(),
        [limit] => format!("filters use {limit}"),
        [limits @ .., last] => format!("filters use {} and {last}", limits.join(", ")),
    }
}

/// Returns the name of a log, without the directory, which does not concern those who get the file.
fn name_of(sources: &[PathBuf]) -> String {
    let Some((first, others)) = sources.split_first() else {
        return String::new();
    };
    let first = files::name(Path::new(first.file_name().unwrap_or(first.as_os_str())));
    match others.len() as u64 {
        0 => first,
        1 => format!("{first} and 1 more file"),
        more => format!("{first} and {more} more files"),
    }
}

/// A list that refuses more than `bytes_max` bytes.
struct Bounded {
    bytes: Vec<u8>,
    bytes_max: usize,
}

impl Bounded {
    fn new(bytes_max: usize) -> Self {
        Self {
            bytes: Vec::new(),
            bytes_max,
        }
    }
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.bytes_max - self.bytes.len() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;
    use linerate_logview::aggregate::{Aggregator, Limits};
    use serde_json::Value;

    use super::{PathBuf, content, html_file, name_of};

    /// Returns a log of `requests` requests at irregular times, each with its own path.
    fn log(requests: usize) -> Aggregator {
        let mut log = Aggregator::new(Limits::default());
        for n in 0..requests {
            let time = n * n * 31 % 3_600;
            let (minute, second) = (time / 60, time % 60);
            let line = format!(
                "192.0.2.7 - - [22/Jan/2021:01:{minute:02}:{second:02} +0000] \"GET /{} HTTP/1.1\" \
                 200 {}\n",
                n * 7_919 % 100_003,
                n * 104_729 % 10_007,
            );
            log.handle_input(line.as_bytes());
        }
        log
    }

    /// Returns the head of the report and what follows it.
    fn read(content: &[u8]) -> (Value, Vec<u8>) {
        let mut bytes = Vec::new();
        GzDecoder::new(content).read_to_end(&mut bytes).unwrap();
        let packed = bytes.split_off(4);
        let length = u32::from_le_bytes(bytes.try_into().unwrap()) as usize;
        let (head, packed) = packed.split_at(length);
        (serde_json::from_slice(head).unwrap(), packed.to_vec())
    }

    #[test]
    fn less_space_means_less_detail_and_the_same_totals() {
        let log = log(3_000);
        let full = content(&log, "a.log", usize::MAX, 0).unwrap().0.len();
        let mut seen = Vec::new();
        for room in [full, full - 1, full / 2, full / 3, 0] {
            let (content, filters) = content(&log, "a.log", room, 1).unwrap();
            let (head, packed) = read(&content);
            assert_eq!(head["summary"]["requests"], 3_000);
            assert_eq!(packed.is_empty(), head["seconds"].is_null());
            assert!(packed.is_empty() || content.len() <= room);
            if let Ok(log) = Aggregator::unpack(&packed) {
                assert_eq!(log.requests(), 3_000);
            }
            seen.push((filters, head["summary"]["filterable"]["refusal"].clone()));
        }
        assert_eq!(seen[0], ("filters are exact".to_owned(), Value::Null));
        assert_eq!(seen[1].0, "filters use times rounded down to minutes");
        assert!(seen[2].0.contains("most frequent values"), "{seen:?}");
        assert!(seen[4].1.as_str().unwrap().contains("1 bytes"), "{seen:?}");
    }

    #[test]
    fn a_report_has_the_names_of_files_without_directories() {
        let name =
            |sources: &[&str]| name_of(&sources.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(name(&["/var/log/a.log"]), "a.log");
        assert_eq!(name(&["a.log", "b.log"]), "a.log and 1 more file");
        assert_eq!(
            name(&["-", "b.log", "c.log"]),
            "standard input and 2 more files"
        );
    }

    #[test]
    fn a_report_is_not_written_over_a_log() {
        assert!(html_file("report.html").is_ok() && html_file("a/REPORT.HTML").is_ok());
        assert!(html_file("access.log").is_err() && html_file("html").is_err());
    }
}
