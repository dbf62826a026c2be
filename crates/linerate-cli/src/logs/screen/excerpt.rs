//! The lines of the selected requests, of which only a part is loaded.

use linerate_logview::query::{LogLine, Rows};

use super::field::TextField;

/// How many lines are loaded at once: as many as a query may return.
pub(super) const LOADED_MAX: usize = 1_000;
/// How far a step to the side moves, in columns.
const SIDE_STEP: usize = 16;
/// The longest line that is loaded, in characters.
const LINE_CHARS_MAX: usize = 2_000;

/// Lines, and what of them is visible.
#[derive(Clone, Debug, Default)]
pub(super) struct Excerpt {
    /// What lines must contain; empty shows all.
    pub(super) text: String,
    /// A text that is being typed.
    pub(super) typed: Option<TextField>,
    /// How many lines there are; `None` until they are counted.
    pub(super) total: Option<u64>,
    /// The number of the first visible line among all, from 0.
    top: u64,
    /// How many columns of each line are hidden at the left.
    pub(super) left: usize,
    /// Loaded lines, and the number of the first of them.
    first: u64,
    lines: Vec<LogLine>,
    /// Why no lines can be shown.
    pub(super) problem: Option<String>,
    /// The first line that was asked for.
    asked: Option<u64>,
    /// How many lines are visible.
    pub(super) height: usize,
}

/// A movement of the visible part.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Scroll {
    Down,
    End,
    Home,
    Left,
    PageDown,
    PageUp,
    Right,
    Up,
}

impl Excerpt {
    pub(super) fn scroll(&mut self, scroll: Scroll) {
        let page = self.height.max(1) as u64;
        let last = self.total.unwrap_or(0).saturating_sub(page);
        self.top = match scroll {
            Scroll::Down => self.top + 1,
            Scroll::End => last,
            Scroll::Home => 0,
            Scroll::PageDown => self.top + page,
            Scroll::PageUp => self.top.saturating_sub(page),
            Scroll::Up => self.top.saturating_sub(1),
            Scroll::Left | Scroll::Right => self.top,
        };
        self.top = self.top.min(last);
        self.left = match scroll {
            Scroll::Left => self.left.saturating_sub(SIDE_STEP),
            Scroll::Right => (self.left + SIDE_STEP).min(LINE_CHARS_MAX),
            Scroll::Home => 0,
            _ => self.left,
        };
    }

    /// Shows only lines that contain a text, from the beginning.
    pub(super) fn find(&mut self, text: String) {
        *self = Self {
            text,
            height: self.height,
            ..Self::default()
        };
    }

    /// Returns the first line to ask for, if visible lines are not loaded.
    pub(super) fn missing(&mut self) -> Option<u64> {
        let end = self.top + self.height.max(1) as u64;
        let wanted = self.total.map_or(end, |total| end.min(total));
        let loaded = self.first..self.first + self.lines.len() as u64;
        let is_loaded = self.total.is_some() && loaded.start <= self.top && wanted <= loaded.end;
        if is_loaded || self.problem.is_some() {
            return None;
        }
        let first = self.top.saturating_sub(LOADED_MAX as u64 / 2);
        (self.asked != Some(first)).then(|| {
            self.asked = Some(first);
            first
        })
    }

    /// Returns the first loaded line, to ask for the same lines again because the log has grown.
    pub(super) fn refresh(&mut self) -> Option<u64> {
        let is_idle = self.asked.is_none() && self.problem.is_none();
        (is_idle && self.total.is_some()).then(|| {
            self.asked = Some(self.first);
            self.first
        })
    }

    pub(super) fn load(&mut self, rows: Rows) {
        self.first = self.asked.take().unwrap_or(0);
        self.total = Some(rows.total);
        self.lines = rows.rows;
        let last = rows.total.saturating_sub(self.height.max(1) as u64);
        self.top = self.top.min(last);
    }

    pub(super) fn refuse(&mut self, problem: String) {
        self.asked = None;
        self.problem = Some(problem);
    }

    /// Returns the visible lines, as far as they are loaded.
    pub(super) fn visible(&self) -> &[LogLine] {
        let Some(skipped) = self.top.checked_sub(self.first) else {
            return &[];
        };
        let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
        let rest = self.lines.get(skipped..).unwrap_or(&[]);
        &rest[..rest.len().min(self.height)]
    }

    /// Returns the number of the first visible line among all, from 0.
    pub(super) fn top(&self) -> u64 {
        self.top
    }

    /// Returns whether lines were asked for and have not arrived.
    pub(super) fn is_loading(&self) -> bool {
        self.asked.is_some()
    }
}

#[cfg(test)]
mod tests {
    use linerate_logview::{
        aggregate::{Aggregator, Limits},
        query::RowsQuery,
    };

    use super::{Excerpt, LOADED_MAX, Scroll};

    /// A log of 5,000 lines whose paths are their numbers.
    fn log() -> Aggregator {
        let mut limits = Limits::default();
        limits.line_bytes_sum_max = 8 << 20;
        let mut log = Aggregator::new(limits);
        for n in 0..5_000 {
            let line =
                format!("::1 - - [22/Jan/2021:01:47:05 +0000] \"GET /{n} HTTP/1.1\" 200 1\n");
            log.handle_input(line.as_bytes());
        }
        log
    }

    /// Loads what is missing; returns whether anything was.
    fn load(excerpt: &mut Excerpt, log: &Aggregator) -> bool {
        let missing = excerpt.missing();
        if let Some(first) = missing {
            let wanted = RowsQuery {
                offset: first,
                limit: LOADED_MAX,
                ..RowsQuery::default()
            };
            excerpt.load(log.rows(&wanted).unwrap());
        }
        missing.is_some()
    }

    fn numbers(excerpt: &Excerpt) -> Vec<u64> {
        excerpt.visible().iter().map(|line| line.line - 1).collect()
    }

    #[test]
    fn visible_lines_are_loaded_wherever_one_scrolls() {
        let log = log();
        let mut excerpt = Excerpt {
            height: 3,
            ..Excerpt::default()
        };
        assert!(load(&mut excerpt, &log));
        for (scroll, expected, loads) in [
            (Scroll::Down, 1, false),
            (Scroll::PageDown, 4, false),
            (Scroll::Up, 3, false),
            (Scroll::End, 4_997, true),
            (Scroll::Down, 4_997, false),
            (Scroll::PageUp, 4_994, false),
            (Scroll::Home, 0, true),
            (Scroll::Up, 0, false),
        ] {
            excerpt.scroll(scroll);
            assert_eq!(load(&mut excerpt, &log), loads, "{scroll:?}");
            assert_eq!(numbers(&excerpt), [expected, expected + 1, expected + 2]);
        }
        for _ in 0..2_000 {
            excerpt.scroll(Scroll::Down);
            load(&mut excerpt, &log);
        }
        assert_eq!(numbers(&excerpt)[0], 2_000);
    }

    #[test]
    fn lines_are_asked_for_once_and_not_after_a_refusal() {
        let mut excerpt = Excerpt::default();
        assert_eq!((excerpt.missing(), excerpt.missing()), (Some(0), None));
        excerpt.refuse("too large".into());
        assert_eq!((excerpt.missing(), excerpt.refresh()), (None, None));
        excerpt.find("x".into());
        assert_eq!(excerpt.missing(), Some(0));
    }

    #[test]
    fn a_step_to_the_side_has_limits() {
        let mut excerpt = Excerpt::default();
        excerpt.scroll(Scroll::Left);
        assert_eq!(excerpt.left, 0);
        (0..1_000).for_each(|_| excerpt.scroll(Scroll::Right));
        assert_eq!(excerpt.left, 2_000);
    }
}
