//! The servers' processes: started from this same binary, pinned to a core, with their CPU time
//! read.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tokio::net::TcpListener;

use crate::contender::Contender;

/// First argument of a server's process. The contender and the core follow.
pub(crate) const SERVE: &str = "--serve";

/// The numbers of the cores that the servers and the client run on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cores {
    pub(crate) client: usize,
    pub(crate) server: usize,
}

impl Cores {
    /// Chooses the first two cores that the process may use, or one for both if there is only one.
    pub(crate) fn choose() -> anyhow::Result<Self> {
        let allowed = sched_getaffinity(None).context("cannot read the CPU affinity")?;
        let mut cores = (0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core));
        let server = cores.next().context("no core is available")?;
        Ok(Self {
            client: cores.next().unwrap_or(server),
            server,
        })
    }
}

/// Pins this thread, and the threads that it starts later, to a core.
pub(crate) fn pin(core: usize) -> anyhow::Result<()> {
    let mut cores = CpuSet::new();
    cores.set(core);
    sched_setaffinity(None, &cores).with_context(|| format!("cannot pin to core {core}"))
}

/// A contender's server in a separate process, which is killed when this value is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) contender: Contender,
    pub(crate) address: SocketAddr,
    child: Child,
}

impl Server {
    /// Starts a server on a free port of the loopback interface.
    pub(crate) fn start(contender: Contender, core: usize) -> anyhow::Result<Self> {
        let mut child = Command::new(env::current_exe()?)
            .args([SERVE, contender.name(), &core.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start this binary as a server")?;
        let mut line = String::new();
        let stdout = child
            .stdout
            .take()
            .context("the server's standard output is not a pipe")?;
        // From here on, the child is killed even if an error follows.
        let mut server = Self {
            contender,
            address: (Ipv4Addr::LOCALHOST, 0).into(),
            child,
        };
        BufReader::new(stdout).read_line(&mut line)?;
        server.address = line
            .trim_end()
            .parse()
            .with_context(|| format!("{} did not print its address", contender.name()))?;
        Ok(server)
    }

    /// Returns the CPU time of the server's single thread, in user and kernel mode.
    pub(crate) fn cpu_time(&self) -> anyhow::Result<Duration> {
        // This file has nanoseconds. The clock ticks of /proc/PID/stat are too coarse for a round.
        let path = format!("/proc/{}/schedstat", self.child.id());
        let figures = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        let run_time = figures.split(' ').next().unwrap_or_default();
        Ok(Duration::from_nanos(run_time.parse()?))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // This fails only if the process has ended by itself.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Runs as a server's process: prints the address, then serves until it is killed.
pub(crate) fn serve(arguments: &[String]) -> anyhow::Result<()> {
    let [contender, core] = arguments else {
        anyhow::bail!("{SERVE} takes a contender and a core");
    };
    let contender = Contender::from_name(contender)?;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    pin(core.parse()?)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let mut stdout = std::io::stdout();
        writeln!(stdout, "{}", listener.local_addr()?)?;
        stdout.flush()?;
        contender.serve(listener).await?;
        Ok(())
    })
}
