//! Filters of Centrifuge clients: conditions on the tags of publications.

use std::sync::Arc;

use linerate_hub::{Filter, Publication};

use crate::{
    filter::{FilterError, Filters},
    protocol::command::TagsFilter,
};

/// The maximum number of comparisons, combinations and values in a filter.
const NODES_MAX: usize = 64;

/// The maximum nesting depth of combinations.
const DEPTH_MAX: usize = 8;

/// What the text of a tag filter begins with.
const PREFIX: &str = "tags ";

/// What separates the text of a payload filter from that of a tag filter.
const AND: &str = " and ";

/// Why a filter is invalid.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum PartsError {
    #[error(transparent)]
    Payload(#[from] FilterError),
    #[error(transparent)]
    Tags(#[from] TagsError),
}

/// Why a tag filter is invalid.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(super) enum TagsError {
    /// The comparison operator is unknown.
    #[error("unknown operator in filter")]
    Comparison,
    /// The combination is unknown, or `not` does not have exactly one condition.
    #[error("invalid combination in filter: expected and, or, or not with exactly one condition")]
    Operation,
    /// The combinations are nested too deeply.
    #[error("filter is nested deeper than {DEPTH_MAX} levels")]
    TooDeep,
    /// The filter has too many conditions.
    #[error("filter has {nodes} conditions; at most {NODES_MAX} are allowed")]
    TooMany { nodes: usize },
}

/// Compiles a tag filter.
pub(super) fn compile(wire: &TagsFilter) -> Result<Arc<dyn Filter>, TagsError> {
    let nodes = count(wire);
    if nodes > NODES_MAX {
        return Err(TagsError::TooMany { nodes });
    }
    let condition = Condition::new(wire, DEPTH_MAX)?;
    // Serializing to memory fails only for maps with keys that are not strings; there are none.
    let text = serde_json::to_string(wire).unwrap_or_default();
    Ok(Arc::new(Tags {
        condition,
        expression: format!("{PREFIX}{text}"),
    }))
}

/// Returns the filter for a payload filter and a tag filter, or `None` if there is neither.
pub(super) fn of_parts(
    filters: &Filters,
    payload: Option<&str>,
    tags: Option<&TagsFilter>,
) -> Result<Option<Arc<dyn Filter>>, PartsError> {
    let payload = payload.map(|text| filters.compile(text)).transpose()?;
    let tags = tags.map(compile).transpose()?;
    Ok(match (payload, tags) {
        (Some(payload), Some(tags)) => Some(Arc::new(PayloadAndTags::new(payload, tags))),
        (payload, tags) => payload.or(tags),
    })
}

/// Returns the payload filter and the tag filter that a filter was made from.
pub(super) fn parts(filter: &dyn Filter) -> (Option<String>, Option<TagsFilter>) {
    let expression = filter.expression();
    let payload = filter.payload().map(|payload| payload.text());
    let tags = match payload {
        Some(payload) => expression
            .strip_prefix(payload)
            .and_then(|rest| rest.strip_prefix(AND)),
        None => Some(expression),
    };
    let tags = tags.and_then(|tags| tags.strip_prefix(PREFIX));
    let tags = tags.and_then(|text| serde_json::from_str(text).ok());
    (payload.map(str::to_owned), tags)
}

/// A payload filter and a tag filter, both of which a publication must pass.
#[derive(Debug)]
struct PayloadAndTags {
    payload: Arc<dyn Filter>,
    tags: Arc<dyn Filter>,
    expression: String,
}

impl PayloadAndTags {
    fn new(payload: Arc<dyn Filter>, tags: Arc<dyn Filter>) -> Self {
        let expression = format!("{}{AND}{}", payload.expression(), tags.expression());
        Self {
            payload,
            tags,
            expression,
        }
    }
}

impl Filter for PayloadAndTags {
    fn expression(&self) -> &str {
        &self.expression
    }

    fn payload(&self) -> Option<&Arc<linerate_filter::Filter>> {
        self.payload.payload()
    }

    fn admits(&self, publication: &Publication) -> bool {
        self.tags.admits(publication)
    }
}

#[derive(Debug)]
struct Tags {
    condition: Condition,
    expression: String,
}

#[derive(Debug)]
enum Condition {
    All(Vec<Self>),
    Any(Vec<Self>),
    /// A comparison of a tag. A publication may lack the tag.
    Compare {
        key: String,
        comparison: Comparison,
        value: String,
        values: Vec<String>,
    },
    Not(Box<Self>),
}

#[derive(Clone, Copy, Debug)]
enum Comparison {
    Contains,
    EndsWith,
    Equal,
    Exists,
    Greater,
    GreaterOrEqual,
    In,
    Less,
    LessOrEqual,
    NotEqual,
    NotExists,
    NotIn,
    StartsWith,
}

impl Filter for Tags {
    fn expression(&self) -> &str {
        &self.expression
    }

    fn admits(&self, publication: &Publication) -> bool {
        self.condition.matches(publication.tags())
    }
}

impl Condition {
    fn new(wire: &TagsFilter, depth: usize) -> Result<Self, TagsError> {
        if depth == 0 {
            return Err(TagsError::TooDeep);
        }
        let nodes = || wire.nodes.iter().map(|node| Self::new(node, depth - 1));
        match wire.operation.as_str() {
            "" => Ok(Self::Compare {
                key: wire.key.clone(),
                comparison: Comparison::new(&wire.comparison)?,
                value: wire.value.clone(),
                values: wire.values.clone(),
            }),
            "and" => Ok(Self::All(nodes().collect::<Result<_, _>>()?)),
            "or" => Ok(Self::Any(nodes().collect::<Result<_, _>>()?)),
            "not" => match wire.nodes.as_slice() {
                [node] => Ok(Self::Not(Box::new(Self::new(node, depth - 1)?))),
                _ => Err(TagsError::Operation),
            },
            _ => Err(TagsError::Operation),
        }
    }

    fn matches(&self, tags: &[(String, String)]) -> bool {
        match self {
            Self::All(nodes) => nodes.iter().all(|node| node.matches(tags)),
            Self::Any(nodes) => nodes.iter().any(|node| node.matches(tags)),
            Self::Compare {
                key,
                comparison,
                value,
                values,
            } => {
                let tag = tags.iter().find(|(name, _)| name == key);
                let tag = tag.map(|(_, tag)| tag.as_str());
                comparison.holds(tag, value, values)
            }
            Self::Not(node) => !node.matches(tags),
        }
    }
}

impl Comparison {
    fn new(text: &str) -> Result<Self, TagsError> {
        Ok(match text {
            "ct" => Self::Contains,
            "eq" => Self::Equal,
            "ew" => Self::EndsWith,
            "ex" => Self::Exists,
            "gt" => Self::Greater,
            "gte" => Self::GreaterOrEqual,
            "in" => Self::In,
            "lt" => Self::Less,
            "lte" => Self::LessOrEqual,
            "neq" => Self::NotEqual,
            "nex" => Self::NotExists,
            "nin" => Self::NotIn,
            "sw" => Self::StartsWith,
            _ => return Err(TagsError::Comparison),
        })
    }

    /// Evaluates the comparison. A missing tag equals no value, and ordered comparisons hold only
    /// if both sides are numbers.
    fn holds(self, tag: Option<&str>, value: &str, values: &[String]) -> bool {
        let numbers = || Some((tag?.parse::<f64>().ok()?, value.parse::<f64>().ok()?));
        match self {
            Self::Contains => tag.is_some_and(|tag| tag.contains(value)),
            Self::EndsWith => tag.is_some_and(|tag| tag.ends_with(value)),
            Self::Equal => tag == Some(value),
            Self::Exists => tag.is_some(),
            Self::Greater => numbers().is_some_and(|(tag, value)| tag > value),
            Self::GreaterOrEqual => numbers().is_some_and(|(tag, value)| tag >= value),
            Self::In => tag.is_some_and(|tag| values.iter().any(|value| value == tag)),
            Self::Less => numbers().is_some_and(|(tag, value)| tag < value),
            Self::LessOrEqual => numbers().is_some_and(|(tag, value)| tag <= value),
            Self::NotEqual => tag != Some(value),
            Self::NotExists => tag.is_none(),
            Self::NotIn => tag.is_none_or(|tag| values.iter().all(|value| value != tag)),
            Self::StartsWith => tag.is_some_and(|tag| tag.starts_with(value)),
        }
    }
}

/// Counts the comparisons, the combinations and the values in lists.
fn count(wire: &TagsFilter) -> usize {
    1 + wire.values.len() + wire.nodes.iter().map(count).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(key: &str, comparison: &str, value: &str) -> TagsFilter {
        TagsFilter {
            key: key.into(),
            comparison: comparison.into(),
            value: value.into(),
            ..TagsFilter::default()
        }
    }

    fn combine(operation: &str, nodes: Vec<TagsFilter>) -> TagsFilter {
        TagsFilter {
            operation: operation.into(),
            nodes,
            ..TagsFilter::default()
        }
    }

    fn publication() -> Publication {
        let tags = vec![
            ("level".into(), "error".into()),
            ("bytes".into(), "1500".into()),
        ];
        Publication::build("{}".into()).with_tags(tags).finish()
    }

    #[test]
    fn comparisons_are_of_texts_or_numbers() {
        let publication = publication();
        for (key, comparison, value, expected) in [
            ("level", "eq", "error", true),
            ("level", "eq", "err", false),
            ("level", "neq", "info", true),
            ("absent", "eq", "", false),
            ("absent", "neq", "x", true),
            ("level", "ex", "", true),
            ("absent", "nex", "", true),
            ("level", "sw", "err", true),
            ("level", "ew", "ror", true),
            ("level", "ct", "rro", true),
            ("bytes", "gt", "999.5", true),
            ("bytes", "lt", "1500", false),
            ("bytes", "lte", "1500", true),
            ("bytes", "gte", "1501", false),
            ("level", "gt", "1", false),
            ("absent", "lt", "1", false),
        ] {
            let filter = compile(&compare(key, comparison, value)).unwrap();
            assert_eq!(
                filter.matches(&publication),
                expected,
                "{key} {comparison} {value}"
            );
        }
        for (comparison, expected) in [("in", true), ("nin", false)] {
            let mut filter = compare("level", comparison, "");
            filter.values = vec!["info".into(), "error".into()];
            assert_eq!(compile(&filter).unwrap().matches(&publication), expected);
        }
    }

    #[test]
    fn conditions_are_combined() {
        let publication = publication();
        let yes = || compare("level", "eq", "error");
        let no = || compare("level", "eq", "info");
        for (operation, nodes, expected) in [
            ("and", vec![yes(), yes()], true),
            ("and", vec![yes(), no()], false),
            ("or", vec![no(), yes()], true),
            ("or", vec![no(), no()], false),
            ("not", vec![no()], true),
        ] {
            let filter = compile(&combine(operation, nodes)).unwrap();
            assert_eq!(filter.matches(&publication), expected, "{filter:?}");
        }
    }

    #[test]
    fn the_same_condition_is_the_same_class() {
        let one = compile(&compare("a", "eq", "b")).unwrap();
        let same = compile(&compare("a", "eq", "b")).unwrap();
        let other = compile(&compare("a", "eq", "c")).unwrap();
        assert_eq!(one.expression(), same.expression());
        assert_ne!(one.expression(), other.expression());
        let (same, different) = (
            PayloadAndTags::new(one.clone(), same),
            PayloadAndTags::new(one, other),
        );
        assert_ne!(same.expression(), different.expression());
    }

    #[test]
    fn both_filters_must_let_a_publication_pass() {
        let filters = crate::filter::Filters::new(crate::config::Config::default().filter);
        let payload = filters.compile("n == 1").unwrap();
        let both = PayloadAndTags::new(payload, compile(&compare("level", "eq", "error")).unwrap());
        let publication = |json: &'static str, level: &str| {
            let tags = vec![("level".to_owned(), level.to_owned())];
            Publication::build(json.into()).with_tags(tags).finish()
        };
        assert!(both.matches(&publication(r#"{"n":1}"#, "error")));
        assert!(!both.matches(&publication(r#"{"n":2}"#, "error")));
        assert!(!both.matches(&publication(r#"{"n":1}"#, "info")));
    }

    #[test]
    fn what_makes_no_sense_or_is_too_much_is_refused() {
        let mut deep = compare("a", "eq", "b");
        for _ in 0..DEPTH_MAX {
            deep = combine("and", vec![deep]);
        }
        let broad = |nodes| combine("or", vec![compare("a", "eq", "b"); nodes]);
        assert!(compile(&broad(NODES_MAX - 1)).is_ok());
        for (filter, error) in [
            (compare("a", "like", "b"), TagsError::Comparison),
            (combine("xor", vec![]), TagsError::Operation),
            (combine("not", vec![]), TagsError::Operation),
            (deep, TagsError::TooDeep),
            (
                broad(NODES_MAX),
                TagsError::TooMany {
                    nodes: NODES_MAX + 1,
                },
            ),
        ] {
            assert_eq!(compile(&filter).unwrap_err(), error);
        }
    }
}
