//! Values during the evaluation of a filter, and how they compare.

use std::cmp::Ordering;

use crate::{
    Number,
    text::Text,
    tree::{Comparison, Literal, TextTest},
};

/// A value, or an error.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'v> {
    Bool(bool),
    /// The error of the language: a field is missing, or a value does not support an operation.
    Error,
    /// A list, as written in the payload.
    List(&'v [u8]),
    /// An object, as written in the payload.
    Map(&'v [u8]),
    Null,
    Number(Number),
    Text(Text<'v>),
}

impl<'v> Value<'v> {
    #[inline]
    pub(crate) fn of(literal: &'v Literal) -> Self {
        match literal {
            Literal::Bool(bool) => Self::Bool(*bool),
            Literal::Null => Self::Null,
            Literal::Number(number) => Self::Number(*number),
            Literal::Text(text) => Self::Text(Text::plain(text)),
        }
    }

    /// Returns whether two values are equal, or `None` if comparing them is an error. Values of
    /// different types are not equal.
    #[inline]
    pub(crate) fn equals(&self, other: &Self) -> Option<bool> {
        match (self, other) {
            (Self::Error, _) | (_, Self::Error) => None,
            // Comparing lists or objects would take longer than reading them.
            (Self::List(_), Self::List(_)) | (Self::Map(_), Self::Map(_)) => None,
            (Self::Bool(one), Self::Bool(other)) => Some(one == other),
            (Self::Null, Self::Null) => Some(true),
            (Self::Number(one), Self::Number(other)) => Some(one == other),
            (Self::Text(one), Self::Text(other)) => Some(one == other),
            _ => Some(false),
        }
    }

    pub(crate) fn compare(&self, comparison: Comparison, other: &Self) -> Value<'static> {
        Self::truth(self.holds(comparison, other))
    }

    /// Returns whether a comparison holds, or `None` if it is an error.
    #[inline]
    pub(crate) fn holds(&self, comparison: Comparison, other: &Self) -> Option<bool> {
        let ordering = || match (self, other) {
            (Self::Bool(one), Self::Bool(other)) => Some(one.cmp(other)),
            (Self::Number(one), Self::Number(other)) => one.partial_cmp(other),
            (Self::Text(one), Self::Text(other)) => one.partial_cmp(other),
            _ => None,
        };
        match comparison {
            Comparison::Equal => self.equals(other),
            Comparison::Greater => ordering().map(Ordering::is_gt),
            Comparison::GreaterOrEqual => ordering().map(Ordering::is_ge),
            Comparison::Less => ordering().map(Ordering::is_lt),
            Comparison::LessOrEqual => ordering().map(Ordering::is_le),
            Comparison::NotEqual => self.equals(other).map(|is_equal| !is_equal),
        }
    }

    pub(crate) fn is_in_list(self, list: &[Literal]) -> Self {
        match self {
            Self::Error => Self::Error,
            value => {
                let is_equal = |literal| value.equals(&Value::of(literal)) == Some(true);
                Self::Bool(list.iter().any(is_equal))
            }
        }
    }

    pub(crate) fn negated(self) -> Self {
        match self {
            Self::Number(number) => number.negated().map_or(Self::Error, Self::Number),
            _ => Self::Error,
        }
    }

    pub(crate) fn inverted(self) -> Self {
        match self {
            Self::Bool(bool) => Self::Bool(!bool),
            _ => Self::Error,
        }
    }

    pub(crate) fn test(self, test: TextTest, part: Self) -> Value<'static> {
        match (self, part) {
            (Self::Text(text), Self::Text(part)) => Value::Bool(match test {
                TextTest::Contains => text.contains(part),
                TextTest::EndsWith => text.ends_with(part),
                TextTest::StartsWith => text.starts_with(part),
            }),
            _ => Value::Error,
        }
    }

    /// Combines the results of two operands of `&&` or `||`. If either is `decisive`, so is the
    /// result. Otherwise, if either is an error, the result is an error.
    pub(crate) fn combined(self, other: Self, decisive: bool) -> Self {
        match (self, other) {
            (Self::Bool(bool), _) | (_, Self::Bool(bool)) if bool == decisive => {
                Self::Bool(decisive)
            }
            (Self::Bool(_), Self::Bool(_)) => Self::Bool(!decisive),
            _ => Self::Error,
        }
    }

    pub(crate) fn is(self, bool: bool) -> bool {
        matches!(self, Self::Bool(own) if own == bool)
    }

    pub(crate) fn truth(result: Option<bool>) -> Value<'static> {
        result.map_or(Value::Error, Value::Bool)
    }
}
