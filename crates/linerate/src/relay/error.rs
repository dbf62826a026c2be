//! Why a relay ended.

use std::{fmt, io, time::Duration};

use linerate_proto::ProtocolError;

/// Why a relay ended before both connections were closed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RelayError {
    /// One direction ended, and the other did not end in time.
    #[error("one direction was still open {limit:?} after the other had ended")]
    CloseTimeout {
        /// The time allowed.
        limit: Duration,
    },
    /// Both sides were silent for too long.
    #[error("no data from either side for {limit:?}")]
    Idle {
        /// The time allowed.
        limit: Duration,
    },
    /// A stream failed.
    #[error("{end} connection failed: {error}")]
    Io {
        /// The connection whose stream failed.
        end: RelayEnd,
        /// Why the stream failed.
        #[source]
        error: io::Error,
    },
    /// A peer sent an invalid frame.
    #[error("peer of the {end} connection violated the protocol: {error}")]
    Protocol {
        /// The connection of that peer.
        end: RelayEnd,
        /// What is wrong with the frame.
        #[source]
        error: ProtocolError,
    },
}

/// One of the connections of a relay.
///
/// The enum is exhaustive because there are exactly two.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a relay has two ends")]
pub enum RelayEnd {
    /// The first connection.
    First,
    /// The second connection.
    Second,
}

impl RelayEnd {
    pub(super) const fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }
}

impl fmt::Display for RelayEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::First => "first",
            Self::Second => "second",
        })
    }
}
