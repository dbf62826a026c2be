//! The settings of a connection.

use std::time::Duration;

/// The settings of a connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The most time that opening may take. Default: 30 s.
    pub connect_timeout: Duration,
    /// The most time that the closing handshake may take. Default: 5 s.
    pub close_timeout: Duration,
    /// The most bytes of messages that may wait to be received, with 64 bytes added for each
    /// message. A browser cannot be told to pause, so if more arrives, the connection is closed
    /// with code 4009, and receiving fails. Default: 16 MiB.
    pub recv_queue_bytes_max: usize,
    /// The most bytes that may wait in the browser to be sent before sending blocks. Default: 1
    /// MiB.
    pub send_queue_bytes_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(30),
            close_timeout: Duration::from_secs(5),
            recv_queue_bytes_max: 16 << 20,
            send_queue_bytes_max: 1 << 20,
        }
    }
}
