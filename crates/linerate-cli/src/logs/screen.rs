//! The interactive view on a terminal: tables, a chart, filters and lines.
//!
//! One thread draws and handles keys; it never waits for anything else. Another thread reads the
//! log and answers questions ([`engine`]), a third one waits for keys, and a fourth for signals.

mod action;
mod answers;
mod columns;
mod draw;
mod engine;
mod excerpt;
mod field;
mod filtering;
mod guard;
mod keys;
mod message;
mod panels;
mod selection;
#[cfg(test)]
mod stage;
mod state;
mod tables;
mod theme;

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

use anyhow::{Context, bail};
use linerate_logview::{aggregate::Limits, format::Format};
use ratatui::crossterm::event::{self, Event as TerminalEvent};

use super::filter::Selected;
use super::source::open;
use super::{check_damage, files};
use crate::platform::{HangUps, StopSignals};
use crate::terminal::has_colors;
use action::{Action, Mode};
use engine::Source;
use field::Edit;
use guard::Guard;
use message::{Event, Question};
use selection::Selection;
use state::State;
use theme::Theme;

/// The number of rows in each table, unless `--top` asks for more.
pub(super) const ROWS_MAX: usize = 100;
/// How many events may wait to be handled. Threads that have more wait.
const EVENTS_MAX: usize = 64;

/// What is shown.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) files: Vec<PathBuf>,
    pub(super) format: Option<Format>,
    /// True if files are read as they grow.
    pub(super) follows: bool,
    pub(super) has_countries: bool,
    pub(super) limits: Limits,
    /// The number of rows in each table.
    pub(super) rows_max: usize,
    /// What is selected at first.
    pub(super) selected: Selected,
}

/// Shows the view until the user leaves it.
///
/// # Errors
/// Returns an error if the terminal cannot be used, or if the log could not be read to its end. The
/// terminal is restored.
pub(super) fn run(settings: Settings) -> anyhow::Result<()> {
    for file in settings.files.iter().filter(|file| !files::is_stdin(file)) {
        // A wrong name is reported at once.
        open(file)?;
    }
    let selection = match &settings.selected {
        Selected::Some(query) => Selection::of(query),
        _ => Selection::default(),
    };
    let mut state = State::new(name(&settings.files), settings.rows_max, selection);
    state.has_countries = settings.has_countries;
    let theme = Theme {
        has_colors: has_colors(&io::stdout()),
    };
    let source = Source {
        files: settings.files,
        format: settings.format,
        follows: settings.follows,
        limits: settings.limits,
    };
    let (events, received) = sync_channel(EVENTS_MAX);
    let questions = start(source, &events)?;
    {
        let mut guard = Guard::enter().context("cannot use the terminal")?;
        show(&mut guard, &mut state, theme, &received, &questions)?;
    }
    if let Some(failure) = state.failure {
        return Err(failure);
    }
    check_damage(
        state
            .figures
            .map(|it| it.damaged)
            .unwrap_or_default()
            .as_slice(),
    )
}

/// Returns the name of the log for the title.
fn name(files: &[PathBuf]) -> String {
    match files {
        [] => String::new(),
        [file] => files::name(file),
        [file, others @ ..] => format!("{} and {} more", files::name(file), others.len()),
    }
}

/// Starts the threads.
fn start(source: Source, events: &SyncSender<Event>) -> anyhow::Result<Sender<Question>> {
    // Not limited, so that the drawing thread never waits. A person asks only a few questions.
    let (questions, asked) = channel();
    let ended = EngineEnded(events.clone());
    let updates = events.clone();
    spawn("log", move || {
        let _ended = ended;
        engine::run(&source, asked, updates);
    })?;
    let stop = events.clone();
    spawn("signals", move || {
        if wait_for_signal().is_ok() {
            _ = stop.send(Event::Stop);
        }
    })?;
    let keys = events.clone();
    spawn("keys", move || {
        loop {
            let event = match event::read() {
                Ok(event) => Event::Terminal(event),
                Err(error) => Event::TerminalFailed(error),
            };
            let is_last = matches!(event, Event::TerminalFailed(_));
            if keys.send(event).is_err() || is_last {
                return;
            }
        }
    })?;
    Ok(questions)
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> anyhow::Result<()> {
    let thread = thread::Builder::new().name(name.to_owned());
    thread.spawn(run).context("cannot start a thread")?;
    Ok(())
}

/// Waits for a signal that asks the process to stop.
fn wait_for_signal() -> io::Result<()> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build()?.block_on(async {
        let (mut stops, mut hang_ups) = (StopSignals::new()?, HangUps::new()?);
        tokio::select! {
            () = stops.recv() => {}
            () = hang_ups.recv() => {}
        }
        Ok(())
    })
}

/// Reports that the engine's thread has ended, even if by a panic.
struct EngineEnded(SyncSender<Event>);

impl Drop for EngineEnded {
    fn drop(&mut self) {
        _ = self.0.send(Event::EngineEnded);
    }
}

/// Draws, and handles events until the view is left.
fn show(
    guard: &mut Guard,
    state: &mut State,
    theme: Theme,
    events: &Receiver<Event>,
    questions: &Sender<Question>,
) -> anyhow::Result<()> {
    loop {
        if guard.is_restored() {
            bail!("a thread has failed");
        }
        let drawn = guard.terminal.draw(|frame| draw::draw(frame, state, theme));
        drawn.context("cannot draw on the terminal")?;
        for question in state.filtering.take_questions() {
            // Fails only if the engine has ended, which it reports.
            _ = questions.send(question);
        }
        let first = events.recv().context("all threads have ended")?;
        // All events that wait are handled before the next drawing.
        for event in std::iter::once(first).chain(events.try_iter().take(EVENTS_MAX)) {
            handle(state, event)?;
            if state.has_ended || state.is_hopeless() {
                return Ok(());
            }
        }
    }
}

fn handle(state: &mut State, event: Event) -> anyhow::Result<()> {
    match event {
        Event::EngineEnded => bail!("the thread that reads the log has failed"),
        Event::Stop => state.has_ended = true,
        Event::Terminal(TerminalEvent::Key(key)) => {
            if let Some(action) = keys::action(state.mode(), key) {
                state.act(action);
            }
        }
        Event::Terminal(TerminalEvent::Paste(text)) if state.mode() == Mode::Prompt => {
            state.act(Action::Edit(Edit::Insert(text)));
        }
        // A new size takes effect with the next drawing.
        Event::Terminal(_) => {}
        Event::TerminalFailed(error) => {
            return Err(error).context("cannot read from the terminal");
        }
        Event::Update(update) => state.update(update),
    }
    Ok(())
}
