//! The `--compression` option.

use clap::ValueEnum;
use linerate::Deflate;

/// How messages are compressed (RFC 7692), if the peer supports compression.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Compression {
    /// Compress each message independently, so that no state is kept between messages.
    Each,
    /// Do not compress messages.
    Off,
    /// Compress messages, and let them refer back to earlier ones.
    On,
}

impl Compression {
    /// Returns the corresponding option of the library.
    pub(crate) fn deflate(self) -> Option<Deflate> {
        match self {
            Self::Each => {
                let mut deflate = Deflate::default();
                deflate.takeover = false;
                deflate.peer_takeover = false;
                Some(deflate)
            }
            Self::Off => None,
            Self::On => Some(Deflate::default()),
        }
    }
}
