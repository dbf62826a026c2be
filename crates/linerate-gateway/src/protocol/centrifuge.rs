//! The client protocol of Centrifuge, second version, in JSON and Protobuf.
//!
//! | room | what happens there |
//! | --- | --- |
//! | `codes` | errors, disconnects, unsubscribes: one table each |
//! | `command` | what clients say |
//! | `reply` | what they hear |

pub mod codes;
pub mod command;
pub mod reply;

pub use codes::{ClientError, Disconnect, Unsubscribe};
pub use command::{Command, Request};
pub use reply::{Answer, Push, Reply, ServerMessage};
