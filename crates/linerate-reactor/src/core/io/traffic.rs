//! What a worker has received and sent.

/// What a worker has received and sent, after the opening handshakes and including framing.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Traffic {
    /// The number of bytes read from sockets.
    pub bytes_received: u64,
    /// The number of bytes written to sockets.
    pub bytes_sent: u64,
    /// The number of messages received completely.
    pub messages_received: u64,
}

impl Traffic {
    /// Counts bytes that were written, or queued to be written.
    #[inline]
    pub(crate) const fn count_sent(&mut self, bytes: usize) {
        self.bytes_sent += bytes as u64;
    }

    /// Removes queued bytes that were not written from the count.
    pub(crate) const fn discount_unsent(&mut self, bytes: usize) {
        self.bytes_sent -= bytes as u64;
    }
}
