//! One memory budget for a whole process, in the spirit of Envoy's overload manager.
//!
//! A [`Budget`] is a number of bytes that all [`Consumer`]s share. Each buffer that a peer can make
//! grow holds a [`Lease`] and resizes it along with the buffer's capacity. A lease draws credit
//! from the budget in slabs, so that most changes touch no memory that threads share. The budget
//! has three [`State`]s; code that accepts connections or can close expensive ones watches them.
//! Anything that can be ended to free memory is [registered](Budget::register) as a [`Holder`].
//!
//! ```
//! use linerate_budget::{Budget, Consumer, State};
//!
//! let budget = Budget::new(1 << 20);
//! let mut lease = budget.lease(Consumer::Uploads);
//! lease.grow(300_000)?;
//! assert!(budget.used(Consumer::Uploads) >= 300_000);
//! assert!(lease.grow(1 << 20).is_err());
//!
//! drop(lease);
//! assert_eq!(budget.used_total(), 0);
//! assert_eq!(budget.state(), State::Normal);
//! # Ok::<(), linerate_budget::Exhausted>(())
//! ```

#![forbid(unsafe_code)]

mod account;
mod budget;
mod consumer;
mod counters;
mod exhausted;
mod holders;
mod lease;
mod lock;
mod signal;
mod state;
mod watch;

pub use crate::{
    account::{Account, Share},
    budget::Budget,
    consumer::Consumer,
    exhausted::Exhausted,
    holders::{Holder, Registration},
    lease::Lease,
    state::State,
    watch::Watch,
};
