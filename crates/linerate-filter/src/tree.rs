//! The syntax tree of a filter.

use crate::Number;

/// An expression.
///
/// Its depth is at most [`DEPTH_MAX`](crate::DEPTH_MAX). The enum is exhaustive on purpose: code
/// that compiles filters to something else must handle every variant.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// A conjunction of at least two expressions.
    All(Vec<Self>),
    /// A disjunction of at least two expressions.
    Any(Vec<Self>),
    /// A comparison of two values.
    Compare(Comparison, Box<Self>, Box<Self>),
    /// True if the last field of the path exists. The path has at least one segment, and its last
    /// segment is a field.
    Has(Path),
    /// True if the list at the path contains the value, or if the object at the path has a field of
    /// that name.
    In(Box<Self>, Path),
    /// True if the value equals one of the constants.
    InList(Box<Self>, Vec<Literal>),
    /// A constant.
    Literal(Literal),
    /// The value, a number, with the opposite sign.
    Negate(Box<Self>),
    /// The opposite of the value, a Boolean.
    Not(Box<Self>),
    /// A value of the payload.
    Path(Path),
    /// The number of characters of a string, elements of a list or fields of an object.
    Size(Box<Self>),
    /// True if the first string contains, ends with or starts with the second.
    Text(TextTest, Box<Self>, Box<Self>),
}

/// The path from the whole payload to one of its values. An empty path names the whole payload.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Path(pub Vec<Segment>);

/// A step of a path.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Segment {
    /// The field of this name, in an object.
    Field(Box<str>),
    /// The element at this index of a list, from 0.
    Index(u64),
}

/// A constant.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// `true` or `false`.
    Bool(bool),
    /// `null`.
    Null,
    /// A number.
    Number(Number),
    /// A string.
    Text(Box<str>),
}

/// The operator of a comparison.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Comparison {
    /// `==`
    Equal,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `!=`
    NotEqual,
}

/// The place at which a string must contain another.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TextTest {
    /// Anywhere.
    Contains,
    /// At its end.
    EndsWith,
    /// At its beginning.
    StartsWith,
}

impl TextTest {
    /// Returns the name of the function in the filter language.
    pub fn name(self) -> &'static str {
        match self {
            Self::Contains => "contains",
            Self::EndsWith => "endsWith",
            Self::StartsWith => "startsWith",
        }
    }
}
