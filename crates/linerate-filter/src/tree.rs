//! What a filter says, as a tree.

use crate::Number;

/// An expression.
///
/// The depth is limited by [`DEPTH_MAX`](crate::DEPTH_MAX). The set of variants is complete: whoever compiles filters
/// to something else must know them all.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// Conjunction of at least two.
    All(Vec<Self>),
    /// Disjunction of at least two.
    Any(Vec<Self>),
    /// Comparison of two values.
    Compare(Comparison, Box<Self>, Box<Self>),
    /// True if the last field of the path is there. The path has at least one segment, and its last one is a field.
    Has(Path),
    /// True if the second, a path to a list or an object, has the first as its element or as the name of a field.
    In(Box<Self>, Path),
    /// True if the first is equal to one of the constants.
    InList(Box<Self>, Vec<Literal>),
    /// A constant.
    Literal(Literal),
    /// The number with the opposite sign.
    Negate(Box<Self>),
    /// The opposite of a truth value.
    Not(Box<Self>),
    /// A value of the payload.
    Path(Path),
    /// Characters of a string, elements of a list or fields of an object.
    Size(Box<Self>),
    /// Comparison of a string with a part that it may have.
    Text(TextTest, Box<Self>, Box<Self>),
}

/// The way from the whole payload to one of its values.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Path(pub Vec<Segment>);

/// A step of a path.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Segment {
    /// To the field of this name of an object.
    Field(Box<str>),
    /// To this element of a list, counted from 0.
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

/// How two values are compared.
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

/// Where a string must have its part.
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
    /// Returns the name of the function.
    pub fn name(self) -> &'static str {
        match self {
            Self::Contains => "contains",
            Self::EndsWith => "endsWith",
            Self::StartsWith => "startsWith",
        }
    }
}
