//! Converts filters to conditions on fields: checks types and pushes negations down to comparisons.

use std::collections::BTreeSet;

use linerate_filter::{
    Limits, Number, parse_with_columns,
    tree::{Comparison, Literal, Node, Path, Segment},
};

use super::constants::Constants;
use super::encoding;
use super::error::{FilterError, FilterProblem, QueryError};
use super::field::Field;
use super::ranges::Ranges;
use super::values::Values;

/// The longest filter in bytes: enough for any displayed value, which has at most 1,000 characters,
/// each of them escaped.
const FILTER_BYTES_MAX: usize = 8 << 10;
/// The most nodes of a filter: enough for [`CONDITIONS_MAX`] comparisons with brackets around each.
const FILTER_NODES_MAX: usize = 512;
/// The most comparisons in all filters of a query: more than a person would click together.
pub(super) const CONDITIONS_MAX: usize = 64;

/// A condition on requests.
///
/// Conditions contain no negation, because a missing field makes both a comparison and its opposite
/// false.
#[derive(Clone, Debug)]
pub(crate) enum Condition {
    /// All of these are true.
    All(Vec<Self>),
    /// Any of these is true.
    Any(Vec<Self>),
    /// True for all requests, or for none.
    Constant(bool),
    /// The field is in these ranges, in the encoding of its column.
    Number(Field, Ranges),
    /// The field matches `values`, or does not match if `negated`.
    Text {
        field: Field,
        values: Values,
        negated: bool,
    },
}

/// Returns the condition that all filters are true.
pub(super) fn of_filters(filters: &[String]) -> Result<Condition, QueryError> {
    let limits = Limits::new(FILTER_BYTES_MAX, FILTER_NODES_MAX);
    let mut all = Vec::new();
    let mut conditions = 0;
    for (filter, text) in filters.iter().enumerate() {
        let at = |column, problem| {
            QueryError::Filter(FilterError {
                filter,
                column,
                problem,
            })
        };
        let (root, columns) = parse_with_columns(text, &limits)
            .map_err(|error| at(error.column, FilterProblem::Syntax(error.problem)))?;
        let mut checker = Checker {
            columns: &columns,
            conditions,
        };
        let condition = checker.check(&root, false);
        all.push(condition.map_err(|(column, problem)| at(column, problem))?);
        conditions = checker.conditions;
    }
    match conditions > CONDITIONS_MAX {
        true => Err(QueryError::TooManyConditions {
            conditions,
            conditions_max: CONDITIONS_MAX,
        }),
        false => Ok(Condition::All(all)),
    }
}

impl Condition {
    /// Returns how many comparisons a condition without others in it counts for.
    fn comparisons(&self) -> usize {
        match self {
            Self::Text {
                values: Values::OneOf(constants),
                ..
            } => constants.comparisons(),
            _ => 1,
        }
    }

    /// Adds the fields that the condition names to `fields`.
    pub(super) fn name(&self, fields: &mut BTreeSet<Field>) {
        match self {
            Self::All(conditions) | Self::Any(conditions) => {
                conditions.iter().for_each(|it| it.name(fields));
            }
            Self::Constant(_) => {}
            Self::Number(field, _) | Self::Text { field, .. } => {
                fields.insert(*field);
            }
        }
    }
}

/// A problem and its column.
type ColumnProblem = (usize, FilterProblem);

/// Walks through a filter from left to right.
struct Checker<'f> {
    /// The columns of the constants and fields that the walk has not reached yet.
    columns: &'f [usize],
    /// The number of comparisons so far.
    conditions: usize,
}

/// One side of a comparison, and the column where it begins.
enum Operand<'f> {
    Constant(usize, &'f Literal),
    Field(usize, Field),
    Size(usize, Field),
}

impl Operand<'_> {
    fn column(&self) -> usize {
        let (Self::Constant(column, _) | Self::Field(column, _) | Self::Size(column, _)) = self;
        *column
    }
}

impl Checker<'_> {
    fn check(&mut self, node: &Node, negated: bool) -> Result<Condition, ColumnProblem> {
        match node {
            Node::All(nodes) => Ok(match negated {
                false => Condition::All(self.check_each(nodes, negated)?),
                true => Condition::Any(self.check_each(nodes, negated)?),
            }),
            Node::Any(nodes) => Ok(match negated {
                false => Condition::Any(self.check_each(nodes, negated)?),
                true => Condition::All(self.check_each(nodes, negated)?),
            }),
            Node::Not(node) => self.check(node, !negated),
            node => {
                let condition = self.check_comparison(node, negated)?;
                self.conditions += condition.comparisons();
                Ok(condition)
            }
        }
    }

    fn check_each(
        &mut self,
        nodes: &[Node],
        negated: bool,
    ) -> Result<Vec<Condition>, ColumnProblem> {
        let nodes = nodes.iter();
        nodes.map(|node| self.check(node, negated)).collect()
    }

    fn check_comparison(&mut self, node: &Node, negated: bool) -> Result<Condition, ColumnProblem> {
        match node {
            Node::Compare(comparison, left, right) => {
                let (left, right) = (self.operand(left)?, self.operand(right)?);
                compare(*comparison, left, right, negated)
            }
            Node::Has(path) => match self.field(path)? {
                (_, Field::DurationUs) => Ok(Condition::Number(
                    Field::DurationUs,
                    encoding::durations(!negated),
                )),
                (column, field) => Err((column, FilterProblem::AlwaysThere { field })),
            },
            Node::In(value, _) => {
                self.operand(value)?;
                Err(self.unsupported("in with something other than a list of constants"))
            }
            Node::InList(value, list) => {
                let value = self.operand(value)?;
                is_in(value, list, negated)
            }
            Node::Literal(Literal::Bool(is_true)) => {
                self.column();
                Ok(Condition::Constant(*is_true != negated))
            }
            Node::Path(path) => {
                let (column, field) = self.field(path)?;
                Err((column, FilterProblem::NotCompared { field }))
            }
            Node::Text(test, text, part) => {
                let (text, part) = (self.operand(text)?, self.operand(part)?);
                match (&text, &part) {
                    (Operand::Field(column, field), Operand::Constant(_, part)) => {
                        let column = *column;
                        let values = Values::Part(*test, of_text(column, *field, part)?.into());
                        Ok(text_condition(*field, values, negated))
                    }
                    _ => {
                        let construct = "a function call other than on a field with a constant";
                        Err((text.column(), FilterProblem::Unsupported { construct }))
                    }
                }
            }
            _ => Err(self.unsupported("a value that is not compared")),
        }
    }

    fn operand<'n>(&mut self, node: &'n Node) -> Result<Operand<'n>, ColumnProblem> {
        match node {
            Node::Literal(literal) => Ok(Operand::Constant(self.column(), literal)),
            Node::Path(path) => {
                let (column, field) = self.field(path)?;
                Ok(Operand::Field(column, field))
            }
            Node::Size(of) => match self.operand(of)? {
                Operand::Field(column, field) if !field.is_number() => {
                    Ok(Operand::Size(column, field))
                }
                Operand::Field(column, field) => Err((column, FilterProblem::NoSize { field })),
                other => {
                    let construct = "the size of something other than a field";
                    Err((other.column(), FilterProblem::Unsupported { construct }))
                }
            },
            Node::Negate(_) => Err(self.unsupported("negating a field")),
            _ => Err(self.unsupported("a comparison of truth values")),
        }
    }

    /// Returns the field that a path refers to, and its column.
    fn field(&mut self, Path(path): &Path) -> Result<(usize, Field), ColumnProblem> {
        let column = self.column();
        let (name, within) = match &**path {
            [Segment::Field(name), within @ ..] => (&**name, within),
            _ => ("data", &[][..]),
        };
        let field = Field::find(name).ok_or_else(|| (column, FilterProblem::unknown(name)))?;
        match within.is_empty() {
            true => Ok((column, field)),
            false => Err((column, FilterProblem::NoFields { field })),
        }
    }

    fn unsupported(&mut self, construct: &'static str) -> ColumnProblem {
        (self.column(), FilterProblem::Unsupported { construct })
    }

    /// Returns the column of the next constant or field.
    fn column(&mut self) -> usize {
        let Some((column, rest)) = self.columns.split_first() else {
            return 1;
        };
        self.columns = rest;
        *column
    }
}

fn compare(
    comparison: Comparison,
    left: Operand<'_>,
    right: Operand<'_>,
    negated: bool,
) -> Result<Condition, ColumnProblem> {
    // For a field that exists, either a comparison or its opposite is true.
    let comparison = match negated {
        true => opposite(comparison),
        false => comparison,
    };
    let (comparison, value, constant) = match (left, right) {
        (value, Operand::Constant(_, constant)) => (comparison, value, constant),
        (Operand::Constant(_, constant), value) => (mirrored(comparison), value, constant),
        (left, _) => {
            let construct = "a comparison of two fields";
            return Err((left.column(), FilterProblem::Unsupported { construct }));
        }
    };
    match value {
        Operand::Constant(column, _) => {
            let construct = "a comparison of two constants";
            Err((column, FilterProblem::Unsupported { construct }))
        }
        Operand::Field(column, field) if field.is_number() => {
            let number = of_number(column, field, constant)?;
            let numbers = possible(column, field, of_column(field, comparison, number))?;
            Ok(Condition::Number(field, numbers))
        }
        Operand::Field(column, field) => {
            let text = of_text(column, field, constant)?;
            Ok(match comparison {
                Comparison::Equal | Comparison::NotEqual => {
                    let values = Values::OneOf(constants(column, field, [text])?);
                    text_condition(field, values, comparison == Comparison::NotEqual)
                }
                comparison => {
                    text_condition(field, Values::Ordered(comparison, text.into()), false)
                }
            })
        }
        Operand::Size(column, field) => match constant {
            Literal::Number(number) => {
                let all = (0, i128::from(u64::MAX));
                let sizes = Ranges::of(comparison, *number, all, |size| size as u64);
                Ok(text_condition(field, Values::Size(sizes), false))
            }
            other => Err((
                column,
                FilterProblem::SizeType {
                    field,
                    found: kind(other),
                },
            )),
        },
    }
}

fn is_in(value: Operand<'_>, list: &[Literal], negated: bool) -> Result<Condition, ColumnProblem> {
    match value {
        Operand::Field(column, field) if field.is_number() => {
            let equal = list.iter().map(|literal| {
                let number = of_number(column, field, literal)?;
                possible(column, field, of_column(field, Comparison::Equal, number))
            });
            // Combine them all at once, because a list may have thousands of numbers.
            let equal = Ranges::of_all(equal.collect::<Result<Vec<_>, _>>()?);
            let ranges = match negated {
                false => equal,
                true => of_column(field, Comparison::GreaterOrEqual, LOWEST)
                    .intersected(&equal.inverted()),
            };
            Ok(Condition::Number(field, ranges))
        }
        Operand::Field(column, field) => {
            let texts = list.iter().map(|it| of_text(column, field, it));
            let texts = texts.collect::<Result<Vec<_>, _>>()?;
            let values = Values::OneOf(constants(column, field, texts)?);
            Ok(text_condition(field, values, negated))
        }
        other => {
            let construct = "in with something other than a field on its left";
            Err((other.column(), FilterProblem::Unsupported { construct }))
        }
    }
}

/// The lowest number: no field has a value below it.
const LOWEST: Number = Number::Int(i64::MIN);

/// Returns the numbers of the field's column for which the comparison is true.
fn of_column(field: Field, comparison: Comparison, than: Number) -> Ranges {
    let (values, number) = encoding::numbers(field);
    Ranges::of(comparison, than, values, number)
}

/// Returns the numbers, or an error if there are none, because a filter that never matches is a
/// mistake.
fn possible(column: usize, field: Field, numbers: Ranges) -> Result<Ranges, ColumnProblem> {
    match numbers.is_empty() {
        true => Err((column, FilterProblem::NeverTrue { field })),
        false => Ok(numbers),
    }
}

fn constants<'t>(
    column: usize,
    field: Field,
    texts: impl IntoIterator<Item = &'t str>,
) -> Result<Constants, ColumnProblem> {
    Constants::parse(field, texts).map_err(|problem| (column, problem))
}

fn text_condition(field: Field, values: Values, negated: bool) -> Condition {
    Condition::Text {
        field,
        values,
        negated,
    }
}

fn of_number(column: usize, field: Field, literal: &Literal) -> Result<Number, ColumnProblem> {
    match literal {
        Literal::Number(number) => Ok(*number),
        other => Err(of_type(column, field, other)),
    }
}

fn of_text(column: usize, field: Field, literal: &Literal) -> Result<&str, ColumnProblem> {
    match literal {
        Literal::Text(text) if !field.is_number() => Ok(text),
        other => Err(of_type(column, field, other)),
    }
}

fn of_type(column: usize, field: Field, literal: &Literal) -> ColumnProblem {
    let found = kind(literal);
    (column, FilterProblem::Type { field, found })
}

fn kind(literal: &Literal) -> &'static str {
    match literal {
        Literal::Bool(_) => "a truth value",
        Literal::Null => "null",
        Literal::Number(_) => "a number",
        Literal::Text(_) => "a string",
    }
}

fn opposite(comparison: Comparison) -> Comparison {
    match comparison {
        Comparison::Equal => Comparison::NotEqual,
        Comparison::Greater => Comparison::LessOrEqual,
        Comparison::GreaterOrEqual => Comparison::Less,
        Comparison::Less => Comparison::GreaterOrEqual,
        Comparison::LessOrEqual => Comparison::Greater,
        Comparison::NotEqual => Comparison::Equal,
    }
}

/// Returns the comparison with its operands swapped.
fn mirrored(comparison: Comparison) -> Comparison {
    match comparison {
        Comparison::Greater => Comparison::Less,
        Comparison::GreaterOrEqual => Comparison::LessOrEqual,
        Comparison::Less => Comparison::Greater,
        Comparison::LessOrEqual => Comparison::GreaterOrEqual,
        same => same,
    }
}

#[cfg(test)]
mod tests {
    use super::{CONDITIONS_MAX, FILTER_BYTES_MAX, QueryError, of_filters};

    fn error(filter: &str) -> String {
        of_filters(&[filter.to_owned()]).unwrap_err().to_string()
    }

    #[test]
    fn errors_contain_the_field_or_construct_and_the_position() {
        for (filter, expected) in [
            ("status >", "column 9: found the end"),
            ("pth == \"/a\"", "column 1: unknown field \"pth\""),
            (
                "method == \"GET\" && data[\"a b\"] > 1",
                "column 20: unknown field \"a b\"",
            ),
            ("data == 1", "column 1: unknown field \"data\""),
            (
                "path.size == 1",
                "column 1: path is a string and has no fields",
            ),
            (
                "status == \"404\"",
                "column 1: status is a number; it cannot be compared with a string",
            ),
            (
                "\"404\" == status",
                "column 10: status is a number; it cannot be compared with a string",
            ),
            (
                "path == 5",
                "column 1: path is a string; it cannot be compared with a number",
            ),
            (
                "path == null",
                "column 1: path is a string; it cannot be compared with null",
            ),
            (
                "method in [\"GET\", 5]",
                "column 1: method is a string; it cannot be compared with a number",
            ),
            (
                "status in [404, true]",
                "column 1: status is a number; it cannot be compared with a truth value",
            ),
            (
                "status.startsWith(\"4\")",
                "column 1: status is a number; it cannot be compared with a string",
            ),
            (
                "path.contains(5)",
                "column 1: path is a string; it cannot be compared with a number",
            ),
            (
                "size(status) > 1",
                "column 6: status is a number and has no size",
            ),
            (
                "size(path) > \"x\"",
                "column 6: the size of path is a number; it cannot be compared with a string",
            ),
            ("!path", "column 2: path is not compared with anything"),
            (
                "path == referrer",
                "column 1: a comparison of two fields is not supported",
            ),
            (
                "1 == 1",
                "column 1: a comparison of two constants is not supported",
            ),
            (
                "(status > 1) == true",
                "column 2: a comparison of truth values is not supported",
            ),
            (
                "-status == 1",
                "column 2: negating a field is not supported",
            ),
            (
                "\"a\" in path",
                "column 8: in with something other than a list of constants",
            ),
            (
                "\"a\" in [\"a\"]",
                "column 1: in with something other than a field on its left",
            ),
            (
                "\"abc\".contains(path)",
                "column 1: a function call other than on a field",
            ),
            (
                "size(\"abc\") > 1",
                "column 6: the size of something other than a field",
            ),
            (
                "has(data.path)",
                "column 5: every request has path; write path != \"\"",
            ),
            ("has(data.status)", "column 5: every request has status"),
            (
                "status == 1000",
                "column 1: no request can match: status is a whole number from 0 to 999",
            ),
            (
                "true && !(status <= 999)",
                "column 11: no request can match: status is",
            ),
            (
                "bytes_sent in [5, 1.5]",
                "column 1: no request can match: bytes_sent is a whole number from 0",
            ),
            (
                "status_class == \"abc\"",
                "column 1: no request can match: status_class is \"1xx\" to \"5xx\" or \"other\"",
            ),
            (
                "country in [\"DE\", \"fr\"]",
                "column 1: no request can match: country is \"\" or an ISO 3166 code",
            ),
            (
                "address != \"10.0.0.0/33\"",
                "column 1: invalid network; write 10.0.0.0/8 or 2001:db8::/32",
            ),
            (
                "status == 200 && \"ä\" == path && 5",
                "column 33: a value that is not compared",
            ),
        ] {
            let message = error(filter);
            assert!(
                message.starts_with(&format!("filter 1, {expected}")),
                "{filter}: {message}"
            );
        }
        let filters = ["true".to_owned(), "x > 1".to_owned()];
        let Err(QueryError::Filter(second)) = of_filters(&filters) else {
            panic!("an unknown field was accepted");
        };
        assert_eq!((second.filter, second.column), (1, 1));
    }

    #[test]
    fn filters_at_the_limits_are_accepted_and_beyond_them_refused() {
        let texts = |count: usize| vec!["path == \"/a\"".to_owned(); count];
        assert!(of_filters(&texts(CONDITIONS_MAX)).is_ok());
        assert!(of_filters(&[texts(CONDITIONS_MAX).join(" || ")]).is_ok());
        let too_many = QueryError::TooManyConditions {
            conditions: 65,
            conditions_max: 64,
        };
        assert_eq!(of_filters(&texts(65)).unwrap_err(), too_many);
        // Each wildcard and each network counts.
        for (many, comparisons) in [
            (format!("path == \"{}\"", "*a".repeat(65)), 65),
            (format!("path in [{}]", "\"*\",".repeat(65)), 65),
            (format!("address in [{}]", "\"::/0\",".repeat(65)), 65),
        ] {
            let too_many = QueryError::TooManyConditions {
                conditions: comparisons,
                conditions_max: 64,
            };
            assert_eq!(of_filters(&[many]).unwrap_err(), too_many);
        }
        assert!(of_filters(&[format!("path == \"{}\"", "*".repeat(5_000))]).is_ok());
        let long = |bytes: usize| format!("path == \"{}\"", "x".repeat(bytes - 10));
        assert!(of_filters(&[long(FILTER_BYTES_MAX)]).is_ok());
        let message = error(&long(FILTER_BYTES_MAX + 1));
        assert!(message.contains("8193 bytes; at most 8192"), "{message}");
        let message = error(&"!(".repeat(40));
        assert!(message.contains("deeper than 32 levels"), "{message}");
        let message = error(&texts(200).join("&&"));
        assert!(message.contains("more than 512 nodes"), "{message}");
    }
}
