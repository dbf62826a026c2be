//! Why a relay ended.

use std::{fmt, io, time::Duration};

use linerate_proto::ProtocolError;

/// Why a relay ended before both connections were closed.
#[derive(Debug)]
#[non_exhaustive]
pub enum RelayError {
    /// One direction has ended, and the other did not in time.
    CloseTimeout {
        /// How long it might have gone on.
        limit: Duration,
    },
    /// Nothing came from either side for too long.
    Idle {
        /// For how long nothing may come.
        limit: Duration,
    },
    /// A stream failed.
    Io {
        /// Whose.
        end: RelayEnd,
        /// Why.
        error: io::Error,
    },
    /// A peer broke the rules of framing.
    Protocol {
        /// Which.
        end: RelayEnd,
        /// How.
        error: ProtocolError,
    },
}

/// One of the connections of a relay.
///
/// Complete: there are two.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RelayEnd {
    /// The first.
    First,
    /// The second.
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

impl fmt::Display for RelayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CloseTimeout { limit } => {
                write!(
                    f,
                    "one direction went on for {limit:?} after the other had ended"
                )
            }
            Self::Idle { limit } => write!(f, "nothing came from either side for {limit:?}"),
            Self::Io { end, error } => write!(f, "{end} connection failed: {error}"),
            Self::Protocol { end, error } => {
                write!(
                    f,
                    "peer of the {end} connection broke the protocol: {error}"
                )
            }
        }
    }
}

impl std::error::Error for RelayError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } => Some(error),
            Self::Protocol { error, .. } => Some(error),
            Self::CloseTimeout { .. } | Self::Idle { .. } => None,
        }
    }
}
