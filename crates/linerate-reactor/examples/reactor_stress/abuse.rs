//! The ways in which clients behave badly, and what each may cost in memory.

use std::error::Error;

use crate::server::BACKLOG_BYTES_MAX;

/// A way to behave badly.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Abuse {
    /// Connecting and resetting the connection at once.
    Churn,
    /// Fragments without payload.
    EmptyFragments,
    /// Opening connections that never read, and never answer a Ping: their hosts are gone.
    HalfOpen,
    /// Pings.
    Pings,
    /// Connecting and sending no request.
    Silence,
    /// Sending messages and reading no echo.
    SlowReaders,
    /// Fragments of a byte.
    TinyFragments,
}

impl Abuse {
    pub(crate) const ALL: [Self; 7] = [
        Self::SlowReaders,
        Self::HalfOpen,
        Self::Pings,
        Self::TinyFragments,
        Self::EmptyFragments,
        Self::Churn,
        Self::Silence,
    ];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Churn => "churn",
            Self::EmptyFragments => "empty-fragments",
            Self::HalfOpen => "half-open",
            Self::Pings => "pings",
            Self::Silence => "silence",
            Self::SlowReaders => "slow-readers",
            Self::TinyFragments => "tiny-fragments",
        }
    }

    pub(crate) fn parse(name: &str) -> Result<Self, Box<dyn Error>> {
        let found = Self::ALL.into_iter().find(|abuse| abuse.as_str() == name);
        found.ok_or_else(|| format!("no such abuse: {name}").into())
    }

    /// Returns how many connections it has at most at the server.
    pub(crate) const fn connections(self) -> usize {
        match self {
            Self::EmptyFragments | Self::Pings | Self::TinyFragments => 4,
            Self::SlowReaders => 64,
            // Each lives for at most four times the patience of the server, two seconds.
            Self::Churn | Self::HalfOpen | Self::Silence => 2 * crate::attack::CONNECTS,
        }
    }

    /// Returns the most memory in bytes that it may take of the server, by the server's options.
    pub(crate) const fn memory_max(self) -> usize {
        /// What a worker keeps to use it again, whatever its clients do: a buffer for reads, one for
        /// output, and as much as a megabyte of each size for messages in pieces.
        const WORKER: usize = 16 << 20;
        /// Input that was read before the connection was stopped.
        const HELD: usize = 256 << 10;
        let each = match self {
            // A request that is not whole, and a connection.
            Self::Churn | Self::HalfOpen | Self::Silence => 16 << 10,
            // A message of at most a megabyte, which may have grown by doubling.
            Self::EmptyFragments | Self::Pings | Self::TinyFragments => (2 << 20) + HELD,
            Self::SlowReaders => BACKLOG_BYTES_MAX + crate::attack::MESSAGE_BYTES + HELD,
        };
        WORKER + self.connections() * each
    }
}
