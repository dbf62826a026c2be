//! Guards: an equality with one of a few constants that must hold for a filter to be true.

use hashbrown::HashMap;

use crate::{
    Number,
    tree::{Comparison, Literal, Node, Path},
    value::Value,
};

/// A filter with more constants than this is evaluated instead, because each constant takes memory
/// in the index.
const CONSTANTS_MAX: usize = 16;

/// A path, and the constants that its value must equal one of.
#[derive(Debug, PartialEq)]
pub(crate) struct Guard {
    pub(crate) path: Path,
    pub(crate) constants: Vec<Constant>,
    /// True if the filter has no other condition, so that it needs no evaluation.
    pub(crate) is_sufficient: bool,
}

/// A constant in canonical form: constants that compare as equal are the same.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Constant {
    Scalar(Scalar),
    Text(Box<[u8]>),
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Scalar {
    Bool(bool),
    /// The bits of a double that is not equal to a 64-bit integer.
    Double(u64),
    Integer(i128),
    Null,
}

/// The ids of filters by their constants, for one path.
#[derive(Debug, Default)]
pub(crate) struct Index {
    scalars: FilterIds<Scalar>,
    texts: FilterIds<Box<[u8]>>,
}

type FilterIds<K> = HashMap<K, Vec<usize>, foldhash::fast::RandomState>;

impl Guard {
    /// Returns the first equality that must hold for `node` to be true.
    ///
    /// If it does not hold, it is false or an error, and either keeps a conjunction from being
    /// true.
    pub(crate) fn find(node: &Node) -> Option<Self> {
        match node {
            Node::All(nodes) => nodes.iter().find_map(Self::find).map(|guard| Self {
                is_sufficient: false,
                ..guard
            }),
            Node::Compare(Comparison::Equal, left, right) => match (&**left, &**right) {
                (Node::Path(path), Node::Literal(literal))
                | (Node::Literal(literal), Node::Path(path)) => {
                    Self::new(path, std::slice::from_ref(literal))
                }
                _ => None,
            },
            Node::InList(value, list) => match &**value {
                Node::Path(path) => Self::new(path, list),
                _ => None,
            },
            _ => None,
        }
    }

    fn new(path: &Path, list: &[Literal]) -> Option<Self> {
        if list.len() > CONSTANTS_MAX {
            return None;
        }
        let mut constants = Vec::with_capacity(list.len());
        for literal in list {
            let constant = Constant::of(literal);
            if !constants.contains(&constant) {
                constants.push(constant);
            }
        }
        Some(Self {
            path: path.clone(),
            constants,
            is_sufficient: true,
        })
    }
}

impl Constant {
    fn of(literal: &Literal) -> Self {
        Self::Scalar(match literal {
            Literal::Bool(bool) => Scalar::Bool(*bool),
            Literal::Null => Scalar::Null,
            Literal::Number(number) => Scalar::of(*number),
            Literal::Text(text) => return Self::Text(text.as_bytes().into()),
        })
    }
}

impl Scalar {
    fn of(number: Number) -> Self {
        match number {
            Number::Double(double) => match number.as_integer() {
                Some(integer) => Self::Integer(integer),
                None => Self::Double(double.to_bits()),
            },
            Number::Int(int) => Self::Integer(int.into()),
            Number::Uint(uint) => Self::Integer(uint.into()),
        }
    }
}

impl Index {
    pub(crate) fn add(&mut self, constant: &Constant, id: usize) {
        match constant {
            Constant::Scalar(scalar) => self.scalars.entry(*scalar).or_default().push(id),
            Constant::Text(text) => self.texts.entry(text.clone()).or_default().push(id),
        }
    }

    pub(crate) fn remove(&mut self, constant: &Constant, id: usize) {
        match constant {
            Constant::Scalar(scalar) => remove(&mut self.scalars, scalar, id),
            Constant::Text(text) => remove(&mut self.texts, text, id),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.scalars.is_empty() && self.texts.is_empty()
    }

    /// Returns the filters that have `value` among their constants.
    pub(crate) fn find(&self, value: &Value<'_>) -> &[usize] {
        let scalar = match *value {
            Value::Bool(bool) => Scalar::Bool(bool),
            Value::Null => Scalar::Null,
            Value::Number(number) => Scalar::of(number),
            Value::Text(text) => return places(self.texts.get(&*text.decoded())),
            Value::Error | Value::List(_) | Value::Map(_) => return &[],
        };
        places(self.scalars.get(&scalar))
    }
}

fn places(found: Option<&Vec<usize>>) -> &[usize] {
    found.map(Vec::as_slice).unwrap_or_default()
}

fn remove<K: Eq + std::hash::Hash>(all: &mut FilterIds<K>, key: &K, id: usize) {
    if let Some(places) = all.get_mut(key) {
        places.retain(|other| *other != id);
        if places.is_empty() {
            all.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CONSTANTS_MAX, Guard};
    use crate::{Limits, parse};

    /// Returns the path, the number of constants, and whether the guard is sufficient.
    fn guard(text: &str) -> Option<(String, usize, bool)> {
        let guard = Guard::find(&parse(text, &Limits::default()).unwrap())?;
        let path = format!("{:?}", guard.path.0);
        Some((path, guard.constants.len(), guard.is_sufficient))
    }

    #[test]
    fn a_required_comparison_is_found() {
        for (text, path, constants, is_sufficient) in [
            (r#"level == "error""#, r#"[Field("level")]"#, 1, true),
            (r#""error" == level"#, r#"[Field("level")]"#, 1, true),
            (r#"data.a[2] == 1.5"#, r#"[Field("a"), Index(2)]"#, 1, true),
            (r#"data == null"#, "[]", 1, true),
            (
                r#"level == "error" && bytes > 1000"#,
                r#"[Field("level")]"#,
                1,
                false,
            ),
            (
                r#"bytes > 1000 && (ok && level == 'error')"#,
                r#"[Field("level")]"#,
                1,
                false,
            ),
            (r#"code in [1, 1.0, 2, "1"]"#, r#"[Field("code")]"#, 3, true),
        ] {
            assert_eq!(
                guard(text),
                Some((path.into(), constants, is_sufficient)),
                "{text}"
            );
        }
    }

    #[test]
    fn an_optional_comparison_is_not_a_guard() {
        for text in [
            r#"level == "error" || bytes > 1000"#,
            r#"!(level == "error")"#,
            r#"level != "error""#,
            r#""a" == "b""#,
            "(level == 1) == true",
            "size(level) == 1",
            "1 in level",
            "-level == 1",
        ] {
            assert_eq!(guard(text), None, "{text}");
        }
        let list = |count| format!("a in {:?}", (0..count).collect::<Vec<usize>>());
        assert!(guard(&list(CONSTANTS_MAX)).is_some() && guard(&list(CONSTANTS_MAX + 1)).is_none());
    }
}
