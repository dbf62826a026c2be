//! The terminal while the view is shown. It is restored when the view ends, however it ends.

use std::io::{self, Stdout, Write};
use std::panic;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::{
    Terminal,
    backend::CrosstermBackend,
    crossterm::{
        cursor::Show,
        event::{DisableBracketedPaste, EnableBracketedPaste},
        execute,
        terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode},
    },
};

/// True while the terminal is in the mode of the view.
static IS_ENTERED: AtomicBool = AtomicBool::new(false);

/// The terminal in the mode of the view: keys are not echoed, and the screen is another one than
/// that of the shell. Restored on drop, and by a panic of any thread before its message.
#[derive(Debug)]
pub(super) struct Guard {
    pub(super) terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Guard {
    /// Changes the mode.
    ///
    /// # Errors
    /// Returns an error if the terminal cannot do this. The mode is then as before.
    pub(super) fn enter() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let print = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                restore();
                print(info);
            }));
        });
        IS_ENTERED.store(true, Ordering::SeqCst);
        let entered = enter();
        if entered.is_err() {
            restore();
        }
        Ok(Self { terminal: entered? })
    }

    /// Returns whether a panic has restored the terminal, so that it must not be drawn on.
    pub(super) fn is_restored(&self) -> bool {
        !IS_ENTERED.load(Ordering::SeqCst)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        restore();
    }
}

fn enter() -> io::Result<Terminal<CrosstermBackend<Stdout>>> {
    enable_raw_mode()?;
    let mut stdout = io::stdout();
    execute!(stdout, EnterAlternateScreen, EnableBracketedPaste)?;
    Terminal::new(CrosstermBackend::new(stdout))
}

/// Restores the terminal, unless this was done before. Errors are ignored, because they mean that
/// the terminal has gone.
fn restore() {
    if IS_ENTERED.swap(false, Ordering::SeqCst) {
        let mut stdout = io::stdout();
        _ = execute!(stdout, DisableBracketedPaste, LeaveAlternateScreen, Show);
        _ = stdout.flush();
        _ = disable_raw_mode();
    }
}
