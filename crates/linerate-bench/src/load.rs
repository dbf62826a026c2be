//! The load: clients on their own sockets that check every answer.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use serde::Deserialize;

mod answers;
mod check;
mod crowd;
mod echo;
mod error;
mod fanout;
mod idle;
mod link;
mod message;
mod meter;
mod opening;
mod pin;
mod script;
mod socket;
#[cfg(test)]
mod testing;
mod upload;
mod watch;

pub use crowd::raise_file_limit;
pub use error::LoadError;
pub(crate) use meter::Latencies;
pub(crate) use watch::Watch;

use crate::cell::Load;
use crate::record::Figures;

/// Puts a server under a load, and tells what came of it.
///
/// The clients are on `cores`, and so is the calling thread meanwhile: an echo has one thread on each
/// of them, the other loads have but the calling one. Without cores, threads run where the kernel puts
/// them.
///
/// # Errors
///
/// The server failed: it answered wrongly, was silent, closed the connection. Or the load could not
/// be put on it ([`LoadError::is_ours`]).
pub fn measure(
    load: &Load,
    target: &Target,
    budget: &Budget,
    cores: &[u32],
    probe: &mut dyn Probe,
) -> Result<Figures, LoadError> {
    let _pinned = pin::Pinned::to(cores)?;
    match load {
        Load::Echo(echo) => echo::measure(echo, target, budget, cores, probe),
        Load::Fanout(fanout) => fanout::measure(fanout, target, budget, probe),
        Load::Idle(idle) => idle::measure(idle, target, budget, probe),
        Load::Upload(upload) => upload::measure(upload, target, budget, probe),
    }
}

/// Whom the load talks to.
#[derive(Clone, Debug)]
pub struct Target {
    /// Where it listens.
    pub address: SocketAddr,
    /// The `Host` header.
    pub host: String,
    /// The request target, for instance `/`.
    pub path: String,
    /// What it speaks.
    pub wire: Wire,
    /// TLS, and the name that the certificate has to be for.
    pub tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

/// What a server speaks.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Wire {
    /// Bytes: no handshake, and what comes back is what was sent, masked as it was. A server that
    /// acknowledges is first told, in eight bytes, little-endian, after how many bytes it has to
    /// answer with one byte, which is 0x06 (ACK in ASCII).
    Raw,
    /// RFC 6455.
    WebSocket,
}

/// How long to measure.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Load that does not count, before each measurement.
    pub warm_up: Duration,
    /// The measurement. Loads that have an end of their own, like an upload, may take longer.
    pub measured: Duration,
    /// A server that is silent for so long, with answers due, has failed.
    pub silence_max: Duration,
}

/// What a server has used since it was started; differences count.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// CPU time of all threads.
    pub cpu: Duration,
    /// The part in user mode, in ticks of the kernel.
    pub user: Duration,
    /// The part in the kernel, in ticks of the kernel.
    pub system: Duration,
    /// Resident memory now.
    pub resident_bytes: u64,
    /// Its peak since [`Probe::reset_peak`].
    pub resident_bytes_peak: u64,
}

/// A look into a server's process, taken by the load at the moments that count.
pub trait Probe: fmt::Debug {
    /// Returns what the server has used, `None` for a server that cannot be looked into.
    ///
    /// # Errors
    ///
    /// The process is gone.
    fn usage(&mut self) -> io::Result<Option<Usage>>;

    /// Forgets the peak of resident memory.
    ///
    /// # Errors
    ///
    /// The process is gone.
    fn reset_peak(&mut self) -> io::Result<()>;

    /// Cores that the server may use.
    fn cores(&self) -> u32;
}
