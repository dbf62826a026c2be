//! Why the text of a format is invalid.

use thiserror::Error;

/// Why the text of a format is invalid. Positions are in characters of that text, from 1.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum FormatError {
    /// Two fields follow each other with no text between them.
    #[error(
        "there is no text between {first} and {second} (character {at}), so the end of {first} is \
         ambiguous"
    )]
    Adjacent {
        /// The first field, as written.
        first: String,
        /// The second field, as written.
        second: String,
        /// Where the second field begins.
        at: usize,
    },
    /// The text is empty.
    #[error("the format is empty")]
    Empty,
    /// No field contains the time of the request.
    #[error("the format has no time: add $time_local, $time_iso8601, $msec or %t")]
    NoTime,
    /// The text contains no variable or directive.
    #[error("the format contains no variable such as $status and no directive such as %s")]
    NoVariable,
    /// The text is too long.
    #[error("the format is {bytes} bytes long; at most {bytes_max} are allowed")]
    TooLong {
        /// The length of the text in bytes.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// A quote or brace is never closed.
    #[error("the {opening} at character {at} is not closed")]
    Unclosed {
        /// The quote or brace.
        opening: char,
        /// The position of the quote or brace.
        at: usize,
    },
    /// A `%` directive does not exist in Apache httpd or HAProxy.
    #[error("unknown directive {directive} at character {at}")]
    UnknownDirective {
        /// The directive, as written.
        directive: String,
        /// Where it begins.
        at: usize,
    },
    /// The value of `escape=` is not `default`, `json` or `none`.
    #[error("escape={escape} at character {at} is not one of default, json and none")]
    UnknownEscape {
        /// The value.
        escape: String,
        /// Where it begins.
        at: usize,
    },
    /// A single word is not the name of a format.
    #[error("unknown format {name}; known names are {}", known.join(", "))]
    UnknownName {
        /// The word.
        name: String,
        /// The names of the known formats.
        known: Vec<String>,
    },
    /// A directive within `%{…}t` is unknown.
    #[error("unknown time directive %{letter} at character {at}")]
    UnknownTimeDirective {
        /// The letter after its `%`.
        letter: char,
        /// Where the `%{…}t` begins.
        at: usize,
    },
}
