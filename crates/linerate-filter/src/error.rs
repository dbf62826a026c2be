//! Why a text is not a filter.

/// Where a text stops being a filter, and why.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("column {column}: {problem}")]
pub struct ParseError {
    /// The place in characters, counted from 1.
    pub column: usize,
    /// What is wrong there.
    pub problem: Problem,
}

/// What is wrong with a text.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// A function with another number of arguments.
    #[error("{function} takes {expected}")]
    Arguments {
        /// Its name.
        function: &'static str,
        /// What it takes.
        expected: &'static str,
    },
    /// A character that begins nothing.
    #[error("unexpected character {0:?}")]
    Character(char),
    /// No expression at all.
    #[error("filter is empty")]
    Empty,
    /// An escape in a string that CEL does not have.
    #[error("unknown or incomplete escape in a string")]
    Escape,
    /// Something else than what must follow.
    #[error("found {found}, expected {expected}")]
    Expected {
        /// What may stand there.
        expected: &'static str,
        /// What does.
        found: &'static str,
    },
    /// A function that filters do not have.
    #[error(
        "function {function} is not supported; supported are has, size, startsWith, endsWith and contains"
    )]
    Function {
        /// Its name, shortened if it is long.
        function: String,
    },
    /// A number that is out of range or malformed.
    #[error("invalid number: integers have 64 bits, decimal numbers are finite")]
    Number,
    /// A word that CEL reserves.
    #[error("{word} is a reserved word; write data[\"{word}\"] for a field of that name")]
    Reserved {
        /// The word.
        word: &'static str,
    },
    /// Nesting beyond the limit.
    #[error("nested deeper than {depth_max} levels")]
    TooDeep {
        /// How deep expressions may be nested.
        depth_max: usize,
    },
    /// More text than allowed.
    #[error("filter has {bytes} bytes; at most {bytes_max} are allowed")]
    TooLong {
        /// How many bytes there are.
        bytes: usize,
        /// How many there may be.
        bytes_max: usize,
    },
    /// More operators, fields and constants than allowed.
    #[error("filter has more than {nodes_max} nodes (operators, fields and constants)")]
    TooManyNodes {
        /// How many nodes there may be.
        nodes_max: usize,
    },
    /// A string without its closing quote.
    #[error("string has no closing quote")]
    UnclosedString,
    /// A construct of CEL that is not part of the subset.
    #[error(
        "{construct} is not supported; filters compare fields and constants with == != < <= > >= in, \
         and combine the results with && || !"
    )]
    Unsupported {
        /// Its name.
        construct: &'static str,
    },
}
