//! Takeovers: a new process continues where a running one stops, on the same listening sockets.
//!
//! The old process listens on the Unix socket `server.takeover_socket`. The new one connects to it,
//! and both follow this protocol:
//!
//! | step | from | message | then |
//! | --- | --- | --- | --- |
//! | 1 | new | `hello`: versions, process, executable | the old process has checked the user and the executable |
//! | 2 | old | `welcome`: versions, listeners that it has | the new one binds other addresses and connects to its broker |
//! | 3 | new | `ready`: the listeners that it wants | |
//! | 4 | old | `listeners`, with descriptors, for each of them | the new one starts its workers, which accept nothing |
//! | 5 | new | `relocate`: the number of its workers, and a mark | the old one looks for the mark among the messages from the broker |
//! | 6 | old | `channels` of its clients, or `stay` | the new one subscribes to them, and sends the mark |
//! | 7 | new | `prepared` | the old one stops accepting; connections wait in the listeners |
//! | 8 | old | `channels` once more, when no client is read any more | |
//! | 9 | new | `subscribed` | the old one stops passing on publications |
//! | 10 | old | `parcel`s with the clients, with descriptors, and `moved` | the new one checks them |
//! | 11 | new | `received` | |
//! | 12 | old | `commit` | the new one accepts, and continues the clients; the old one closes its listeners and drains |
//! | 13 | new | `serving` | |
//!
//! Without clients that can move, steps 8 to 11 are left out.
//!
//! The old process is responsible until `commit`: it is sent if and only if the new process can
//! still receive it (see [`link`]), and it decides for both. Before it, each failure leaves the old
//! process serving: it accepts connections again, takes its clients back, and the new process ends.
//! After it, the old
//! process never accepts again. Each side says `refuse` with a reason where it can. In no step is a
//! listening socket closed that clients connect to.
//!
//! If the old process dies before `commit`, the new one notices that the process no longer exists
//! and serves at once, with the sockets that it has received or with its own.
//!
//! The two sides are state machines without I/O, [`predecessor`] and [`successor`]. How the clients
//! move is described in [`relocation`](crate::relocation).
//!
//! | module | contents |
//! | --- | --- |
//! | `serve` | the side of the old process, with its sockets |
//! | `join` | the side of the new process, with its sockets |
//! | `predecessor` | the state machine of the old process |
//! | `successor` | the state machine of the new process |
//! | `step` | the steps, their deadlines, and how each can fail |
//! | `link` | messages with descriptors over a Unix socket |
//! | `message` | messages as bytes |
//! | `frame` | what precedes each message |
//! | `peer` | the process at the other end |
//! | `socket` | the Unix socket in the file system |

mod error;
mod frame;
#[cfg(any(fuzzing, test))]
pub(crate) mod fuzzing;
mod join;
mod link;
mod message;
mod peer;
mod predecessor;
mod serve;
mod socket;
mod step;
mod successor;
#[cfg(test)]
mod tests;

pub use error::TakeoverError;
pub(crate) use join::{Continuation, Joining};
pub(crate) use serve::{Handover, TakenOver};
pub(crate) use socket::TakeoverSocket;
