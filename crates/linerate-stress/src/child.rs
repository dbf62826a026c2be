//! Processes that this program starts from its own binary, and talks to in lines.

use std::{
    env,
    io::{self, BufRead, BufReader, Write},
    process::{self, ChildStdin, Command, Stdio},
    sync::mpsc::{self, Receiver, TryRecvError},
    thread,
};

use anyhow::{Context, Result, bail, ensure};
use serde::de::DeserializeOwned;

/// A process that ends when its standard input is closed.
pub(crate) struct Child {
    process: process::Child,
    input: ChildStdin,
    output: Receiver<String>,
}

impl Child {
    pub(crate) fn start(arguments: &[&str]) -> Result<Self> {
        let mut process = Command::new(env::current_exe()?)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = process
            .stdin
            .take()
            .context("child process has no standard input")?;
        let output = process
            .stdout
            .take()
            .context("child process has no standard output")?;
        Ok(Self {
            process,
            input,
            output: lines(BufReader::new(output)),
        })
    }

    fn tell(&mut self, line: &str) -> Result<()> {
        Ok(writeln!(self.input, "{line}")?)
    }

    /// Waits for a line of output.
    pub(crate) fn answer(&mut self) -> Result<String> {
        self.output.recv().context("child process exited early")
    }

    /// Sends a line, and waits for the answer.
    pub(crate) fn ask(&mut self, line: &str) -> Result<String> {
        self.tell(line)?;
        self.answer()
    }

    /// Sends a line, and parses the answer.
    pub(crate) fn ask_for<T: DeserializeOwned>(&mut self, line: &str) -> Result<T> {
        Ok(serde_json::from_str(&self.ask(line)?)?)
    }

    /// Sends a line, and calls `work` repeatedly until the answer arrives.
    pub(crate) fn ask_meanwhile(
        &mut self,
        line: &str,
        mut work: impl FnMut() -> Result<()>,
    ) -> Result<String> {
        self.tell(line)?;
        loop {
            match self.output.try_recv() {
                Ok(answer) => return Ok(answer),
                Err(TryRecvError::Empty) => work()?,
                Err(TryRecvError::Disconnected) => bail!("child process exited early"),
            }
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Closes the input of the process, and waits until it exits.
    pub(crate) fn end(self) -> Result<()> {
        let Self {
            mut process, input, ..
        } = self;
        drop(input);
        let status = process.wait()?;
        ensure!(status.success(), "child process failed: {status}");
        Ok(())
    }
}

/// Returns the lines that the parent process sends, until it closes the input.
pub(crate) fn orders() -> Receiver<String> {
    lines(BufReader::new(io::stdin()))
}

fn lines(input: impl BufRead + Send + 'static) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in input.lines().map_while(Result::ok) {
            _ = sender.send(line);
        }
    });
    lines
}
