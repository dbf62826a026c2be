//! Contenders whose servers this process starts.

use std::io;
use std::thread;
use std::time::Duration;

use super::subject::{RunningServer, Subject};
use crate::cell::{Cell, Mode};
use crate::contender::{Contender, Program};
use crate::load::{Probe, Target, Usage};
use crate::server::{Certificate, Launcher, Server, ServerError, StartOptions};

/// How long to wait for a server that broke a connection to end, in case it crashed. Writing a core
/// dump, for instance, takes time.
const END_STEP: Duration = Duration::from_millis(20);
const END_STEPS: u32 = 15;

/// A contender that takes part in a run.
#[derive(Debug)]
pub struct Local<'a> {
    /// The contender.
    pub contender: &'a Contender,
    /// The launcher that starts its servers.
    pub launcher: &'a Launcher,
    /// Numbers of the cores that its servers run on.
    pub cores: &'a [u32],
    /// The certificate that its servers present over TLS.
    pub certificate: &'a Certificate,
}

impl Subject for Local<'_> {
    fn name(&self) -> &str {
        &self.contender.name
    }

    fn lacks(&self, cell: &Cell) -> Option<String> {
        self.contender.lacks(cell.mode()).map(String::from)
    }

    fn warm_up(&self) -> Duration {
        Duration::from_millis(self.contender.manifest.warm_up_ms)
    }

    fn start(&self, mode: Mode) -> Result<Box<dyn RunningServer + '_>, ServerError> {
        let program = match &self.contender.program {
            Program::Absent(reason) => return Err(ServerError::Ended(reason.clone())),
            Program::Built(program) => program,
        };
        let server = Server::start(&StartOptions {
            launcher: self.launcher,
            program,
            mode,
            cores: self.cores,
            certificate: self.certificate,
        })?;
        let target = Target {
            address: server.address(),
            host: format!("localhost:{}", server.address().port()),
            path: "/".into(),
            wire: self.contender.manifest.wire,
            tls: mode.tls.then(|| self.certificate.client()),
        };
        Ok(Box::new(LocalServer { server, target }))
    }
}

/// A server that this process has started.
#[derive(Debug)]
struct LocalServer {
    server: Server,
    target: Target,
}

impl RunningServer for LocalServer {
    fn target(&self) -> &Target {
        &self.target
    }

    fn wait_until_idle(&mut self) {
        self.server.wait_until_idle();
    }

    fn end(&mut self) -> Option<String> {
        for _ in 0..END_STEPS {
            if let Some(end) = self.server.end() {
                return Some(end);
            }
            thread::sleep(END_STEP);
        }
        None
    }
}

impl Probe for LocalServer {
    fn usage(&mut self) -> io::Result<Option<Usage>> {
        self.server.usage()
    }

    fn reset_peak(&mut self) -> io::Result<()> {
        self.server.reset_peak()
    }

    fn cores(&self) -> u32 {
        self.server.cores()
    }
}
