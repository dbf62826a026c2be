//! Processes that this program starts of itself, and talks to in lines.

use std::{
    env,
    error::Error,
    io::{BufRead, BufReader, Write},
    process::{self, ChildStdin, ChildStdout, Command, Stdio},
};

/// A process that ends when nobody talks to it any more.
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
        let input = process.stdin.take().ok_or("a child without input")?;
        let output = process.stdout.take().ok_or("a child without output")?;
        Ok(Self {
            process,
            input,
            output: BufReader::new(output),
        })
    }

    pub(crate) fn tell(&mut self, line: &str) -> Result<(), Box<dyn Error>> {
        Ok(writeln!(self.input, "{line}")?)
    }

    /// Waits for a line.
    pub(crate) fn answer(&mut self) -> Result<String, Box<dyn Error>> {
        let mut line = String::new();
        match self.output.read_line(&mut line)? {
            0 => Err("a child has ended early".into()),
            _ => Ok(line.trim_end().to_owned()),
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Lets the process end, and waits for that.
    pub(crate) fn end(self) -> Result<(), Box<dyn Error>> {
        let Self {
            mut process, input, ..
        } = self;
        drop(input);
        match process.wait()? {
            status if status.success() => Ok(()),
            status => Err(format!("a child ended with {status}").into()),
        }
    }
}
