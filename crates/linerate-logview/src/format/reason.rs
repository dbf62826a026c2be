//! Why a line is not a request.

/// Why a line is not a [`Record`](super::Record).
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The line does not begin with an address or host name.
    #[error("the line does not begin with an address")]
    BadAddress,
    /// The bytes are neither a number below 2^64 nor `-`.
    #[error("the byte count is not a number")]
    BadBytes,
    /// The duration is not a number.
    #[error("the duration is not a number")]
    BadDuration,
    /// The line is not a JSON object.
    #[error("the line is not a JSON object")]
    BadJson,
    /// The status is not three digits.
    #[error("the status is not three digits")]
    BadStatus,
    /// The timestamp (`[22/Jan/2021:01:47:05 +0000]`, or whatever the format prescribes) is
    /// missing, or is not a time since 1970.
    #[error("the line has no valid timestamp")]
    BadTimestamp,
    /// The line ends before its last field.
    #[error("the line ends before its last field")]
    MissingField,
    /// The line is longer than `line_bytes_max`.
    #[error("the line is too long")]
    TooLong,
    /// The fields are not those of the format, or in a different order.
    #[error("the fields are not those of the format")]
    UnknownFormat,
}

impl Reason {
    /// Returns the name under which the reason is reported, such as `bad timestamp`.
    pub fn name(self) -> &'static str {
        match self {
            Self::BadAddress => "bad address",
            Self::BadBytes => "bad bytes",
            Self::BadDuration => "bad duration",
            Self::BadJson => "bad JSON",
            Self::BadStatus => "bad status",
            Self::BadTimestamp => "bad timestamp",
            Self::MissingField => "missing field",
            Self::TooLong => "too long",
            Self::UnknownFormat => "unknown format",
        }
    }
}
