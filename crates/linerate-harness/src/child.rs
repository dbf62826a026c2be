//! Child processes.

use std::{
    io::{self, BufRead, BufReader},
    net::{SocketAddr, TcpStream},
    process::{Child, ChildStderr, Command, ExitStatus},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::process::Process;

/// How often a process is observed while something is expected of it.
const STEP: Duration = Duration::from_millis(10);

/// A child process. It is killed when this value is dropped.
#[derive(Debug)]
pub struct ChildProcess(Child);

/// The reason why a process does not listen.
#[derive(Debug)]
pub enum ListenError {
    /// It has exited.
    Exited(ExitStatus),
    /// It is running, but accepted no connection in time.
    TimedOut,
}

impl ChildProcess {
    /// Starts a process.
    ///
    /// # Errors
    /// Returns an error if the program cannot be run.
    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        command.spawn().map(Self)
    }

    /// Returns the id of the process.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Returns the process, to read what it uses.
    pub fn process(&self) -> Process {
        Process::new(self.id())
    }

    /// Takes the standard error of the process, if it is a pipe that was not taken before.
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.0.stderr.take()
    }

    /// Waits for the first line that the process writes to its standard output, which must be a
    /// pipe. Later output is lost. Returns an empty string if the process has closed its output.
    ///
    /// # Errors
    /// Returns an error if the output is not a pipe, was read before, or is not UTF-8.
    pub fn first_line(&mut self) -> io::Result<String> {
        let output = self.0.stdout.take();
        let output = output.ok_or_else(|| io::Error::other("standard output is not a pipe"))?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        line.truncate(line.trim_end().len());
        Ok(line)
    }

    /// Waits until the process accepts connections on `address`.
    ///
    /// # Errors
    /// Returns an error if it exits first, or accepts no connection within `time_max`.
    pub fn wait_until_listening(
        &mut self,
        address: SocketAddr,
        time_max: Duration,
    ) -> Result<(), ListenError> {
        let started = Instant::now();
        while TcpStream::connect(address).is_err() {
            if let Some(status) = self.exit_status() {
                return Err(ListenError::Exited(status));
            }
            if started.elapsed() > time_max {
                return Err(ListenError::TimedOut);
            }
            thread::sleep(STEP);
        }
        Ok(())
    }

    /// Returns the status of the process if it has exited.
    pub fn exit_status(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().ok().flatten()
    }

    /// Waits until the process exits, for at most `time_max`. Returns whether it has exited.
    pub fn wait(&mut self, time_max: Duration) -> bool {
        let started = Instant::now();
        while self.exit_status().is_none() {
            if started.elapsed() > time_max {
                return false;
            }
            thread::sleep(STEP);
        }
        true
    }

    /// Sends a signal to the process.
    ///
    /// # Errors
    /// Returns an error if the process has exited and was waited for.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        let pid = Pid::from_raw(self.id() as i32).ok_or(io::ErrorKind::NotFound)?;
        Ok(kill_process(pid, signal)?)
    }

    /// Kills the process, if it still runs, and waits until it has ended.
    pub fn kill(&mut self) {
        // Both fail only if the process has been waited for.
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, process::Stdio};

    use super::*;

    fn shell(script: &str) -> ChildProcess {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdout(Stdio::piped());
        ChildProcess::spawn(&mut command).unwrap()
    }

    #[test]
    fn the_first_line_is_read_and_the_end_is_noticed() {
        let mut child = shell("echo ready; exec sleep 60");
        assert_eq!(child.first_line().unwrap(), "ready");
        assert!(child.first_line().is_err());
        assert!(!child.wait(Duration::ZERO));
        child.signal(Signal::TERM).unwrap();
        assert!(child.wait(Duration::from_secs(10)));
    }

    #[test]
    fn a_process_that_does_not_listen_is_told_from_one_that_has_exited() {
        // No client gets these addresses as its own, and nothing listens on the second. The
        // listener is never closed: a process that another test starts may keep it for a moment.
        let listener = TcpListener::bind("127.0.0.7:0").unwrap();
        let address = listener.local_addr().unwrap();
        let silent = SocketAddr::from(([127, 0, 0, 8], address.port()));
        let mut child = shell("exec sleep 60");
        child.wait_until_listening(address, STEP).unwrap();
        let failed = child.wait_until_listening(silent, STEP);
        assert!(matches!(failed, Err(ListenError::TimedOut)));
        child.kill();
        let failed = child.wait_until_listening(silent, STEP);
        assert!(matches!(failed, Err(ListenError::Exited(_))));
    }
}
