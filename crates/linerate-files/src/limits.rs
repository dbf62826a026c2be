//! The limits of uploads.

use std::time::Duration;

/// The limits of all uploads that one [`Uploads`](crate::Uploads) receives.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// The most bytes of a file, 64 GiB.
    pub file_bytes_max: u64,
    /// How long an upload is kept while no bytes of it arrive, 600 s: because its connection was
    /// lost, or because its client has paused it. A connection on which nothing arrives for as long
    /// is closed.
    pub idle_max: Duration,
    /// The longest name of a file, 1,024 bytes: enough for 255 UTF-16 units, the limit of file
    /// systems.
    pub name_bytes_max: usize,
    /// The most uploads that are kept at a time, 1,024: open ones, and complete ones whose clients
    /// may still ask for the result. Those without a connection give way to new ones.
    pub open_max: usize,
    /// The most uploads of one connection at a time, 16.
    pub per_connection_max: usize,
    /// The longest text message, 8 KiB: enough for a name of which every character is escaped.
    pub text_bytes_max: usize,
    /// How many bytes of an upload a client may send beyond the last acknowledgement, 16 MiB; also
    /// the longest binary message. The server does not hold them; they wait in the network.
    pub window_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            file_bytes_max: 64 << 30,
            idle_max: Duration::from_secs(600),
            name_bytes_max: 1_024,
            open_max: 1_024,
            per_connection_max: 16,
            text_bytes_max: 8 << 10,
            window_bytes: 16 << 20,
        }
    }
}
