//! Limits by name.

use std::fmt;

/// A limit with its effective value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Limit {
    /// The path of its key in the configuration; fixed limits have a name of the same form.
    pub key: String,
    /// The effective value.
    pub value: u64,
    /// The unit of the value.
    pub unit: Unit,
    /// What is limited.
    pub meaning: String,
}

/// The unit of a limit.
///
/// The list is complete: the names of all limits end in one of these units.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// A number of things, as named by the key.
    Count,
    /// Milliseconds.
    Milliseconds,
    /// A number of things per second.
    PerSecond,
    /// Seconds.
    Seconds,
}

impl Unit {
    /// Returns the unit in which the name of a key ends.
    pub(crate) fn of_key(name: &str) -> Self {
        let ends = |end: &str| name.ends_with(end);
        match () {
            () if ends("_bytes_max") || name == "bytes_max" => Self::Bytes,
            () if ends("_per_second_max") || ends("_per_second_min") => Self::PerSecond,
            () if ends("_ms") => Self::Milliseconds,
            () if ends("_s") => Self::Seconds,
            () => Self::Count,
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Bytes => "bytes",
            Self::Count => "",
            Self::Milliseconds => "ms",
            Self::PerSecond => "per second",
            Self::Seconds => "s",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Unit;

    #[test]
    fn keys_end_in_their_units() {
        for (key, unit) in [
            ("message_bytes_max", Unit::Bytes),
            ("bytes_max", Unit::Bytes),
            ("accepts_per_second_max", Unit::PerSecond),
            ("request_timeout_ms", Unit::Milliseconds),
            ("window_s", Unit::Seconds),
            ("channels_max", Unit::Count),
            ("history_size", Unit::Count),
        ] {
            assert_eq!(Unit::of_key(key), unit, "{key}");
        }
    }
}
