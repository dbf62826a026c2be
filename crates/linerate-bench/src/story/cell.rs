//! What is measured: a number of subscribers and their settings.

/// The subscribers of a server and their settings.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// Number of subscribers.
    pub subscribers: u32,
    /// Number of sources from which messages come in turn. Each subscriber asks for one of them.
    pub sources: u32,
    /// Interval of the batches in milliseconds; 0 means no batches.
    pub batch_ms: u32,
    /// Number of additional subscribers that read nothing. With any number, even 0, the sockets of
    /// all of these are filled before a trial counts, so that different numbers can be compared.
    pub stalled: Option<u32>,
}
