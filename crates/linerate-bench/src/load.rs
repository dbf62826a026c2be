//! The load: clients with their own sockets that check every answer.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use linerate_harness::cores::AffinityGuard;
use linerate_harness::socket::TlsOptions;
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
mod script;
#[cfg(test)]
mod testing;
mod upload;
mod watch;

pub(crate) use check::masked_frame;
pub use error::LoadError;
use error::system;
pub(crate) use meter::Latencies;
pub(crate) use watch::Watch;

use crate::cell::Load;
use crate::record::Figures;

/// Puts a server under a load and returns the figures.
///
/// Meanwhile the clients and the calling thread run on `cores`. An echo has one thread on each of
/// them; the other loads run on the calling thread only. If `cores` is empty, the kernel decides
/// where the threads run.
///
/// # Errors
///
/// Returns an error if the server failed (it answered wrongly, was silent, or closed the
/// connection), or if the load could not be generated ([`LoadError::is_ours`]).
pub fn measure(
    load: &Load,
    target: &Target,
    budget: &Budget,
    cores: &[u32],
    probe: &mut dyn Probe,
) -> Result<Figures, LoadError> {
    let _pinned = AffinityGuard::to(cores).map_err(system("cannot pin the load to its cores"))?;
    match load {
        Load::Echo(echo) => echo::measure(echo, target, budget, cores, probe),
        Load::Fanout(fanout) => fanout::measure(fanout, target, budget, probe),
        Load::Idle(idle) => idle::measure(idle, target, budget, probe),
        Load::Upload(upload) => upload::measure(upload, target, budget, probe),
    }
}

/// The server that the load talks to.
#[derive(Clone, Debug)]
pub struct Target {
    /// Address on which it listens.
    pub address: SocketAddr,
    /// Value of the `Host` header.
    pub host: String,
    /// Request target, for instance `/`.
    pub path: String,
    /// Protocol that it speaks.
    pub wire: Wire,
    /// TLS configuration, and the name that the certificate must be valid for.
    pub tls: Option<TlsOptions>,
}

/// The protocol that a server speaks.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Wire {
    /// Plain bytes without a handshake. The server returns the bytes that were sent, still masked.
    /// A server that acknowledges is first sent eight bytes, little-endian: the number of bytes
    /// after which it has to answer with the byte 0x06 (ACK in ASCII).
    Raw,
    /// WebSocket (RFC 6455).
    #[default]
    WebSocket,
}

/// How long to measure.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Duration of the load before each measurement that does not count.
    pub warm_up: Duration,
    /// Duration of the measurement. Loads with a fixed amount of work, like an upload, may take
    /// longer.
    pub measured: Duration,
    /// A server that is silent for this long while answers are due has failed.
    pub silence_max: Duration,
}

/// What a server has used since it was started. Subtract two readings to get a figure.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// CPU time of all threads.
    pub cpu: Duration,
    /// The part of the CPU time in user mode, at the resolution of the kernel's clock ticks.
    pub user: Duration,
    /// The part of the CPU time in the kernel, at the resolution of the kernel's clock ticks.
    pub system: Duration,
    /// Resident memory at present, in bytes.
    pub resident_bytes: u64,
    /// Peak of the resident memory since [`Probe::reset_peak`], in bytes.
    pub resident_bytes_peak: u64,
}

/// Reads the resource usage of a server's process. The load calls it when a measurement begins and
/// ends.
pub trait Probe: fmt::Debug {
    /// Returns what the server has used, or `None` if its process cannot be inspected.
    ///
    /// # Errors
    ///
    /// Returns an error if the process has exited.
    fn usage(&mut self) -> io::Result<Option<Usage>>;

    /// Resets the peak of the resident memory.
    ///
    /// # Errors
    ///
    /// Returns an error if the process has exited.
    fn reset_peak(&mut self) -> io::Result<()>;

    /// Returns the number of cores that the server may use.
    fn cores(&self) -> u32;
}
