//! Limits on the size and duration of an opening handshake.

use core::time::Duration;

/// Limits on the resources of one opening handshake. All of them have a default.
///
/// ```
/// use linerate_proto::handshake::HandshakeLimits;
///
/// let mut limits = HandshakeLimits::default();
/// limits.head_bytes_max = 8 * 1024;
/// assert_eq!(limits.headers_max, 100);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandshakeLimits {
    /// The maximum size of a request or response head in bytes, including its empty last line.
    /// Default: 16 KiB, which is twice the usual total of a browser's large cookies (4 KiB each),
    /// and small enough for a million connections that are in the handshake at the same time. A
    /// larger request is refused with 431.
    pub head_bytes_max: usize,
    /// The maximum number of header lines in a head. Default: 100; browsers send about 15, and
    /// proxies add a few. A request with more is refused with 431.
    pub headers_max: usize,
    /// The maximum number of subprotocols that a client may offer. Default: 32, because the check
    /// for duplicates compares all pairs. A request with more is refused with 431.
    pub subprotocols_max: usize,
    /// The maximum number of extensions that a client may offer. Default: 32; real clients offer
    /// one extension in a few variants. A request with more is refused with 431.
    pub extensions_max: usize,
    /// The maximum number of parameters of all offered extensions together. Default: 128, which is
    /// four for each of 32 offers of `permessage-deflate`. A request with more is refused with 431.
    pub extension_parameters_max: usize,
    /// The maximum number of interim responses (1xx other than 101) that a client skips. Default:
    /// 4; one `103 Early Hints` is common, an endless series is an attack.
    pub interim_responses_max: usize,
    /// The maximum time from the start of a connection to the end of its handshake. Default: 10 s.
    /// This is an absolute deadline that input does not extend, so a peer gains nothing by sending
    /// a byte now and then. The caller, which owns the clock, enforces it and reports
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
