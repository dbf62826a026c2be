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
//! | 5 | new | `prepared` | the old one stops accepting; connections wait in the listeners |
//! | 6 | old | `commit` | the new one accepts; the old one closes its listeners and drains |
//! | 7 | new | `serving` | |
//!
//! The old process is responsible until `commit`: it is sent if and only if the new process can
//! still receive it (see [`link`]), and it decides for both. Before it, each failure leaves the old
//! process serving: it accepts connections again, and the new process ends. After it, the old
//! process never accepts again. Each side says `refuse` with a reason where it can. In no step is a
//! listening socket closed that clients connect to.
//!
//! If the old process dies before `commit`, the new one notices that the process no longer exists
//! and serves at once, with the sockets that it has received or with its own.
//!
//! The two sides are state machines without I/O, [`predecessor`] and [`successor`]. Live
//! connections, which are closed as in any shutdown, belong between steps 4 and 5: the workers of
//! the new process exist by then and accept nothing, those of the old process still serve, and the
//! state machines take a new kind of message only in that state.
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
