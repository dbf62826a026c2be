//! Why a file cannot be decompressed.

use thiserror::Error;

/// Why a file cannot be decompressed.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum DecodeError {
    /// The file is damaged.
    #[error("the compressed file is damaged at or before byte {at}")]
    Corrupt {
        /// How many bytes of the compressed file were read.
        at: u64,
    },
    /// The file decompresses to far more bytes than any log does.
    #[error("the file decompresses to more than {ratio_max} times its size")]
    Ratio {
        /// The highest ratio that is allowed.
        ratio_max: u64,
    },
    /// The decompressed file is too large.
    #[error("the file decompresses to more than {bytes_max} bytes")]
    TooLarge {
        /// The limit in bytes.
        bytes_max: u64,
    },
    /// The file ends early.
    #[error("the compressed file ends early")]
    Truncated,
    /// The file is compressed in an unsupported way.
    #[error("the file is compressed with {by}; only gzip and zstd are supported")]
    Unsupported {
        /// The program that compresses in this way.
        by: &'static str,
    },
    /// The Zstandard window of the file is too large.
    #[error(
        "the file needs a window of more than {bytes_max} bytes to decompress (zstd --long or \
         --ultra)"
    )]
    Window {
        /// The limit in bytes.
        bytes_max: usize,
    },
}
