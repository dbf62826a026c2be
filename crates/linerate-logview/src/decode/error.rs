//! Why a file cannot be decompressed.

use std::error::Error;
use std::fmt;

/// Why a file cannot be decompressed.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum DecodeError {
    /// The file is damaged.
    Corrupt {
        /// How many bytes of the compressed file were read.
        at: u64,
    },
    /// The file decompresses to far more bytes than any log does.
    Ratio {
        /// The highest ratio that is allowed.
        ratio_max: u64,
    },
    /// The decompressed file is too large.
    TooLarge {
        /// The limit in bytes.
        bytes_max: u64,
    },
    /// The file ends early.
    Truncated,
    /// The file is compressed in an unsupported way.
    Unsupported {
        /// The program that compresses in this way.
        by: &'static str,
    },
    /// The Zstandard window of the file is too large.
    Window {
        /// The limit in bytes.
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
                "the file decompresses to more than {ratio_max} times its size"
            ),
            Self::TooLarge { bytes_max } => {
                write!(f, "the file decompresses to more than {bytes_max} bytes")
            }
            Self::Truncated => f.write_str("the compressed file ends early"),
            Self::Unsupported { by } => write!(
                f,
                "the file is compressed with {by}; only gzip and zstd are supported"
            ),
            Self::Window { bytes_max } => write!(
                f,
                "the file needs a window of more than {bytes_max} bytes to decompress (zstd --long or --ultra)"
            ),
        }
    }
}
