//! Child processes of this program, controlled by lines of text.

use std::{
    env,
    error::Error,
    io::{BufRead, BufReader, Write},
    process::{self, ChildStdin, ChildStdout, Command, Stdio},
};

/// A child process, which ends when its standard input is closed.
pub(crate) struct Child {
    process: process::Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Child {
    pub(crate) fn start(arguments: &[&str]) -> Result<Self, Box<dyn Error>> {
        let mut process = Command::new(env::current_exe()?)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = process
            .stdin
            .take()
            .ok_or("child process has no standard input")?;
        let output = process
            .stdout
            .take()
            .ok_or("child process has no standard output")?;
        Ok(Self {
            process,
            input,
            output: BufReader::new(output),
        })
    }

    pub(crate) fn tell(&mut self, line: &str) -> Result<(), Box<dyn Error>> {
        Ok(writeln!(self.input, "{line}")?)
    }

    /// Waits for a line of output.
    pub(crate) fn answer(&mut self) -> Result<String, Box<dyn Error>> {
        let mut line = String::new();
        match self.output.read_line(&mut line)? {
            0 => Err("child process ended early".into()),
            _ => Ok(line.trim_end().to_owned()),
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Closes the input of the process and waits until the process ends.
    pub(crate) fn end(self) -> Result<(), Box<dyn Error>> {
        let Self {
            mut process, input, ..
        } = self;
        drop(input);
        match process.wait()? {
            status if status.success() => Ok(()),
            status => Err(format!("child process ended with {status}").into()),
        }
    }
}
