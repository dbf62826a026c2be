//! `--compression`: whether messages are compressed, and how.

use clap::ValueEnum;
use linerate::Deflate;

/// How messages are compressed (RFC 7692), if the other side can do it.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Compression {
    /// Each message for itself, so that nothing is kept between two.
    Each,
    /// Not at all.
    Off,
    /// Messages refer back to earlier ones.
    On,
}

impl Compression {
    /// Returns the option of the library.
    pub(crate) fn deflate(self) -> Option<Deflate> {
        match self {
            Self::Each => Some(Deflate {
                takeover: false,
                peer_takeover: false,
                ..Deflate::default()
            }),
            Self::Off => None,
            Self::On => Some(Deflate::default()),
        }
    }
}
