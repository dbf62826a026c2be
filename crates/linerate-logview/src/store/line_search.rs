//! Looks for a text in the stored lines, regardless of case.

use memchr::memmem::Finder;

/// A text that lines are searched for.
#[derive(Debug)]
pub(crate) struct LineSearch {
    /// In lower case.
    text: String,
    /// The block that was searched last, by its index, and which of its lines have the text.
    pub(super) open: Option<(usize, Vec<bool>)>,
}

impl LineSearch {
    /// Creates a search for a text; letters match in upper and lower case.
    pub(crate) fn new(text: &str) -> Self {
        Self {
            text: text.to_lowercase(),
            open: None,
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let open = self.open.as_ref();
        self.text.capacity() + open.map_or(0, |(_, lines)| lines.capacity())
    }

    /// Returns for each line of a text, which end at `ends`, whether it has the searched text.
    pub(super) fn of_lines(&self, text: &[u8], ends: impl Iterator<Item = usize>) -> Vec<bool> {
        let finder = Finder::new(&self.text);
        let lower = match self.text.is_ascii() {
            true => text.to_ascii_lowercase(),
            false => Vec::new(),
        };
        let mut start = 0;
        ends.map(|end| {
            let line = start..end;
            start = end;
            if lower.is_empty() {
                let line = text.get(line).unwrap_or_default();
                let line = String::from_utf8_lossy(line).to_lowercase();
                return finder.find(line.as_bytes()).is_some();
            }
            let line = lower.get(line).unwrap_or_default();
            finder.find(line).is_some()
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::LineSearch;

    fn found(text: &str, lines: &[&[u8]]) -> Vec<bool> {
        let ends = lines.iter().scan(0, |end, line| {
            *end += line.len();
            Some(*end)
        });
        LineSearch::new(text).of_lines(&lines.concat(), ends)
    }

    #[test]
    fn letters_match_in_any_case() {
        let lines: [&[u8]; 4] = [b"GET /Admin", b"get /", b"", b"POST /ADMIN/x"];
        assert_eq!(found("admin", &lines), [true, false, false, true]);
        assert_eq!(found("GET", &lines), [true, true, false, false]);
        assert_eq!(found("", &lines), [true; 4]);
        let lines = [
            "/\u{c4}pfel".as_bytes(),
            "/\u{e4}pfel".as_bytes(),
            b"/apfel",
        ];
        assert_eq!(found("\u{c4}PFEL", &lines), [true, true, false]);
    }

    #[test]
    fn a_match_never_crosses_the_end_of_a_line() {
        assert_eq!(found("ab", &[b"xa", b"bx", b"xab"]), [false, false, true]);
        assert_eq!(
            found("\u{e4}b", &["\u{e4}".as_bytes(), b"b"]),
            [false, false]
        );
        assert_eq!(found("a", &[b"\xff", b"\xffA"]), [false, true]);
    }
}
