//! The servers' processes: started from this same binary, pinned to a core, with their CPU time
//! read.

use std::env;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use linerate_harness::child::ChildProcess;
use linerate_harness::cores::{allowed, pin};
use rustix::process::{Signal, set_parent_process_death_signal};
use tokio::net::TcpListener;

use crate::contender::Contender;

/// First argument of a server's process. The contender and the core follow.
pub(crate) const SERVE: &str = "--serve";

/// The numbers of the cores that the servers and the client run on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cores {
    pub(crate) client: u32,
    pub(crate) server: u32,
}

impl Cores {
    /// Chooses the first two cores that the process may use, or one for both if there is only one.
    pub(crate) fn choose() -> anyhow::Result<Self> {
        let mut cores = allowed()
            .context("cannot read the CPU affinity")?
            .into_iter();
        let server = cores.next().context("no core is available")?;
        Ok(Self {
            client: cores.next().unwrap_or(server),
            server,
        })
    }
}

/// A contender's server in a separate process, which is killed when this value is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) contender: Contender,
    pub(crate) address: SocketAddr,
    child: ChildProcess,
}

impl Server {
    /// Starts a server on a free port of the loopback interface.
    pub(crate) fn start(contender: Contender, core: u32) -> anyhow::Result<Self> {
        let mut command = Command::new(env::current_exe()?);
        command
            .args([SERVE, contender.name(), &core.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut child =
            ChildProcess::spawn(&mut command).context("cannot start this binary as a server")?;
        let address = child
            .first_line()?
            .parse()
            .with_context(|| format!("{} did not print its address", contender.name()))?;
        Ok(Self {
            contender,
            address,
            child,
        })
    }

    /// Returns the CPU time of the server's single thread, in user and kernel mode.
    pub(crate) fn cpu_time(&self) -> io::Result<Duration> {
        self.child.process().cpu()
    }
}

/// Runs as a server's process: prints the address, then serves until it is killed.
pub(crate) fn serve(arguments: &[String]) -> anyhow::Result<()> {
    let [contender, core] = arguments else {
        anyhow::bail!("{SERVE} takes a contender and a core");
    };
    let contender = Contender::from_name(contender)?;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    pin(&[core.parse()?])?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let mut stdout = io::stdout();
        writeln!(stdout, "{}", listener.local_addr()?)?;
        stdout.flush()?;
        contender.serve(listener).await?;
        Ok(())
    })
}
