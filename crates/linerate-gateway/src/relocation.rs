//! Clients that move from one process to another, without noticing it.
//!
//! ```text
//! old process                                   new process
//!                    ◄── mark ──                looks for it at its broker, and holds back
//! looks for the mark ── channels ─►             subscribes to them, then publishes the mark
//!                    ◄── subscribed ──
//! stops reading, and lets sessions come to rest
//!                    ── more channels ─►
//!                    ◄── subscribed ──
//! stops passing on publications; the hubs hand out everything
//!                    ── clients, with sockets ─►
//!                    ── what was passed on ─►
//! forgets them       ── commit ─►               continues them, and passes on what is new
//! ```
//!
//! Nothing is lost or repeated, because all publications up to one place were handed to the
//! clients by the old process, unsent bytes included, and the new one passes on those after it:
//! see [`Splice`](crate::node::splice::Splice). Until the commit, the old process can take all
//! clients back.
//!
//! | module | contents |
//! | --- | --- |
//! | `arrival` | clients that come from another process |
//! | `departure` | clients that leave for another process |
//! | `fleet` | the workers and their clients |
//! | `parcel` | clients and channels as bytes |

#[cfg(unix)]
mod arrival;
#[cfg(unix)]
mod departure;
mod fleet;
#[cfg(unix)]
pub(crate) mod parcel;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::{
    node::{Node, intake::Intake},
    session::SessionEnvironment,
};
#[cfg(unix)]
pub(crate) use arrival::{Arrival, ArrivalError};
#[cfg(unix)]
pub(crate) use departure::{Departure, DepartureError};
pub(crate) use fleet::{Crew, Fleet};
#[cfg(unix)]
pub(crate) use parcel::write_names;

/// What takes part when clients move: the parts of one process.
#[derive(Clone, Debug)]
pub(crate) struct Relocation {
    /// The workers that run.
    pub(crate) fleet: Arc<Fleet>,
    /// The number of workers once all of them run.
    pub(crate) workers: usize,
    pub(crate) intake: Arc<Intake>,
    pub(crate) environment: Arc<SessionEnvironment>,
    pub(crate) node: Arc<Node>,
}
