//! The interface of a session to the output side of its client.

use linerate_hub::ChannelName;

use super::journal::Journal;
use crate::node::{Notice, Outlet};

/// The output side of one client, as its session uses it.
pub(crate) trait SessionOutlet: Outlet {
    /// Holds data back until the transport releases it, once the client has been told that it is
    /// connected.
    fn hold(&self);

    /// Notes the memory of commands that the session keeps, so that it counts as the client's.
    fn keep_commands(&self, bytes: usize);

    /// Returns what was handed to the client, if it may return to its session.
    fn journal(&self) -> Option<&Journal> {
        None
    }
}

/// An event for the session to handle.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// Publications are missing. The client has already been told if its protocol allows it.
    Gap(ChannelName),
    /// A notice from the node.
    Notice(Notice),
    /// The client must be disconnected because it is too slow.
    Slow,
    /// A publication cannot be encoded in the client's protocol.
    Unencodable(ChannelName),
}
