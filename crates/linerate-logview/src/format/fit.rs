//! How well a detected format fits the first lines of a log.

use serde::Serialize;

/// How many of the first lines of a log are requests in its format, and in the next best one.
///
/// ```
/// use linerate_logview::format::{Format, FormatFit};
///
/// let log = b"192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] \"GET / HTTP/1.1\" 200 654\nturned over\n";
/// let format = Format::detect(log).ok_or("no known format")?;
/// let fit = FormatFit::of(&format, log);
/// assert_eq!((fit.lines, fit.requests, fit.certain), (2, 1, false));
/// assert_eq!(fit.runner_up, None);
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FormatFit {
    /// The name of the format.
    pub format: String,
    /// How many lines were examined, up to 256. Blank lines and comments are not.
    pub lines: usize,
    /// How many of them are requests in the format.
    pub requests: usize,
    /// True if at least three of four lines are requests, and no other format reads half as many.
    pub certain: bool,
    /// The other format in which most of them are requests, if there is any.
    pub runner_up: Option<RunnerUp>,
}

/// The next best format.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RunnerUp {
    /// The name of the format.
    pub format: String,
    /// How many of the lines are requests in this format.
    pub requests: usize,
}

impl FormatFit {
    /// Examines the first lines of a log. Only complete lines count, unless there is only one.
    pub fn of(format: &super::Format, head: &[u8]) -> Self {
        let mut lines = super::known::first_lines(head);
        lines.retain(|line| !line.is_empty() && !line.starts_with(b"#"));
        let (requests, runner_up) = super::known::compare(&format.layout, head, &lines);
        let others = runner_up.as_ref().map_or(0, |(requests, _)| *requests);
        Self {
            format: format.name().to_owned(),
            lines: lines.len(),
            requests,
            certain: requests * 4 >= lines.len() * 3 && others * 2 < requests.max(1),
            runner_up: runner_up.map(|(requests, layout)| RunnerUp {
                format: layout.name().to_owned(),
                requests,
            }),
        }
    }
}
