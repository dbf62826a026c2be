//! A view and its engine without threads and without a terminal, for tests.

use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use linerate_logview::aggregate::Limits;
use ratatui::{
    Terminal,
    backend::TestBackend,
    buffer::Buffer,
    crossterm::event::{KeyCode, KeyEvent, KeyModifiers},
};

use super::super::counter::Counter;
use super::answers::Answers;
use super::draw::draw;
use super::keys;
use super::message::{Event, Phase, Progress, Update};
use super::selection::Selection;
use super::state::State;
use super::theme::Theme;

/// A view of a log.
pub(super) struct Stage {
    pub(super) state: State,
    pub(super) log: Counter,
    answers: Answers,
    events: Receiver<Event>,
    terminal: Terminal<TestBackend>,
}

impl Stage {
    /// Opens a log on a terminal of this size.
    pub(super) fn new(log: &str, (width, height): (u16, u16)) -> Self {
        Self::with_limits(log, (width, height), Limits::default())
    }

    pub(super) fn with_limits(log: &str, size: (u16, u16), mut limits: Limits) -> Self {
        limits.line_bytes_sum_max = 8 << 20;
        limits.top_max = 100;
        let (events, received) = sync_channel(64);
        let mut stage = Self {
            state: State::new("access.log".into(), 100, Selection::default()),
            log: Counter::with_threads(limits, NonZeroUsize::MIN),
            answers: Answers::new(events),
            events: received,
            terminal: Terminal::new(TestBackend::new(size.0, size.1)).unwrap(),
        };
        stage.grow(log);
        stage.state.update(Update::Progress(Progress {
            bytes: log.len() as u64,
            requests: stage.log.settled().requests(),
            phase: Phase::Complete,
            ..Progress::default()
        }));
        stage
    }

    /// Appends lines to the log.
    pub(super) fn grow(&mut self, lines: &str) {
        self.log.handle_input(lines.as_bytes());
        self.answers.note_growth();
        self.settle();
    }

    /// Presses keys one after the other, each after the answer to the one before it.
    pub(super) fn press(&mut self, keys: impl IntoIterator<Item = KeyCode>) {
        for code in keys {
            self.press_at_once([code]);
            self.settle();
        }
    }

    /// Presses keys without waiting for answers.
    pub(super) fn press_at_once(&mut self, keys: impl IntoIterator<Item = KeyCode>) {
        for code in keys {
            let key = KeyEvent::new(code, KeyModifiers::NONE);
            if let Some(action) = keys::action(self.state.mode(), key) {
                self.state.act(action);
            }
        }
    }

    /// Types a text and presses Enter.
    pub(super) fn submit(&mut self, text: &str) {
        self.press(text.chars().map(KeyCode::Char).chain([KeyCode::Enter]));
    }

    /// Draws, and answers all questions.
    pub(super) fn settle(&mut self) {
        loop {
            self.draw(true);
            for question in self.state.filtering.take_questions() {
                self.answers.ask(&mut self.log, question).unwrap();
            }
            self.answers.work(&mut self.log).unwrap();
            let mut is_quiet = self.answers.idle_time() == Duration::MAX;
            for event in self.events.try_iter() {
                is_quiet = false;
                if let Event::Update(update) = event {
                    self.state.update(update);
                }
            }
            if is_quiet {
                return;
            }
        }
    }

    /// Draws; returns the rows of the screen.
    pub(super) fn draw(&mut self, has_colors: bool) -> Vec<String> {
        let theme = Theme { has_colors };
        let state = &mut self.state;
        let drawn = self.terminal.draw(|frame| draw(frame, state, theme));
        let buffer = drawn.unwrap().buffer.clone();
        let row = |y| {
            let cells = (0..buffer.area.width).map(|x| buffer[(x, y)].symbol());
            cells.collect::<String>().trim_end().to_owned()
        };
        (0..buffer.area.height).map(row).collect()
    }

    /// Returns what was drawn last.
    pub(super) fn buffer(&self) -> &Buffer {
        self.terminal.backend().buffer()
    }

    /// Draws on a terminal of another size.
    pub(super) fn resize(&mut self, width: u16, height: u16) -> Vec<String> {
        self.terminal.backend_mut().resize(width, height);
        self.draw(true)
    }

    /// Returns the number of requests in the figures that are shown.
    pub(super) fn requests(&self) -> u64 {
        self.state.figures.as_ref().unwrap().requests
    }

    pub(super) fn screen(&mut self) -> String {
        self.draw(true).join("\n")
    }
}

/// Returns a log of twenty minutes. Of its 1,200 requests, each third has the status 404, and each
/// tenth of the others 500.
pub(super) fn twenty_minutes() -> String {
    let line = |n: usize| {
        format!(
            "192.0.2.{} - - [22/Jan/2021:01:{:02}:{:02} +0000] \"GET /{} HTTP/1.1\" {} {} \"{}\" \"{}\"\n",
            n % 5,
            n / 60,
            n % 60,
            [
                "",
                "index.html",
                "api/users",
                "api/orders",
                "\u{202e}\x1b[2J"
            ][n % 7 % 5],
            match n {
                _ if n.is_multiple_of(3) => 404,
                _ if n % 10 == 1 => 500,
                _ => 200,
            },
            n * 7 % 10_000,
            ["-", "https://example.org/"][n % 2],
            [
                "Mozilla/5.0 (X11; Linux x86_64) Firefox/84.0",
                "curl/7.74.0"
            ][n % 4 / 3],
        )
    };
    (0..1_200).map(line).collect()
}
