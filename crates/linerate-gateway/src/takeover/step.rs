//! The steps of the protocol, their deadlines, and how each can fail.

use std::{fmt, io, time::Duration};

use thiserror::Error;

use super::{frame::PROTOCOL, link::LinkError, message::Message};
use crate::relocation::{ArrivalError, DepartureError};

/// A step of the protocol: the message that a side waits for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Step {
    /// The old process waits for `hello`.
    Hello,
    /// The new process waits for `welcome`.
    Welcome,
    /// The old process waits for `ready`.
    Ready,
    /// The new process waits for `listeners`.
    Listeners,
    /// The old process waits for `prepared`.
    Prepared,
    /// The old process waits until its own workers no longer accept.
    Pause,
    /// The new process waits for `channels`.
    Channels,
    /// The old process waits for `subscribed`.
    Subscribed,
    /// The old process waits for `received`.
    Received,
    /// The new process waits for `commit`.
    Commit,
    /// The old process waits for `serving`.
    Serving,
}

impl Step {
    /// Returns the maximum duration of the step.
    pub(super) const fn deadline(self) -> Duration {
        Duration::from_secs(match self {
            Self::Hello => 5,
            // The old process may be waiting for the first message of another peer.
            Self::Welcome => 20,
            // The new process connects to its broker, for which it has less time.
            Self::Ready => 60,
            Self::Listeners => 20,
            Self::Prepared => 60,
            // An accept loop looks at least once a second.
            Self::Pause => 10,
            // The old process may have to look for very many channels.
            Self::Channels => 20,
            // Clients wait meanwhile.
            Self::Subscribed | Self::Received => 10,
            // Longer than the pause, so that the old process gives up first.
            Self::Commit => 45,
            Self::Serving => 10,
        })
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hello => "hello",
            Self::Welcome => "welcome",
            Self::Ready => "ready",
            Self::Listeners => "listeners",
            Self::Prepared => "prepared",
            Self::Pause => "pause",
            Self::Channels => "channels",
            Self::Subscribed => "subscribed",
            Self::Received => "received",
            Self::Commit => "commit",
            Self::Serving => "serving",
        })
    }
}

/// A takeover has failed.
#[derive(Debug, Error)]
pub(crate) enum Fault {
    /// A listener that was offered cannot be used.
    #[error("listener of the other process cannot be used")]
    Adopt(#[source] io::Error),
    /// The message `commit` could not be sent, so that it does not count.
    #[error("cannot send `commit`")]
    Commit(#[source] io::Error),
    /// A message has another number of descriptors than it should.
    #[error("message `{message}` has {found} descriptors in place of {expected}")]
    Descriptors {
        /// The name of the message.
        message: &'static str,
        /// The number found.
        found: usize,
        /// The number expected.
        expected: usize,
    },
    /// Clients cannot leave.
    #[error("clients cannot be handed over")]
    Departure(#[from] DepartureError),
    /// Clients cannot be continued.
    #[error("clients cannot be continued")]
    Arrival(#[from] ArrivalError),
    /// The connection failed or was closed.
    #[error("connection to the other process failed while waiting for `{step}`")]
    Link {
        /// The step.
        step: Step,
        /// The cause.
        source: LinkError,
    },
    /// An offer that does not exist is wanted, or one is wanted twice.
    #[error("`ready` names offer {offer}, which does not exist or was named before")]
    Offer {
        /// The index of the offer.
        offer: u16,
    },
    /// The other process ended the takeover.
    #[error("refused by the other process: {reason}")]
    Refused {
        /// Its reason.
        reason: String,
    },
    /// This process is stopping, or was told to.
    #[error("this process is stopping")]
    Stopping,
    /// The step took too long.
    #[error("no `{step}` within {} s", step.deadline().as_secs())]
    Timeout {
        /// The step.
        step: Step,
    },
    /// A message does not belong into the step.
    #[error("message `{message}` arrived in place of `{step}`")]
    Unexpected {
        /// The name of the message.
        message: &'static str,
        /// The step.
        step: Step,
    },
    /// The processes have no version of the protocol in common.
    #[error(
        "the other process has protocol versions {} to {}, and this one {} to {}; \
         restart the server instead, which disconnects its clients",
        found.0, found.1, PROTOCOL.0, PROTOCOL.1
    )]
    Version {
        /// The versions of the other process.
        found: (u16, u16),
    },
}

/// Checks the number of descriptors of a message.
pub(super) fn check_descriptors(
    message: &Message,
    found: usize,
    expected: usize,
) -> Result<(), Fault> {
    let message = message.name();
    match found == expected {
        true => Ok(()),
        false => Err(Fault::Descriptors {
            message,
            found,
            expected,
        }),
    }
}

/// Returns the newest version of the protocol that both sides have.
pub(super) fn negotiate(found: (u16, u16)) -> Result<u16, Fault> {
    let common = found.1.min(PROTOCOL.1);
    match common >= found.0.max(PROTOCOL.0) {
        true => Ok(common),
        false => Err(Fault::Version { found }),
    }
}

/// Returns the fault of a message that does not belong into a step.
pub(super) fn unexpected(message: Message, step: Step) -> Fault {
    match message {
        Message::Refuse { reason } => Fault::Refused { reason },
        message => Fault::Unexpected {
            message: message.name(),
            step,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::negotiate;

    #[test]
    fn the_newest_common_version_is_used_and_ranges_without_one_are_refused() {
        assert_eq!(negotiate((0, 9)).unwrap(), 1);
        assert_eq!(negotiate((1, 1)).unwrap(), 1);
        for found in [(0, 0), (2, 9), (9, 0)] {
            let error = negotiate(found).unwrap_err().to_string();
            assert!(error.contains(&format!("versions {} to {}", found.0, found.1)));
        }
    }
}
