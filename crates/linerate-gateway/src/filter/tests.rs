//! Tests of filters: what they see, and what they may cost.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use linerate_hub::Publication;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{FilterError, Filters};
use crate::config::FilterOptions;

fn filters() -> Filters {
    Filters::new(FilterOptions::default())
}

fn sees(expression: &str, payload: &[u8]) -> bool {
    let filter = filters().compile(expression).unwrap();
    filter.matches(&Publication::new(Bytes::copy_from_slice(payload)))
}

fn refusal(expression: &str) -> FilterError {
    filters().compile(expression).unwrap_err()
}

#[test]
fn fields_are_variables_and_data_is_the_whole() {
    let payload = br#"{"level":"error","bytes":1500,"user":{"id":7,"tags":["a","b"]},"ratio":0.5}"#;
    for expression in [
        r#"level == "error" && bytes > 1000"#,
        "bytes > 1000.5",
        "ratio < 1",
        "user.id == 7",
        "data.user.id in [6, 7]",
        r#"data["level"] != "info""#,
        r#""b" in user.tags"#,
        "size(user.tags) == 2",
        r#"level.startsWith("err") && level.contains("rr")"#,
        r#"user.tags.exists(tag, tag == "b")"#,
        "user.tags.all(tag, size(tag) == bytes / 1500)",
        "has(data.user.id) && !has(data.user.name)",
        r#"missing == 1 || level == "error""#,
        r#"level == "info" ? false : true"#,
    ] {
        assert!(sees(expression, payload), "{expression}");
    }
    for expression in [
        r#"level == "info""#,
        "bytes > 1500",
        "user.id == 8",
        "false",
    ] {
        assert!(!sees(expression, payload), "{expression}");
    }
}

#[test]
fn numbers_of_different_kinds_compare_by_value() {
    assert!(sees("a == 1.0", b"{\"a\":1}"));
    assert!(sees(
        "a > 9223372036854775807",
        b"{\"a\":18446744073709551615}"
    ));
    assert!(sees("a == 1", b"{\"a\":1.0}"));
    assert!(sees("a > 1", b"{\"a\":1e300}"));
}

#[test]
fn what_is_missing_or_of_another_type_is_no_match() {
    for payload in [
        &b"{}"[..],
        b"{\"bytes\":null}",
        b"{\"bytes\":\"2000\"}",
        b"{\"bytes\":[2000]}",
        b"[1]",
        b"7",
        b"\"text\"",
        b"",
        b"no JSON",
        b"\xff\xfe",
    ] {
        assert!(!sees("bytes > 1000", payload));
        assert!(!sees("!(bytes > 1000)", payload) || payload == b"{}");
    }
    for expression in [
        "1",
        "\"true\"",
        "data",
        "1 / 0 == 1",
        "a[7] == 1",
        "-(-9223372036854775807 - 1) > 0",
    ] {
        assert!(!sees(expression, b"{\"a\":[1]}"), "{expression}");
    }
}

#[test]
fn payloads_that_are_no_objects_are_data() {
    assert!(sees("data > 5", b"7"));
    assert!(sees("data[0] == \"a\"", b"[\"a\"]"));
}

#[test]
fn the_same_text_is_the_same_filter_and_the_cache_is_bounded() {
    let options = FilterOptions {
        cache_max: 2,
        ..FilterOptions::default()
    };
    let filters = Filters::new(options);
    let first = filters.compile("a == 1").unwrap();
    assert!(Arc::ptr_eq(&first, &filters.compile(" a == 1\n").unwrap()));
    for i in 0..10 {
        drop(filters.compile(&format!("b == {i}")).unwrap());
    }
    assert!(filters.compiled.lock().unwrap().len() <= 2);
    assert!(
        Arc::ptr_eq(&first, &filters.compile("a == 1").unwrap()),
        "who is in use stays"
    );
}

#[test]
fn an_error_says_where() {
    let FilterError::Syntax { column, message } = refusal("a == 1 &&& b") else {
        panic!("no syntax error");
    };
    assert!(column >= 9 && !message.is_empty(), "{column}: {message}");
    assert_eq!(refusal("  "), FilterError::Empty);
}

#[test]
fn limits_are_named_with_what_was_found() {
    let limit = FilterOptions::default().expression_bytes_max;
    let long = format!("a == \"{}\"", "x".repeat(limit - 7));
    assert!(filters().compile(&long).is_ok());
    let error = refusal(&format!("{long} || true")).to_string();
    assert!(error.contains("1032") && error.contains("1024"), "{error}");

    let many = |count: usize| vec!["a"; count].join(" || ");
    assert!(filters().compile(&many(32)).is_ok());
    let error = refusal(&many(33)).to_string();
    assert!(
        error.contains("65 nodes") && error.contains("64"),
        "{error}"
    );
}

#[test]
fn what_could_cost_much_is_refused() {
    for (expression, error) in [
        ("a.map(x, x) == []", FilterError::UnknownMacro),
        ("a.filter(x, x > 1) == []", FilterError::UnknownMacro),
        (
            "a.exists(x, a.exists(y, x == y))",
            FilterError::NestedMacros,
        ),
        (
            "a.exists(x, x.all(y, y.exists(z, z)))",
            FilterError::NestedMacros,
        ),
        ("a.exists(x, x in data.a)", FilterError::WholeInMacro),
    ] {
        assert_eq!(refusal(expression), error, "{expression}");
    }
    for expression in [
        "a.matches(\"(a+)+$\")",
        "matches(a, \"a\")",
        "type(a)",
        "a{b: 1}",
        "f(1)",
    ] {
        let error = refusal(expression);
        assert!(
            matches!(error, FilterError::Function { .. }),
            "{expression}: {error}"
        );
    }
}

/// Publishes something large to an expression that tries to make the most of it.
fn cost(expression: &str, payload: &Value) -> Duration {
    let filter = filters().compile(expression).unwrap();
    let publication = Publication::new(payload.to_string().into());
    assert!(publication.value().is_some());
    let started = Instant::now();
    filter.matches(&publication);
    started.elapsed()
}

#[test]
fn cost_bombs_fizzle() {
    let texts: Vec<String> = (0..900).map(|i| format!("{i:064}")).collect();
    let payload = json!({
        "list": texts, "same": texts, "text": "a".repeat(60_000), "short": "a".repeat(1_000),
        "deep": (0..100).fold(json!(1), |inner, _| json!([inner])),
    });
    for expression in [
        "list.exists(x, x in list)".to_owned(),
        "list.all(x, list == same)".to_owned(),
        "list.exists(x, text.contains(x))".to_owned(),
        "list.exists(x, (short + short + short + short).contains(x + \"b\"))".to_owned(),
        format!("list.exists(x, {})", ["x == short"; 12].join(" || ")),
        format!("({}).contains(\"b\")", ["text"; 24].join(" + ")),
        ["data == list"; 16].join(" || "),
        "deep == deep".to_owned(),
    ] {
        // Generous, for a busy machine without optimisation; a bomb that goes off takes minutes.
        let time = cost(&expression, &payload);
        assert!(time < Duration::from_secs(5), "{expression}: {time:?}");
    }
}

#[test]
fn a_publication_with_too_many_values_is_no_match() {
    let values_max = FilterOptions::default().values_max;
    let list = |count: usize| format!("{{\"a\":[{}]}}", vec!["1"; count].join(","));
    assert!(sees("size(a) > 1", list(values_max - 1).as_bytes()));
    assert!(!sees("size(a) > 1", list(values_max).as_bytes()));
    assert!(!sees("size(data) > 0", list(values_max).as_bytes()));
    // Only what the expression looks at counts.
    let other = format!("{{\"b\":1,{}", &list(100_000)[1..]);
    assert!(sees("b == 1", other.as_bytes()));
}

#[test]
fn syntax_bombs_fizzle() {
    for bomb in [
        "(".repeat(1_000),
        "(".repeat(16),
        format!("{}1", "((((a==".repeat(4)),
        "(a||b)&&".repeat(120),
        format!("{}1", "([{a:".repeat(5)),
        format!("{}1{}", "f(".repeat(17), ")".repeat(17)),
        format!("{}1{}", "(".repeat(500), ")".repeat(500)),
        "[".repeat(1_000),
        format!("{}1{}", "[".repeat(500), "]".repeat(500)),
        "!".repeat(1_000),
        "-".repeat(1_000),
        format!("{}1", "- -".repeat(300)),
        "a?".repeat(500),
        "a?b:".repeat(250),
        "a.b".repeat(300),
        "{1:".repeat(300),
        "a.exists(x,".repeat(90),
        "\"".repeat(999),
        "\\".repeat(999),
        "\u{0}".repeat(999),
        "🦀".repeat(250),
        "a &&".repeat(250),
        "1+".repeat(500) + "1",
    ] {
        let started = Instant::now();
        // Some are legal, as many signs that cancel each other.
        drop(filters().compile(&bomb));
        let time = started.elapsed();
        assert!(time < Duration::from_secs(10), "{time:?}: {bomb}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_expression_and_no_payload_end_the_worker(
        expression in r#"[a-c0-9.<>=!&|+*/%?:()\[\]{}"', -]{0,40}"#,
        payload in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        if let Ok(filter) = filters().compile(&expression) {
            filter.matches(&Publication::new(payload.into()));
            let json = r#"{"a":[1,"b",null],"b":{"c":1.5},"c":-9223372036854775808}"#;
            filter.matches(&Publication::new(json.into()));
        }
    }
}
