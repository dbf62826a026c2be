//! Why a format that somebody gave is none.

use std::error::Error;
use std::fmt;

/// Why the text given as a format is none. Places are characters of that text, counted from 1.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum FormatError {
    /// Two fields with nothing between them.
    Adjacent {
        /// The first, as written.
        first: String,
        /// The second.
        second: String,
        /// Where the second begins.
        at: usize,
    },
    /// There is nothing in it.
    Empty,
    /// No field says when the request was.
    NoTime,
    /// There are only words.
    NoVariable,
    /// It is longer than a format may be.
    TooLong {
        /// Its bytes.
        bytes: usize,
        /// The most that are taken.
        bytes_max: usize,
    },
    /// A quote or brace that is never closed.
    Unclosed {
        /// The quote or brace.
        opening: char,
        /// Where it stands.
        at: usize,
    },
    /// A `%` directive that Apache httpd doesn't have.
    UnknownDirective {
        /// As written.
        directive: String,
        /// Where it begins.
        at: usize,
    },
    /// An `escape=` other than `default`, `json` and `none`.
    UnknownEscape {
        /// What follows `escape=`.
        escape: String,
        /// Where it begins.
        at: usize,
    },
    /// A word that names no format.
    UnknownName {
        /// The word.
        name: String,
    },
    /// A directive within `%{…}t` that is not understood.
    UnknownTimeDirective {
        /// The letter after its `%`.
        letter: char,
        /// Where the `%{…}t` begins.
        at: usize,
    },
}

impl Error for FormatError {}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Adjacent { first, second, at } => write!(
                f,
                "nothing stands between {first} and {second} (character {at}), so nobody can tell where {first} ends"
            ),
            Self::Empty => f.write_str("the format is empty"),
            Self::NoTime => f.write_str(
                "the format has no time: it needs $time_local, $time_iso8601, $msec or %t",
            ),
            Self::NoVariable => f.write_str(
                "the format has neither variables such as $status nor directives such as %s",
            ),
            Self::TooLong { bytes, bytes_max } => {
                write!(f, "the format has {bytes} bytes, more than {bytes_max}")
            }
            Self::Unclosed { opening, at } => {
                write!(f, "the {opening} at character {at} is never closed")
            }
            Self::UnknownDirective { directive, at } => {
                write!(f, "the directive {directive} at character {at} is unknown")
            }
            Self::UnknownEscape { escape, at } => write!(
                f,
                "escape={escape} at character {at} is neither default nor json nor none"
            ),
            Self::UnknownName { name } => write!(
                f,
                "{name} is no format: known names are {}",
                super::NAMES.join(", ")
            ),
            Self::UnknownTimeDirective { letter, at } => {
                write!(f, "%{letter} within the time at character {at} is unknown")
            }
        }
    }
}
