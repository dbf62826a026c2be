//! The prompt: a line editor on the terminal, with the messages that arrive printed above it.
//!
//! The editor runs on a thread, because it waits for keys. Another thread passes it the text to
//! print, because that may have to wait for the editor, for example while the user searches the
//! history.

use std::{path::PathBuf, thread, time::Duration};

use linerate::{CloseCode, Message};
use rustyline::{
    CompletionType, Config, Context, Editor, ExternalPrinter, Helper, completion::Completer,
    error::ReadlineError, highlight::Highlighter, hint::Hinter, history::FileHistory,
    validate::Validator,
};
use tokio::{
    sync::{
        mpsc,
        oneshot::{self, error::TryRecvError},
    },
    time::timeout,
};

use super::{
    action::Action,
    command::{self, Command},
    history,
    input::{self, Format},
    view::View,
};
use crate::{
    platform::{TerminalMode, end_standard_input},
    terminal::{print, with_causes},
};

/// How many texts may wait to be printed.
const TEXTS_AHEAD: usize = 16;

/// How long to wait for the editor to end. It does not notice while it searches the history.
const END_TIMEOUT: Duration = Duration::from_millis(500);

/// A text that changes nothing on the screen: one row up, and down again.
const NOTHING: &str = "\x1b[A\n";

/// Ends the mode in which terminals mark pasted text.
const END_PASTE_MARKS: &str = "\x1b[?2004l";

/// What the prompt reads and shows.
#[derive(Debug)]
pub(super) struct Settings {
    /// How to interpret lines that are not commands.
    pub(super) format: Format,
    /// Files to send before the first line.
    pub(super) files: Vec<PathBuf>,
    /// The file of the history, or `None` to store no lines.
    pub(super) history: Option<PathBuf>,
    pub(super) view: View,
}

/// A prompt that was started.
#[derive(Debug)]
pub(super) struct Prompt {
    /// What the user asks for. It is not limited: if the editor waited here instead of printing,
    /// the conversation would in turn wait for it.
    pub(super) actions: mpsc::UnboundedReceiver<anyhow::Result<Action>>,
    /// Succeeds when the user presses ctrl-c.
    pub(super) interrupted: oneshot::Receiver<()>,
    pub(super) screen: Screen,
}

/// The part of the terminal above the prompt.
#[derive(Debug)]
pub(super) struct Screen {
    texts: mpsc::Sender<String>,
    editing: Editing,
}

/// Restores the terminal on drop. The editor does so only if the user ends it.
#[derive(Debug)]
struct Editing {
    /// Fails once the editor has ended.
    ended: oneshot::Receiver<()>,
    mode: TerminalMode,
}

impl Prompt {
    /// Starts the prompt; returns `None` if the terminal cannot move its cursor.
    pub(super) fn start(settings: Settings) -> Option<Self> {
        let mode = TerminalMode::save();
        let config = Config::builder()
            .max_history_size(history::LINES_MAX)
            .ok()?
            .history_ignore_dups(true)
            .ok()?
            .history_ignore_space(true)
            .completion_type(CompletionType::List)
            .build();
        let mut editor = Editor::with_config(config).ok()?;
        editor.set_helper(Some(Commands));
        let printer = editor.create_external_printer().ok()?;
        let (texts, queued) = mpsc::channel(TEXTS_AHEAD);
        thread::spawn(move || print_all(printer, queued));
        let (sender, actions) = mpsc::unbounded_channel();
        let (interrupt, interrupted) = oneshot::channel();
        let (end, ended) = oneshot::channel::<()>();
        thread::spawn(move || {
            let _end = end;
            match (Lines { editor, settings }).read_all(&sender) {
                Ok(()) => {}
                Err(ReadlineError::Interrupted) => _ = interrupt.send(()),
                Err(error) => _ = sender.send(Err(error.into())),
            }
        });
        Some(Self {
            actions,
            interrupted,
            screen: Screen {
                texts,
                editing: Editing { ended, mode },
            },
        })
    }
}

impl Screen {
    /// Prints text above the prompt; waits while too much text waits to be printed.
    pub(super) async fn print(&self, text: String) {
        // The printer ends only after the sender is dropped.
        _ = self.texts.send(text).await;
    }

    /// Prints the remaining texts and ends the prompt, even if the user is typing.
    pub(super) async fn end(self) {
        let Self { texts, mut editing } = self;
        drop(texts);
        _ = timeout(END_TIMEOUT, &mut editing.ended).await;
    }
}

impl Drop for Editing {
    fn drop(&mut self) {
        let has_ended = matches!(self.ended.try_recv(), Err(TryRecvError::Closed));
        self.mode.restore();
        let line_end = if has_ended { "" } else { "\r\n" };
        // If the terminal is gone, there is nothing to restore.
        _ = print(&format!("{END_PASTE_MARKS}{line_end}"));
    }
}

/// Prints texts while the editor waits for keys, and directly while it does not. Ends the editor
/// after the last one.
///
/// The editor's channel has room for one text. So once [`NOTHING`] fits in, the editor has taken
/// the text before it: texts keep their order, and none is lost when the editor ends.
fn print_all(mut printer: impl ExternalPrinter, mut texts: mpsc::Receiver<String>) {
    while let Some(mut text) = texts.blocking_recv() {
        text.push('\n');
        let passed = printer.print(text.clone());
        if passed.and_then(|()| printer.print(NOTHING.into())).is_err() {
            // The editor has ended. If the terminal is gone, so is the user.
            _ = print(&text);
        }
    }
    // The editor notices the end of its input when it looks for keys after printing.
    if end_standard_input().is_ok() {
        _ = printer.print(NOTHING.into());
    }
}

/// The lines that the user types.
struct Lines {
    editor: Editor<Commands, FileHistory>,
    settings: Settings,
}

impl Lines {
    /// Reads the lines of earlier conversations. If that fails, no lines are stored.
    fn load_history(&mut self) {
        let Some(path) = &self.settings.history else {
            return;
        };
        let created = history::create(path).map_err(ReadlineError::from);
        if let Err(error) = created.and_then(|()| self.editor.load_history(path)) {
            let path = path.display();
            self.complain(&format!("cannot read the history in {path}: {error}"));
            self.settings.history = None;
        }
    }

    /// Passes on what the user asks for, until that is to close the connection.
    fn read_all(
        &mut self,
        actions: &mpsc::UnboundedSender<anyhow::Result<Action>>,
    ) -> rustyline::Result<()> {
        self.load_history();
        let view = self.settings.view;
        println!("{}", view.note("/help lists commands; ctrl-c closes"));
        for file in std::mem::take(&mut self.settings.files) {
            let action = input::content(&file).map(|content| Action::SendFile {
                name: file.display().to_string(),
                message: Message::from(content),
            });
            let is_last = action.is_err();
            if actions.send(action).is_err() || is_last {
                return Ok(());
            }
        }
        loop {
            let action = self.next_action()?;
            let is_last = matches!(action, Action::Close { .. });
            if actions.send(Ok(action)).is_err() || is_last {
                return Ok(());
            }
        }
    }

    /// Reads lines until one of them asks for something to happen on the connection.
    fn next_action(&mut self) -> rustyline::Result<Action> {
        loop {
            let line = match self.editor.readline("> ") {
                Ok(line) => line,
                Err(ReadlineError::Eof) => {
                    return Ok(Action::Close {
                        code: CloseCode::NORMAL,
                        reason: String::new(),
                    });
                }
                Err(error) => return Err(error),
            };
            self.remember(&line);
            match command::parse(&line, self.settings.format) {
                Ok(Command::Do(action)) => return Ok(action),
                Ok(Command::Help) => println!("{}", command::HELP),
                Ok(Command::Nothing) => {}
                Err(error) => self.complain(&with_causes(&error)),
            }
        }
    }

    /// Adds a line to the history, unless it is long or begins with a space.
    fn remember(&mut self, line: &str) {
        if line.len() > history::LINE_BYTES_MAX {
            return;
        }
        let added = self.editor.add_history_entry(line);
        let Some(path) = &self.settings.history else {
            return;
        };
        if let Err(error) = added.and_then(|_| self.editor.append_history(path)) {
            let path = path.display();
            self.complain(&format!("cannot store the history in {path}: {error}"));
            self.settings.history = None;
        }
    }

    fn complain(&self, text: &str) {
        println!("{}", self.settings.view.failure(text));
    }
}

/// Completes the names of commands.
struct Commands;

impl Completer for Commands {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let typed = &line[..pos];
        let names = command::NAMES.iter().filter(|name| {
            let is_begun = typed.starts_with('/') && name.starts_with(typed);
            is_begun && typed.len() < name.len()
        });
        Ok((0, names.map(ToString::to_string).collect()))
    }
}

impl Helper for Commands {}

impl Highlighter for Commands {}

impl Hinter for Commands {
    type Hint = String;
}

impl Validator for Commands {}
