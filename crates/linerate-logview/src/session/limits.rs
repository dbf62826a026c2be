//! The limits of one session.

use std::time::Duration;

use crate::{aggregate, decode};

/// The limits of one session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// The most bytes of all files together, 64 GiB.
    pub upload_bytes_max: u64,
    /// The most files, 256.
    pub files_max: usize,
    /// How many bytes the client may send beyond the last acknowledgement, 64 MiB: four slices of
    /// 16 MiB, the size at which browsers are fastest. The server need not hold them; they may wait
    /// in the network.
    pub window_bytes: u64,
    /// The longest text message, 64 KiB: enough for 256 files with names of usual length.
    pub text_bytes_max: usize,
    /// The longest file name, 1,024 bytes: enough for 255 UTF-16 units, the limit of file systems.
    pub name_bytes_max: usize,
    /// How long the client may be silent before it has sent everything, 60 s.
    pub silence_max: Duration,
    /// How long the figures are kept while the client asks nothing about them, 600 s.
    pub idle_max: Duration,
    /// The limits of decompression.
    pub decode: decode::Limits,
    /// The limits of the figures. Lines are kept only if the client asks for them in `start`.
    pub aggregate: aggregate::Limits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            upload_bytes_max: 64 << 30,
            files_max: 256,
            window_bytes: 64 << 20,
            text_bytes_max: 64 << 10,
            name_bytes_max: 1_024,
            silence_max: Duration::from_secs(60),
            idle_max: Duration::from_secs(600),
            decode: decode::Limits::default(),
            aggregate: aggregate::Limits {
                line_bytes_sum_max: 256 << 20,
                ..aggregate::Limits::default()
            },
        }
    }
}
