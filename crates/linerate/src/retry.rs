//! The table that decides whether to connect again (RFC 6455 §7.4, RFC 9110 §15); `retry.md`
//! documents it.

use linerate_proto::engine::Closed;

/// Whether, and how soon, to connect again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Retry {
    /// After a longer wait, as the peer asks for.
    Later,
    /// The next attempt would end the same way.
    Never,
    /// After the usual wait.
    Soon,
}

impl Retry {
    /// Returns what to do after a connection ended with this close code.
    pub(crate) const fn after_code(code: u16) -> Self {
        match code {
            1001 | Closed::ABNORMAL | 1011 | 1012 | 1014 => Self::Soon,
            1013 => Self::Later,
            // Registered with IANA: unauthorized and forbidden.
            3000 | 3003 => Self::Never,
            // Ranges for the application, halved by the convention of Centrifuge, which
            // `linerate serve` follows: the upper halves are final.
            3000..=3499 | 4000..=4499 => Self::Soon,
            _ => Self::Never,
        }
    }

    /// Returns what to do after a server refused the opening handshake with this HTTP status.
    pub(crate) const fn after_status(status: u16) -> Self {
        match status {
            408 | 425 | 429 => Self::Soon,
            501 | 505 | 300..=499 => Self::Never,
            _ => Self::Soon,
        }
    }

    pub(crate) fn is_never(self) -> bool {
        self == Self::Never
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the first cells of the rows that begin with `word`, and their answers.
    fn rows(word: &str) -> impl Iterator<Item = (&'static str, Retry)> {
        include_str!("retry.md").lines().filter_map(move |line| {
            let (ends, answer) = line.strip_prefix("| ")?.split_once(" | ")?;
            let is_meant = ends.starts_with(word);
            let retry = match answer {
                _ if answer.contains("longer wait") => Retry::Later,
                _ if answer.starts_with("yes") => Retry::Soon,
                _ => Retry::Never,
            };
            is_meant.then_some((ends, retry))
        })
    }

    /// Returns the numbers and ranges of numbers in a cell.
    fn numbers(cell: &str) -> Vec<u16> {
        let words = cell.split(|char: char| !(char.is_ascii_digit() || char == '–'));
        let ranges = words.filter(|word| word.len() >= 3 && !word.starts_with('–'));
        let bounds = ranges.map(|range| range.split_once('–').unwrap_or((range, range)));
        bounds
            .flat_map(|(first, last)| first.parse().unwrap()..=last.parse().unwrap())
            .collect()
    }

    #[test]
    fn the_documented_close_codes_are_those_of_the_code() {
        let mut known = 0;
        for (cell, retry) in rows("code") {
            for code in numbers(cell) {
                assert_eq!(Retry::after_code(code), retry, "{code}");
                known += 1;
            }
        }
        assert_eq!(known, 2_000 + 14, "every code that may end a connection");
    }

    #[test]
    fn the_documented_statuses_are_those_of_the_code() {
        let mut documented = [Retry::Soon; 1_000];
        // Special cases come before the ranges to which they are exceptions.
        let all: Vec<_> = rows("status").chain(rows("other statuses 5")).collect();
        for (cell, retry) in all.iter().rev() {
            for status in numbers(cell) {
                documented[usize::from(status)] = *retry;
            }
        }
        for (cell, retry) in rows("status ") {
            for status in numbers(cell) {
                documented[usize::from(status)] = retry;
            }
        }
        for status in 100..=599 {
            let expected = documented[usize::from(status)];
            assert_eq!(Retry::after_status(status), expected, "{status}");
        }
    }
}
