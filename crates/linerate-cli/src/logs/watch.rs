//! `--watch`: redraws the statistics while their log grows.

use std::io::{self, IsTerminal, Write};
use std::thread;
use std::time::{Duration, Instant};

use super::View;
use super::counter::Counter;
use super::follow::Follower;
use anyhow::Context;

/// How often the files are checked for new data.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Minimum time between two drawings.
const DRAW_INTERVAL: Duration = Duration::from_secs(1);

/// Keeps reading and drawing until all sources have ended. Files never end, only standard input
/// does.
///
/// On a terminal, each drawing replaces the previous one; otherwise they are written one after the
/// other.
///
/// # Errors
/// Returns an error if a source cannot be read, or if writing fails for a reason other than a
/// closed pipe.
pub(super) fn watch(mut follower: Follower, log: &mut Counter, view: &View) -> anyhow::Result<()> {
    let mut drawn: Option<Instant> = None;
    let mut is_changed = true;
    loop {
        let has_grown = follower.poll(log)?;
        is_changed |= has_grown;
        let has_ended = follower.has_ended();
        let is_due = drawn.is_none_or(|drawn| drawn.elapsed() >= DRAW_INTERVAL);
        if is_changed && (is_due || has_ended) {
            if !draw(&view.render(log.settled())?)? {
                return Ok(());
            }
            drawn = Some(Instant::now());
            is_changed = false;
        }
        if has_ended {
            return Ok(());
        }
        if !has_grown {
            thread::sleep(POLL_INTERVAL);
        }
    }
}

/// Writes the statistics; returns false if the reader has closed the pipe.
fn draw(text: &str) -> anyhow::Result<bool> {
    let mut stdout = io::stdout().lock();
    let screen = match terminal_size::terminal_size() {
        Some((_, height)) if stdout.is_terminal() => screen(text, height.0.into()),
        _ => text.to_owned(),
    };
    match stdout
        .write_all(screen.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        result => result.map(|()| true).context("cannot write the statistics"),
    }
}

/// Returns the output that overwrites a screen of `rows` rows with the first lines of `text`.
///
/// To avoid flicker, no line is cleared before it is overwritten.
fn screen(text: &str, rows: usize) -> String {
    const HOME: &str = "\x1b[H";
    const CLEAR_TO_END_OF_LINE: &str = "\x1b[K\n";
    const CLEAR_BELOW: &str = "\x1b[J";
    let lines: Vec<_> = text.lines().take(rows.saturating_sub(1)).collect();
    let text = lines.join(CLEAR_TO_END_OF_LINE);
    format!("{HOME}{text}{CLEAR_TO_END_OF_LINE}{CLEAR_BELOW}")
}

#[cfg(test)]
mod tests {
    use super::screen;

    #[test]
    fn a_screen_is_overwritten_and_never_scrolls() {
        assert_eq!(
            screen("a\nb\nc\n", 9),
            "\x1b[Ha\x1b[K\nb\x1b[K\nc\x1b[K\n\x1b[J"
        );
        assert_eq!(screen("a\nb\nc\n", 3), "\x1b[Ha\x1b[K\nb\x1b[K\n\x1b[J");
    }
}
