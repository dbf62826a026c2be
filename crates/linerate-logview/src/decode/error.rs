//! Why a file can't be decompressed.

use std::error::Error;
use std::fmt;

/// Why a file can't be decompressed.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum DecodeError {
    /// Something in it is damaged.
    Corrupt {
        /// How many bytes of the compressed file were read.
        at: u64,
    },
    /// It has far more bytes once it is decompressed than any log.
    Ratio {
        /// The most times its size that are taken.
        ratio_max: u64,
    },
    /// It is larger, once it is decompressed, than a file may be.
    TooLarge {
        /// The most bytes that are taken.
        bytes_max: u64,
    },
    /// It ends early.
    Truncated,
    /// It is compressed in another way.
    Unsupported {
        /// The program that does it.
        by: &'static str,
    },
    /// Its window of Zstandard is too large.
    Window {
        /// The largest that is taken.
        bytes_max: usize,
    },
}

impl Error for DecodeError {}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Corrupt { at } => {
                write!(f, "the compressed file is damaged at or before byte {at}")
            }
            Self::Ratio { ratio_max } => write!(
                f,
                "the file has more than {ratio_max} times its size once it is decompressed"
            ),
            Self::TooLarge { bytes_max } => {
                write!(
                    f,
                    "the file has more than {bytes_max} bytes once it is decompressed"
                )
            }
            Self::Truncated => f.write_str("the compressed file ends early"),
            Self::Unsupported { by } => write!(
                f,
                "the file is compressed by {by}, and only gzip and zstd are understood"
            ),
            Self::Window { bytes_max } => write!(
                f,
                "the file needs a window of more than {bytes_max} bytes to decompress (zstd --long or --ultra)"
            ),
        }
    }
}
