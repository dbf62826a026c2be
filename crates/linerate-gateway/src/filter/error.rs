//! Why an expression can't be a filter.

/// Why an expression can't be a filter.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FilterError {
    /// There is nothing in it.
    #[error("filter is empty")]
    Empty,
    /// A function that filters don't have.
    #[error("filters have no function {function:?}; they have {known}")]
    Function {
        /// Its name.
        function: String,
        /// Those that there are.
        known: String,
    },
    /// A macro inside of another one.
    #[error("macros in a filter can't be nested")]
    NestedMacros,
    /// No CEL.
    #[error("filter is no CEL, column {column}: {message}")]
    Syntax {
        /// Where, counted from 1.
        column: usize,
        /// What is wrong there.
        message: String,
    },
    /// Brackets in brackets.
    #[error("filter has brackets {depth} deep; at most {depth_max} are allowed")]
    TooDeep {
        /// How deep they are nested.
        depth: usize,
        /// How deep they may be nested.
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
    /// More nodes than allowed.
    #[error("filter has {nodes} nodes; at most {nodes_max} are allowed")]
    TooManyNodes {
        /// How many nodes there are.
        nodes: usize,
        /// How many there may be.
        nodes_max: usize,
    },
    /// `map` or `filter`, which make lists of lists.
    #[error("filters have the macros all, exists, exists_one and has, but neither map nor filter")]
    UnknownMacro,
    /// Something that costs as much as the whole publication, each time that a macro goes round.
    #[error("inside of a macro, a filter can use fields by their names, but not all of data")]
    WholeInMacro,
}
