//! A naive evaluator on parsed JSON, with which the real one is compared.

use linerate_filter::{
    Number,
    tree::{Comparison, Literal, Node, Path, Segment, TextTest},
};
use serde_json::Value;

/// Returns whether a payload matches.
pub(crate) fn matches(node: &Node, payload: &[u8]) -> bool {
    match serde_json::from_slice(payload) {
        Ok(json) => evaluate(node, &json) == Ok(Value::Bool(true)),
        Err(_) => false,
    }
}

/// Evaluates every operand, in the order of the text. An `Err` is an error of the filter language.
fn evaluate(node: &Node, json: &Value) -> Result<Value, ()> {
    match node {
        Node::All(nodes) => combine(nodes, json, false),
        Node::Any(nodes) => combine(nodes, json, true),
        Node::Compare(comparison, left, right) => {
            let (left, right) = (evaluate(left, json), evaluate(right, json));
            compare(*comparison, &left?, &right?).map(Value::Bool)
        }
        Node::Has(Path(segments)) => {
            let (last, object) = segments.split_last().ok_or(())?;
            match (find(object, json)?, last) {
                (Value::Object(object), Segment::Field(name)) => {
                    Ok(Value::Bool(object.contains_key(&**name)))
                }
                _ => Err(()),
            }
        }
        Node::In(value, container) => {
            let value = evaluate(value, json)?;
            is_in(&value, find(&container.0, json)?).map(Value::Bool)
        }
        Node::InList(value, list) => {
            let value = evaluate(value, json)?;
            let is_equal = |literal| equals(&value, &constant(literal)) == Ok(true);
            Ok(Value::Bool(list.iter().any(is_equal)))
        }
        Node::Literal(literal) => Ok(constant(literal)),
        Node::Negate(node) => negate(&evaluate(node, json)?),
        Node::Not(node) => match evaluate(node, json)? {
            Value::Bool(bool) => Ok(Value::Bool(!bool)),
            _ => Err(()),
        },
        Node::Path(path) => find(&path.0, json).cloned(),
        Node::Size(node) => match evaluate(node, json)? {
            Value::Array(list) => Ok(list.len().into()),
            Value::Object(map) => Ok(map.len().into()),
            Value::String(text) => Ok(text.chars().count().into()),
            _ => Err(()),
        },
        Node::Text(test, text, part) => {
            match (test, evaluate(text, json)?, evaluate(part, json)?) {
                (TextTest::Contains, Value::String(text), Value::String(part)) => {
                    Ok(text.contains(&*part).into())
                }
                (TextTest::EndsWith, Value::String(text), Value::String(part)) => {
                    Ok(text.ends_with(&*part).into())
                }
                (TextTest::StartsWith, Value::String(text), Value::String(part)) => {
                    Ok(text.starts_with(&*part).into())
                }
                _ => Err(()),
            }
        }
    }
}

fn combine(nodes: &[Node], json: &Value, decisive: bool) -> Result<Value, ()> {
    let results: Vec<_> = nodes.iter().map(|node| evaluate(node, json)).collect();
    if results.contains(&Ok(Value::Bool(decisive))) {
        return Ok(Value::Bool(decisive));
    }
    let is_other = |result: &Result<Value, ()>| *result == Ok(Value::Bool(!decisive));
    match results.iter().all(is_other) {
        true => Ok(Value::Bool(!decisive)),
        false => Err(()),
    }
}

fn find<'j>(path: &[Segment], json: &'j Value) -> Result<&'j Value, ()> {
    let step = |value: &'j Value, segment: &Segment| match (value, segment) {
        (Value::Object(map), Segment::Field(name)) => map.get(&**name),
        (Value::Array(list), Segment::Index(index)) => list.get(usize::try_from(*index).ok()?),
        _ => None,
    };
    path.iter().try_fold(json, step).ok_or(())
}

fn constant(literal: &Literal) -> Value {
    match literal {
        Literal::Bool(bool) => (*bool).into(),
        Literal::Null => Value::Null,
        Literal::Number(number) => number_value(*number),
        Literal::Text(text) => (**text).into(),
    }
}

fn number_value(number: Number) -> Value {
    match number {
        Number::Double(double) => double.into(),
        Number::Int(int) => int.into(),
        Number::Uint(uint) => uint.into(),
        _ => panic!("unknown kind of number"),
    }
}

fn compare(comparison: Comparison, left: &Value, right: &Value) -> Result<bool, ()> {
    let ordering = || match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => Ok(left.cmp(right)),
        (Value::Number(left), Value::Number(right)) => Ok(order(left, right)),
        (Value::String(left), Value::String(right)) => Ok(left.chars().cmp(right.chars())),
        _ => Err(()),
    };
    match comparison {
        Comparison::Equal => equals(left, right),
        Comparison::Greater => ordering().map(std::cmp::Ordering::is_gt),
        Comparison::GreaterOrEqual => ordering().map(std::cmp::Ordering::is_ge),
        Comparison::Less => ordering().map(std::cmp::Ordering::is_lt),
        Comparison::LessOrEqual => ordering().map(std::cmp::Ordering::is_le),
        Comparison::NotEqual => equals(left, right).map(|is_equal| !is_equal),
    }
}

fn equals(left: &Value, right: &Value) -> Result<bool, ()> {
    match (left, right) {
        (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_)) => Err(()),
        (Value::Number(left), Value::Number(right)) => Ok(order(left, right).is_eq()),
        (left, right) => Ok(left == right),
    }
}

/// Compares two numbers in decimal notation, digit by digit.
fn order(left: &serde_json::Number, right: &serde_json::Number) -> std::cmp::Ordering {
    let decimal = |number: &serde_json::Number| match number.as_i128() {
        Some(integer) => format!("{integer}"),
        // This prints all digits of the double: `Display` of doubles uses no exponent, and the
        // precision is large enough.
        None => format!(
            "{:.1100}",
            number.as_f64().expect("every other number is a double")
        ),
    };
    let (left, right) = (decimal(left), decimal(right));
    let is_negative =
        |text: &str| text.starts_with('-') && text.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    match (is_negative(&left), is_negative(&right)) {
        (true, false) => std::cmp::Ordering::Less,
        (false, true) => std::cmp::Ordering::Greater,
        (false, false) => magnitude(&left, &right),
        (true, true) => magnitude(&right, &left),
    }
}

fn magnitude(left: &str, right: &str) -> std::cmp::Ordering {
    let parts = |text: &str| {
        let text = text.trim_start_matches('-').to_owned();
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let whole = whole.trim_start_matches('0').to_owned();
        (
            whole.len(),
            whole,
            fraction.trim_end_matches('0').to_owned(),
        )
    };
    parts(left).cmp(&parts(right))
}

fn is_in(value: &Value, container: &Value) -> Result<bool, ()> {
    match container {
        Value::Array(list) => {
            let results: Vec<_> = list.iter().map(|element| equals(value, element)).collect();
            match results.contains(&Ok(true)) {
                true => Ok(true),
                false => results
                    .into_iter()
                    .collect::<Result<Vec<_>, ()>>()
                    .map(|_| false),
            }
        }
        Value::Object(map) => Ok(value.as_str().is_some_and(|name| map.contains_key(name))),
        _ => Err(()),
    }
}

fn negate(value: &Value) -> Result<Value, ()> {
    let Value::Number(number) = value else {
        return Err(());
    };
    match number.as_i128() {
        Some(integer) => {
            let integer = -integer;
            i64::try_from(integer)
                .map(Value::from)
                .or_else(|_| u64::try_from(integer).map(Value::from))
                .map_err(drop)
        }
        None => Ok((-number.as_f64().ok_or(())?).into()),
    }
}
