//! A program on a pseudo-terminal, and what its screen shows.

use std::{
    fs::File,
    io::{Read, Write},
    num::NonZero,
    os::fd::OwnedFd,
    process::{Child, Command, ExitStatus},
    sync::{Arc, Condvar, Mutex},
    thread,
};

use nix::{
    pty::{Winsize, openpty},
    sys::{
        signal::{Signal, kill},
        termios::{Termios, tcgetattr},
    },
    unistd::Pid,
};

use crate::support::PATIENCE;

const ROWS: NonZero<u16> = NonZero::new(24).unwrap();
const COLUMNS: NonZero<u16> = NonZero::new(80).unwrap();

/// A program that runs on a terminal; killed on drop.
pub(crate) struct Terminal {
    pub(crate) child: Child,
    keys: File,
    /// Kept open, so that the mode can be read after the program has exited.
    device: OwnedFd,
    mode_before: Termios,
    display: Arc<Display>,
}

/// What the program has written.
struct Display {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    parser: vt100::Parser,
    output: Vec<u8>,
}

impl Terminal {
    pub(crate) fn run(command: &mut Command) -> Self {
        let size = Winsize {
            ws_row: ROWS.get(),
            ws_col: COLUMNS.get(),
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let pty = openpty(&size, None).unwrap();
        let device = || pty.slave.try_clone().unwrap();
        let mode_before = tcgetattr(&pty.slave).unwrap();
        command.stdin(device()).stdout(device()).stderr(device());
        let child = command.spawn().unwrap();
        let display = Arc::new(Display {
            state: Mutex::new(State {
                parser: vt100::Parser::new(ROWS, COLUMNS, 0),
                output: Vec::new(),
            }),
            changed: Condvar::new(),
        });
        let keys = File::from(pty.master);
        let mut output = keys.try_clone().unwrap();
        let shown = display.clone();
        thread::spawn(move || {
            let mut bytes = [0; 4_096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                let mut state = shown.state.lock().unwrap();
                state.parser.process(&bytes[..count]);
                state.output.extend_from_slice(&bytes[..count]);
                shown.changed.notify_all();
            }
        });
        Self {
            child,
            keys,
            device: pty.slave,
            mode_before,
            display,
        }
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until the screen, without white space at its end, ends with `expected`.
    pub(crate) fn wait_for_end(&self, expected: &str) {
        self.wait(expected, |state| {
            let rows: Vec<_> = state.parser.screen().rows(0, COLUMNS.get()).collect();
            rows.join("\n").trim_end().ends_with(expected)
        });
    }

    /// Waits until the screen contains `expected`.
    pub(crate) fn wait_for(&self, expected: &str) {
        self.wait(expected, |state| {
            state.parser.screen().contents().contains(expected)
        });
    }

    /// Changes the size, and tells the program.
    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        let mut stty = Command::new("stty");
        stty.args(["rows", &rows.to_string(), "cols", &columns.to_string()]);
        let stty = stty.stdin(self.device.try_clone().unwrap()).status();
        assert!(stty.unwrap().success());
        let [rows, columns] = [rows, columns].map(|it| NonZero::new(it).unwrap());
        let mut state = self.display.state.lock().unwrap();
        state.parser.screen_mut().set_size(rows, columns);
        drop(state);
        self.signal(Signal::SIGWINCH);
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let process = Pid::from_raw(self.child.id().cast_signed());
        kill(process, signal).unwrap();
    }

    /// Waits until the program has written `expected`, with all control sequences.
    pub(crate) fn wait_for_output(&self, expected: &str) {
        self.wait(expected, |state| {
            String::from_utf8_lossy(&state.output).contains(expected)
        });
    }

    fn wait(&self, expected: &str, is_there: impl Fn(&State) -> bool) {
        let state = self.display.state.lock().unwrap();
        let waiting = self
            .display
            .changed
            .wait_timeout_while(state, PATIENCE, |state| !is_there(state));
        let (state, waited) = waiting.unwrap();
        assert!(
            !waited.timed_out(),
            "{expected:?} is not shown:\n{}",
            state.parser.screen().contents()
        );
    }

    /// Returns everything that the program has written.
    pub(crate) fn output(&self) -> String {
        let state = self.display.state.lock().unwrap();
        String::from_utf8(state.output.clone()).unwrap()
    }

    /// Waits until the program exits; asserts that the terminal is as it was before.
    pub(crate) fn exit(&mut self) -> ExitStatus {
        let status = self.child.wait().unwrap();
        let mode = tcgetattr(&self.device).unwrap();
        assert!(mode == self.mode_before, "the mode is restored");
        self.wait("the screen of the shell", |state| {
            let screen = state.parser.screen();
            !screen.bracketed_paste() && !screen.alternate_screen() && !screen.hide_cursor()
        });
        status
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
