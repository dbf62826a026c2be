//! `linerate serve` as a process of its own.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use tempfile::TempDir;

use crate::{cores, live::Target, trust, usage::Usage};

/// How long the server may take to end.
const END_MAX: Duration = Duration::from_secs(10);

const LISTEN: &[&str] = &["--listen", "127.0.0.1:0"];

/// A server; killed when dropped.
pub(super) struct Serve {
    process: Child,
    pub(super) address: SocketAddr,
    is_tls: bool,
    /// Where its log is, and its certificate.
    pub(super) directory: TempDir,
}

impl Serve {
    /// Starts one that has no keys and so serves everybody on this machine.
    pub(super) fn start(linerate: &Path, flags: &[&str]) -> Result<Self> {
        Self::start_in(
            tempfile::tempdir()?,
            linerate,
            true,
            &[LISTEN, flags].concat(),
        )
    }

    /// Starts one whose threads share processors as they usually do: what takes long on one of them does not keep the others
    /// from running.
    pub(super) fn start_sharing(linerate: &Path, flags: &[&str]) -> Result<Self> {
        Self::start_in(
            tempfile::tempdir()?,
            linerate,
            false,
            &[LISTEN, flags].concat(),
        )
    }

    /// Starts one of several with a configuration, which has its address.
    pub(super) fn start_node(linerate: &Path, configuration: &str) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let file = directory.path().join("linerate.toml");
        fs::write(&file, configuration)?;
        let file = file.display().to_string();
        Self::start_in(directory, linerate, false, &["--config", &file])
    }

    /// Starts one that speaks TLS.
    pub(super) fn start_tls(linerate: &Path) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        write_certificate(directory.path())?;
        let file = |name: &str| directory.path().join(name).display().to_string();
        let set = [
            format!("server.tls.certificate={}", file("certificate.pem")),
            format!("server.tls.key={}", file("key.pem")),
        ];
        let flags = [LISTEN, &["--set", &set[0], "--set", &set[1]]].concat();
        let mut serve = Self::start_in(directory, linerate, true, &flags)?;
        serve.is_tls = true;
        Ok(serve)
    }

    fn start_in(
        directory: TempDir,
        linerate: &Path,
        is_alone: bool,
        flags: &[&str],
    ) -> Result<Self> {
        let mut process = cores::before_attackers(linerate, is_alone)
            .arg("serve")
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(directory.path().join("log"))?)
            .spawn()?;
        let output = process.stdout.take().context("a server without output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let Some((_, address)) = line.trim_end().trim_end_matches('/').split_once("://") else {
            let log = fs::read_to_string(directory.path().join("log"))?;
            bail!("the server does not start: {log}");
        };
        Ok(Self {
            process,
            address: address.parse()?,
            is_tls: false,
            directory,
        })
    }

    /// Returns where live clients go.
    pub(super) fn target(&self) -> Target {
        Target {
            address: self.address,
            path: "/echo",
            tls: self.is_tls.then(trust::anybody),
        }
    }

    pub(super) fn usage(&self) -> Usage {
        Usage::of(self.process.id())
    }

    pub(super) fn signal(&self, signal: Signal) -> Result<()> {
        Ok(kill_process(self.pid()?, signal)?)
    }

    /// Allows the process so many files from now on.
    pub(super) fn limit_files(&self, files: u64) -> Result<()> {
        let limit = Rlimit {
            current: Some(files),
            maximum: Some(files),
        };
        prlimit(Some(self.pid()?), Resource::Nofile, limit)?;
        Ok(())
    }

    /// Ends the server at once.
    ///
    /// # Errors
    /// It has ended already, or does not end.
    pub(super) fn end(self) -> Result<()> {
        self.signal_to_end()?;
        thread::sleep(Duration::from_millis(100));
        // It may be gone already; the second signal cuts everybody off.
        _ = self.signal(Signal::TERM);
        self.wait()
    }

    /// Tells the server to send its clients away and end, and waits for that.
    ///
    /// # Errors
    /// It has ended already, or does not end.
    pub(super) fn drain(self) -> Result<()> {
        self.signal_to_end()?;
        self.wait()
    }

    fn signal_to_end(&self) -> Result<()> {
        let is_there = fs::exists(format!("/proc/{}/fd/0", self.process.id()))?;
        ensure!(is_there, "the server has ended early");
        self.signal(Signal::TERM)
    }

    fn wait(mut self) -> Result<()> {
        let deadline = Instant::now() + END_MAX;
        while self.process.try_wait()?.is_none() {
            if Instant::now() >= deadline {
                bail!("the server does not end in time");
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn pid(&self) -> Result<Pid> {
        Pid::from_raw(self.process.id() as i32).context("a process without a number")
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        // It may be gone already.
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// Writes another certificate and its key.
pub(super) fn write_certificate(directory: &Path) -> Result<()> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    for (name, text) in [
        ("key.pem", made.signing_key.serialize_pem()),
        ("certificate.pem", made.cert.pem()),
    ] {
        // The server may read at any time, and is to find whole files.
        let new = directory.join("new.pem");
        fs::write(&new, text)?;
        fs::rename(new, directory.join(name))?;
    }
    Ok(())
}
