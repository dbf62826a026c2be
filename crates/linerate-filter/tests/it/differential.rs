//! Compares the filters with the naive evaluator on arbitrary expressions and arbitrary JSON.

use std::sync::Arc;

use linerate_filter::{
    Evaluated, Filter, FilterSet, Limits, Number, parse,
    tree::{Comparison, Literal, Node, Path, Segment, TextTest},
};
use proptest::prelude::*;
use serde_json::Value;

use crate::oracle;

const NAMES: [&str; 5] = ["a", "b", "c", "data", "ü\"\\\n"];

fn limits() -> Limits {
    Limits::new(100_000, 10_000)
}

fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&NAMES[..])
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ab]{0,3}",
        "[a\"\\\\\n\u{0}/🦀ü]{0,4}",
        name().prop_map(str::to_owned)
    ]
}

fn json_number() -> impl Strategy<Value = Value> {
    const EDGES: [&str; 22] = [
        "0",
        "-0",
        "-0.0",
        "1",
        "1.0",
        "1.5",
        "-1",
        "2",
        "1e2",
        "100",
        "9007199254740993",
        "9007199254740992.0",
        "9223372036854775807",
        "-9223372036854775808",
        "9223372036854775808",
        "9223372036854775808.0",
        "18446744073709551615",
        "18446744073709551616",
        "1e300",
        "-1e300",
        "5e-324",
        "0.1",
    ];
    let edge = |text: &str| serde_json::from_str(text).expect("a number");
    prop_oneof![
        prop::sample::select(&EDGES[..]).prop_map(edge),
        (-3..3_i64).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|double| if double.is_finite() {
            double.into()
        } else {
            Value::Null
        }),
    ]
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        json_number(),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((name(), inner), 0..5).prop_map(|fields| {
                fields
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect::<serde_json::Map<_, _>>()
                    .into()
            }),
        ]
    })
}

/// Writes JSON as text, with blanks, unnecessary escapes and repeated field names.
fn payload() -> impl Strategy<Value = String> {
    (json(), any::<u64>()).prop_map(|(json, seed)| {
        let mut out = String::new();
        write(&json, &mut (seed | 1), &mut out);
        out
    })
}

fn write(json: &Value, seed: &mut u64, out: &mut String) {
    let mut chance = |of: u64| {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        seed.is_multiple_of(of)
    };
    if chance(4) {
        out.push_str(" \n");
    }
    match json {
        Value::String(text) => write_text(text, chance(3), out),
        Value::Array(list) => {
            out.push('[');
            for (place, value) in list.iter().enumerate() {
                out.push_str(if place > 0 { "," } else { "" });
                write(value, seed, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            let repeated = chance(3).then(|| map.iter().next_back()).flatten();
            let first = repeated.map(|(name, _)| (name, map.values().next().expect("has a last")));
            for (place, (name, value)) in first.into_iter().chain(map).enumerate() {
                out.push_str(if place > 0 { "," } else { "" });
                write_text(name, seed.is_multiple_of(3), out);
                out.push(':');
                write(value, seed, out);
            }
            out.push('}');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

fn write_text(text: &str, is_escaped: bool, out: &mut String) {
    if !is_escaped {
        return out.push_str(&Value::from(text).to_string());
    }
    out.push('"');
    for unit in text.encode_utf16() {
        out.push_str(&format!("\\u{unit:04x}"));
    }
    out.push('"');
}

fn literal() -> impl Strategy<Value = Literal> {
    prop_oneof![
        any::<bool>().prop_map(Literal::Bool),
        Just(Literal::Null),
        json_number().prop_map(|number| {
            match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(int), ..) => Literal::Number(Number::Int(int)),
                (_, Some(uint), _) => Literal::Number(Number::Uint(uint)),
                (.., Some(double)) => Literal::Number(Number::Double(double)),
                _ => Literal::Null,
            }
        }),
        text().prop_map(|text| Literal::Text(text.into())),
    ]
}

fn path() -> impl Strategy<Value = Path> {
    let segment = prop_oneof![
        3 => name().prop_map(|name| Segment::Field(name.into())),
        1 => (0..3_u64).prop_map(Segment::Index),
    ];
    prop::collection::vec(segment, 0..4).prop_map(Path)
}

fn node() -> impl Strategy<Value = Node> {
    use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
    let comparison =
        prop::sample::select(&[Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual][..]);
    let test =
        prop::sample::select(&[TextTest::Contains, TextTest::EndsWith, TextTest::StartsWith][..]);
    let has = (path(), prop::sample::select(&["a", "b"][..])).prop_map(|(mut path, last)| {
        path.0.push(Segment::Field(last.into()));
        Node::Has(path)
    });
    let leaf = prop_oneof![
        1 => literal().prop_map(Node::Literal),
        4 => path().prop_map(Node::Path),
        1 => has,
        2 => (path(), literal()).prop_map(|(path, literal)| {
            Node::Compare(Equal, Node::Path(path).into(), Node::Literal(literal).into())
        }),
    ];
    leaf.prop_recursive(4, 24, 3, move |inner| {
        let one = || inner.clone().prop_map(Box::new);
        prop_oneof![
            2 => prop::collection::vec(inner.clone(), 2..4).prop_map(Node::All),
            2 => prop::collection::vec(inner.clone(), 2..4).prop_map(Node::Any),
            3 => (comparison.clone(), one(), one())
                .prop_map(|(comparison, left, right)| Node::Compare(comparison, left, right)),
            1 => (one(), path()).prop_map(|(value, path)| Node::In(value, path)),
            1 => (one(), prop::collection::vec(literal(), 0..4)).prop_map(|(value, list)| Node::InList(value, list)),
            1 => one().prop_map(Node::Not),
            1 => path().prop_map(|path| Node::Negate(Node::Path(path).into())),
            1 => one().prop_map(Node::Size),
            1 => (test.clone(), one(), one()).prop_map(|(test, text, part)| Node::Text(test, text, part)),
        ]
    })
}

/// Writes an expression, with brackets around each operand.
fn expression(node: &Node) -> String {
    let joined = |nodes: &[Node], by: &str| {
        let nodes: Vec<String> = nodes
            .iter()
            .map(|node| format!("({})", expression(node)))
            .collect();
        nodes.join(by)
    };
    match node {
        Node::All(nodes) => joined(nodes, " && "),
        Node::Any(nodes) => joined(nodes, "||"),
        Node::Compare(comparison, left, right) => {
            let symbol = match comparison {
                Comparison::Equal => "==",
                Comparison::Greater => ">",
                Comparison::GreaterOrEqual => ">=",
                Comparison::Less => "<",
                Comparison::LessOrEqual => "<=",
                Comparison::NotEqual => "!=",
            };
            format!("({}) {symbol} ({})", expression(left), expression(right))
        }
        Node::Has(path) => {
            let (last, object) = path.0.split_last().expect("has a last");
            let Segment::Field(last) = last else {
                unreachable!()
            };
            format!("has({}.{last})", path_text(object))
        }
        Node::In(value, path) => format!("({}) in {}", expression(value), path_text(&path.0)),
        Node::InList(value, list) => {
            let list: Vec<String> = list.iter().map(literal_text).collect();
            format!("({}) in [{}]", expression(value), list.join(", "))
        }
        Node::Literal(literal) => literal_text(literal),
        Node::Negate(node) => format!("-({})", expression(node)),
        Node::Not(node) => format!("!({})", expression(node)),
        Node::Path(path) => path_text(&path.0),
        Node::Size(node) => format!("size({})", expression(node)),
        Node::Text(test, text, part) => {
            format!(
                "({}).{}({})",
                expression(text),
                test.name(),
                expression(part)
            )
        }
    }
}

fn path_text(path: &[Segment]) -> String {
    let mut out = "data".to_owned();
    for segment in path {
        match segment {
            Segment::Field(name) if name.len() == 1 => out.push_str(&format!(".{name}")),
            Segment::Field(name) => {
                out.push_str(&format!("[{}]", literal_text(&Literal::Text(name.clone()))))
            }
            Segment::Index(index) => out.push_str(&format!("[{index}]")),
        }
    }
    out
}

fn literal_text(literal: &Literal) -> String {
    match literal {
        Literal::Bool(bool) => bool.to_string(),
        Literal::Null => "null".to_owned(),
        Literal::Number(Number::Int(int)) => int.to_string(),
        Literal::Number(Number::Uint(uint)) => format!("{uint}u"),
        Literal::Number(Number::Double(double)) => format!("{double:?}"),
        Literal::Number(_) => unreachable!(),
        Literal::Text(text) => {
            let chars = text
                .chars()
                .map(|char| format!("\\U{:08x}", u32::from(char)));
            format!("'{}'", chars.collect::<String>())
        }
    }
}

/// A change of a payload: the position, and whether a byte is replaced, inserted or removed.
fn changes() -> impl Strategy<Value = Vec<(prop::sample::Index, u8, Option<u8>)>> {
    let byte = prop_oneof![prop::sample::select(&b"[]{},:\" \\1\n"[..]), any::<u8>()];
    let change = (
        any::<prop::sample::Index>(),
        0..3_u8,
        prop::option::of(byte),
    );
    prop::collection::vec(change, 1..4)
}

fn changed(payload: &str, changes: &[(prop::sample::Index, u8, Option<u8>)]) -> Vec<u8> {
    let mut bytes = payload.as_bytes().to_vec();
    for (at, kind, byte) in changes {
        if bytes.is_empty() {
            break;
        }
        let at = at.index(bytes.len());
        match (kind, byte) {
            (0, Some(byte)) => bytes.insert(at, *byte),
            (_, Some(byte)) => bytes[at] = *byte,
            (_, None) => drop(bytes.remove(at)),
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn expressions_mean_what_the_naive_evaluator_says(node in node(), payload in payload()) {
        let text = expression(&node);
        let filter = Filter::new(&text, &limits()).map_err(|error| TestCaseError::fail(format!("{text}: {error}")))?;
        let expected = oracle::matches(&node, payload.as_bytes());
        prop_assert_eq!(filter.matches(payload.as_bytes()), expected, "{} of {}", text, payload);
        // The parser may build a different tree, but it must have the same meaning.
        let parsed = parse(&text, &limits()).expect("the text was parsed before");
        prop_assert_eq!(oracle::matches(&parsed, payload.as_bytes()), expected, "{}", text);
    }

    #[test]
    fn a_filter_matches_the_same_among_others(
        nodes in prop::collection::vec(node(), 1..20),
        removed in prop::collection::vec(any::<bool>(), 20),
        payloads in prop::collection::vec((payload(), changes()), 1..4),
    ) {
        let filters: Vec<Arc<Filter>> = nodes
            .iter()
            .map(|node| Arc::new(Filter::new(&expression(node), &limits()).expect("the text is a filter")))
            .collect();
        let mut set = FilterSet::default();
        for (id, filter) in filters.iter().enumerate() {
            set.insert(id, filter.clone());
        }
        for id in (0..filters.len()).filter(|id| removed[*id]) {
            set.remove(id);
        }
        for (payload, changes) in &payloads {
            // The changed payload may be JSON or not.
            for payload in [payload.as_bytes(), &changed(payload, changes)] {
                let mut evaluated = Evaluated::default();
                while !set.evaluate(payload, &mut evaluated, || true) {}
                let is_match = |id: &usize| !removed[*id] && filters[*id].matches(payload);
                let expected: Vec<usize> = (0..filters.len()).filter(is_match).collect();
                for known in [Evaluated::default(), evaluated] {
                    let mut matched = Vec::new();
                    set.visit_evaluated(payload, &known, |id| matched.push(id));
                    matched.sort_unstable();
                    prop_assert_eq!(&matched, &expected, "{}", payload.escape_ascii());
                }
            }
        }
    }

    #[test]
    fn changed_json_agrees_with_the_naive_evaluator(
        node in node(),
        payload in payload(),
        changes in changes(),
    ) {
        let bytes = changed(&payload, &changes);
        let filter = Filter::new(&expression(&node), &limits()).expect("the text is a filter");
        let is_match = filter.matches(&bytes);
        if serde_json::from_slice::<Value>(&bytes).is_ok() {
            let text = bytes.escape_ascii();
            prop_assert_eq!(is_match, oracle::matches(&node, &bytes), "{} of {}", expression(&node), text);
        }
    }

    #[test]
    fn a_value_that_is_not_json_is_absent(
        payload in payload(),
        changes in changes(),
    ) {
        let bytes = changed(&payload, &changes);
        let [mut text, key] = [br#"{"k":"#.to_vec(), b"}".to_vec()];
        text.extend_from_slice(&bytes);
        text.extend_from_slice(&key);
        let is_scalar = matches!(
            serde_json::from_slice(&bytes),
            Ok(Value::Bool(_) | Value::Null | Value::Number(_) | Value::String(_))
        );
        let filter = Filter::new("k == 'x' || k != 'x'", &limits()).expect("the text is a filter");
        let is_container = matches!(bytes.trim_ascii().first(), Some(b'[' | b'{'));
        // The inserted text may contain more than one value.
        if !is_container && !bytes.iter().any(|byte| b",:{}[]".contains(byte)) {
            prop_assert_eq!(filter.matches(&text), is_scalar, "{}", text.escape_ascii());
        }
    }

    #[test]
    fn no_text_panics_and_errors_have_a_position(text in any::<String>()) {
        if let Err(error) = parse(&text, &Limits::default()) {
            prop_assert!((1..=text.chars().count() + 1).contains(&error.column), "{}", error);
        }
    }
}
