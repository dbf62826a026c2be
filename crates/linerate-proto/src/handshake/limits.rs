//! What an opening handshake may cost before it is refused.

use core::time::Duration;

/// Bounds what one opening handshake may cost; every bound holds by default.
///
/// ```
/// use linerate_proto::handshake::HandshakeLimits;
///
/// let limits = HandshakeLimits { head_bytes_max: 8 * 1024, ..HandshakeLimits::default() };
/// assert_eq!(limits.headers_max, 100);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandshakeLimits {
    /// Bytes in a request or response head, its empty last line included. Default: 16 KiB, twice
    /// what the large cookies of a browser (4 KiB each) usually come to, and small enough for a
    /// million connections in handshake to be somebody's budget. Beyond it: 431.
    pub head_bytes_max: usize,
    /// Header lines in a head. Default: 100; browsers send about 15, proxies add a few. Beyond
    /// it: 431.
    pub headers_max: usize,
    /// Subprotocols that one client offers. Default: 32; duplicates are looked for pairwise.
    /// Beyond it: 431.
    pub subprotocols_max: usize,
    /// Extensions that one client offers. Default: 32; clients offer one extension in at most a
    /// handful of variants. Beyond it: 431.
    pub extensions_max: usize,
    /// Parameters over all the extensions that one client offers. Default: 128, the four of
    /// `permessage-deflate` for each of 32 offers. Beyond it: 431.
    pub extension_parameters_max: usize,
    /// Interim responses (1xx other than 101) that a client skips. Default: 4; one `103 Early
    /// Hints` is usual, an endless row of them is an attack.
    pub interim_responses_max: usize,
    /// Time from the first moment of a connection until its handshake is over. Default: 10 s. It
    /// is an absolute deadline that no received byte moves, so a peer that sends a byte now and
    /// then gains nothing. Whoever owns the clock enforces it and reports
    /// [`HandshakeError::TimedOut`](super::HandshakeError::TimedOut).
    pub time_max: Duration,
}

impl Default for HandshakeLimits {
    fn default() -> Self {
        Self {
            head_bytes_max: 16 * 1024,
            headers_max: 100,
            subprotocols_max: 32,
            extensions_max: 32,
            extension_parameters_max: 128,
            interim_responses_max: 4,
            time_max: Duration::from_secs(10),
        }
    }
}
