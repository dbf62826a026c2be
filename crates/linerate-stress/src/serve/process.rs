//! `linerate serve` as a separate process.

use std::{
    fs::{self, File},
    net::SocketAddr,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Result, bail, ensure};
use linerate_harness::{child::ChildProcess, process::Process};
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};
use tempfile::TempDir;

use crate::{cores, live::Target, trust};

/// How long the server may take to exit.
const END_MAX: Duration = Duration::from_secs(10);

const LISTEN: &[&str] = &["--listen", "127.0.0.1:0"];

/// A server process. It is killed when dropped.
pub(crate) struct ServerProcess {
    child: ChildProcess,
    pub(crate) address: SocketAddr,
    is_tls: bool,
    /// The directory of its log and certificate.
    pub(crate) directory: TempDir,
}

impl ServerProcess {
    /// Starts a server without keys, which therefore serves every client on this machine.
    pub(crate) fn start(linerate: &Path, flags: &[&str]) -> Result<Self> {
        let flags = [LISTEN, flags].concat();
        Self::start_in(
            tempfile::tempdir()?,
            cores::before_attackers(linerate, true),
            &flags,
        )
    }

    /// Starts a server with the usual scheduling, where a busy thread does not keep the others from
    /// running.
    pub(crate) fn start_sharing(linerate: &Path, flags: &[&str]) -> Result<Self> {
        let flags = [LISTEN, flags].concat();
        Self::start_in(
            tempfile::tempdir()?,
            cores::before_attackers(linerate, false),
            &flags,
        )
    }

    /// Starts a node with this configuration, which contains its address.
    pub(crate) fn start_node(linerate: &Path, configuration: &str) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let file = write_configuration(&directory, configuration)?;
        let command = cores::before_attackers(linerate, false);
        Self::start_in(directory, command, &["--config", &file])
    }

    /// Starts a node with this configuration and with the priority of this process. The node is
    /// also told to end if this process is killed.
    pub(crate) fn start_equal_node(linerate: &Path, configuration: &str) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let file = write_configuration(&directory, configuration)?;
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM"]).arg(linerate);
        Self::start_in(directory, command, &["--config", &file])
    }

    /// Starts a server with TLS.
    pub(crate) fn start_tls(linerate: &Path) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        write_certificate(directory.path())?;
        let file = |name: &str| directory.path().join(name).display().to_string();
        let set = [
            format!("server.tls.certificate={}", file("certificate.pem")),
            format!("server.tls.key={}", file("key.pem")),
        ];
        let flags = [LISTEN, &["--set", &set[0], "--set", &set[1]]].concat();
        let mut serve = Self::start_in(directory, cores::before_attackers(linerate, true), &flags)?;
        serve.is_tls = true;
        Ok(serve)
    }

    fn start_in(directory: TempDir, mut command: Command, flags: &[&str]) -> Result<Self> {
        command
            .arg("serve")
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(directory.path().join("log"))?);
        let mut child = ChildProcess::spawn(&mut command)?;
        let line = child.first_line()?;
        let Some((_, address)) = line.trim_end_matches('/').split_once("://") else {
            let log = fs::read_to_string(directory.path().join("log"))?;
            bail!("server failed to start: {log}");
        };
        Ok(Self {
            child,
            address: address.parse()?,
            is_tls: false,
            directory,
        })
    }

    /// Returns the endpoint for live clients.
    pub(crate) fn target(&self) -> Target {
        Target {
            address: self.address,
            path: "/echo",
            tls: self.is_tls.then(trust::anybody),
        }
    }

    /// Returns the process, to read what it uses.
    pub(crate) fn process(&self) -> Process {
        self.child.process()
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        Ok(self.child.signal(signal)?)
    }

    /// Limits the open files of the process to `files`.
    pub(crate) fn limit_files(&self, files: u64) -> Result<()> {
        let limit = Rlimit {
            current: Some(files),
            maximum: Some(files),
        };
        prlimit(
            Pid::from_raw(self.child.id() as i32),
            Resource::Nofile,
            limit,
        )?;
        Ok(())
    }

    /// Stops the server at once.
    ///
    /// # Errors
    /// If the server has already exited, or does not exit in time.
    pub(crate) fn end(mut self) -> Result<()> {
        self.signal_to_end()?;
        thread::sleep(Duration::from_millis(100));
        // The second signal disconnects all clients. It fails if the server has already exited.
        _ = self.signal(Signal::TERM);
        self.wait(END_MAX)
    }

    /// Tells the server to disconnect its clients and exit, and waits for that.
    ///
    /// # Errors
    /// If the server has already exited, or does not exit in time.
    pub(crate) fn drain(self) -> Result<()> {
        self.drain_within(END_MAX)
    }

    /// Tells the server to disconnect its clients and exit, and waits for that for up to
    /// `time_max`.
    ///
    /// # Errors
    /// If the server has already exited, or does not exit in time.
    pub(crate) fn drain_within(mut self, time_max: Duration) -> Result<()> {
        self.signal_to_end()?;
        self.wait(time_max)
    }

    fn signal_to_end(&mut self) -> Result<()> {
        ensure!(self.child.exit_status().is_none(), "server exited early");
        self.signal(Signal::TERM)
    }

    fn wait(mut self, time_max: Duration) -> Result<()> {
        let seconds = time_max.as_secs();
        ensure!(
            self.child.wait(time_max),
            "server did not exit within {seconds} s"
        );
        Ok(())
    }
}

/// Writes a configuration to the directory of a node, and returns the path of the file.
fn write_configuration(directory: &TempDir, configuration: &str) -> Result<String> {
    let file = directory.path().join("linerate.toml");
    fs::write(&file, configuration)?;
    Ok(file.display().to_string())
}

/// Writes a new certificate and its key.
pub(crate) fn write_certificate(directory: &Path) -> Result<()> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    for (name, text) in [
        ("key.pem", made.signing_key.serialize_pem()),
        ("certificate.pem", made.cert.pem()),
    ] {
        // The server may read at any time, and must find complete files.
        let new = directory.join("new.pem");
        fs::write(&new, text)?;
        fs::rename(new, directory.join(name))?;
    }
    Ok(())
}
