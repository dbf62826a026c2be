//! The errors of the parser.

/// The place at which a text is not a valid filter, and the reason.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("column {column}: {problem}")]
pub struct ParseError {
    /// The position in the text, in characters from 1.
    pub column: usize,
    /// The reason.
    pub problem: Problem,
}

/// The reason why a text is not a valid filter.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// A function is called with the wrong arguments.
    #[error("{function} takes {expected}")]
    Arguments {
        /// The name of the function.
        function: &'static str,
        /// The arguments that it takes.
        expected: &'static str,
    },
    /// A character that cannot begin a token.
    #[error("unexpected character {0:?}")]
    Character(char),
    /// The text has no expression.
    #[error("filter is empty")]
    Empty,
    /// A string contains an escape that CEL does not have.
    #[error("unknown or incomplete escape in a string")]
    Escape,
    /// An unexpected token.
    #[error("found {found}, expected {expected}")]
    Expected {
        /// What is allowed at this place.
        expected: &'static str,
        /// What the text has instead.
        found: &'static str,
    },
    /// A function that filters do not support.
    #[error(
        "function {function} is not supported; use has, size, startsWith, endsWith or contains"
    )]
    Function {
        /// Its name, cut off after 32 bytes.
        function: String,
    },
    /// A number is malformed or out of range.
    #[error("invalid number: an integer must fit in 64 bits, and a decimal number in a double")]
    Number,
    /// A field has the name of a word that CEL reserves.
    #[error("{word} is a reserved word; write data[\"{word}\"] for a field of that name")]
    Reserved {
        /// The word.
        word: &'static str,
    },
    /// The expression is nested too deeply.
    #[error("nested deeper than {depth_max} levels")]
    TooDeep {
        /// The maximum depth.
        depth_max: usize,
    },
    /// The text is too long.
    #[error("filter has {bytes} bytes; at most {bytes_max} are allowed")]
    TooLong {
        /// The length of the text in bytes.
        bytes: usize,
        /// The maximum length in bytes.
        bytes_max: usize,
    },
    /// The expression has too many operators, fields and constants.
    #[error("filter has more than {nodes_max} nodes (operators, fields and constants)")]
    TooManyNodes {
        /// The maximum number of nodes.
        nodes_max: usize,
    },
    /// A string has no closing quote.
    #[error("string has no closing quote")]
    UnclosedString,
    /// A construct of CEL that is not part of the subset.
    #[error(
        "{construct} is not supported; filters compare fields and constants with == != < <= > >= in, \
         and combine the results with && || !"
    )]
    Unsupported {
        /// The name of the construct.
        construct: &'static str,
    },
}
