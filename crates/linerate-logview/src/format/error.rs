//! Why the text of a format is invalid.

use std::error::Error;
use std::fmt;

/// Why the text of a format is invalid. Positions are in characters of that text, from 1.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum FormatError {
    /// Two fields follow each other with no text between them.
    Adjacent {
        /// The first field, as written.
        first: String,
        /// The second field, as written.
        second: String,
        /// Where the second field begins.
        at: usize,
    },
    /// The text is empty.
    Empty,
    /// No field contains the time of the request.
    NoTime,
    /// The text contains no variable or directive.
    NoVariable,
    /// The text is too long.
    TooLong {
        /// The length of the text in bytes.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// A quote or brace is never closed.
    Unclosed {
        /// The quote or brace.
        opening: char,
        /// The position of the quote or brace.
        at: usize,
    },
    /// A `%` directive does not exist in Apache httpd.
    UnknownDirective {
        /// The directive, as written.
        directive: String,
        /// Where it begins.
        at: usize,
    },
    /// The value of `escape=` is not `default`, `json` or `none`.
    UnknownEscape {
        /// The value.
        escape: String,
        /// Where it begins.
        at: usize,
    },
    /// A single word is not the name of a format.
    UnknownName {
        /// The word.
        name: String,
        /// The names of the known formats.
        known: Vec<String>,
    },
    /// A directive within `%{…}t` is unknown.
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
                "there is no text between {first} and {second} (character {at}), so the end of {first} is ambiguous"
            ),
            Self::Empty => f.write_str("the format is empty"),
            Self::NoTime => {
                f.write_str("the format has no time: add $time_local, $time_iso8601, $msec or %t")
            }
            Self::NoVariable => f.write_str(
                "the format contains no variable such as $status and no directive such as %s",
            ),
            Self::TooLong { bytes, bytes_max } => {
                write!(
                    f,
                    "the format is {bytes} bytes long; at most {bytes_max} are allowed"
                )
            }
            Self::Unclosed { opening, at } => {
                write!(f, "the {opening} at character {at} is not closed")
            }
            Self::UnknownDirective { directive, at } => {
                write!(f, "unknown directive {directive} at character {at}")
            }
            Self::UnknownEscape { escape, at } => write!(
                f,
                "escape={escape} at character {at} is not one of default, json and none"
            ),
            Self::UnknownName { name, known } => {
                write!(
                    f,
                    "unknown format {name}; known names are {}",
                    known.join(", ")
                )
            }
            Self::UnknownTimeDirective { letter, at } => {
                write!(f, "unknown time directive %{letter} at character {at}")
            }
        }
    }
}
