//! Tests of the filter language: what it supports, and the errors for everything else.

use linerate_filter::{DEPTH_MAX, Filter, Limits, ParseError, Problem};

fn matches(text: &str, payload: &str) -> bool {
    let filter =
        Filter::new(text, &Limits::default()).unwrap_or_else(|error| panic!("{text}: {error}"));
    filter.matches(payload.as_bytes())
}

fn refusal(text: &str) -> ParseError {
    Filter::new(text, &Limits::default()).expect_err(text)
}

#[test]
fn fields_are_variables_and_data_is_the_whole() {
    let payload =
        r#"{"level":"error","bytes":1500,"user":{"id":7,"tags":["a","b"]},"ratio":0.5,"in":true}"#;
    for text in [
        r#"level == "error" && bytes > 1000"#,
        "bytes > 1000.5",
        "ratio < 1",
        "user.id == 7u",
        "data.user.id in [6, 7,]",
        r#"data["level"] != "info""#,
        r#"data["in"]"#,
        r#""b" in user.tags"#,
        r#""id" in user"#,
        r#"user.tags[1] == 'b'"#,
        "size(user.tags) == 2 && user.size() == 2 && level.size() == 5",
        r#"level.startsWith("err") && level.contains("rr") && level.endsWith(r'or')"#,
        "has(data.user.id) && !has(data.user.name)",
        r#"missing == 1 || level == "error""#,
        "!(bytes <= 1000) && --bytes == 1500 && -bytes < 0 && !!true",
        "(bytes > 1) == true // a comment",
        "(user).id == 7 && (bytes) >= 0x5DC",
    ] {
        assert!(matches(text, payload), "{text}");
    }
    for text in [
        r#"level == "info""#,
        "bytes > 1500",
        "user.id == 8",
        "false",
        "1",
        "data",
        "bytes",
    ] {
        assert!(!matches(text, payload), "{text}");
    }
}

#[test]
fn errors_do_not_match_unless_the_other_operand_decides() {
    for payload in [
        "{}",
        r#"{"n":null}"#,
        r#"{"n":"2"}"#,
        r#"{"n":[2]}"#,
        "[1]",
        "7",
        "\"text\"",
    ] {
        assert!(
            !matches("n > 1", payload) && !matches("!(n > 1)", payload),
            "{payload}"
        );
        assert!(matches("n > 1 || true", payload) && matches("true || n > 1", payload));
        assert!(matches("!(n > 1 && false)", payload) && matches("!(false && n > 1)", payload));
        assert!(!matches("n > 1 || false", payload) && !matches("n > 1 && true", payload));
    }
    for text in [
        "-a == 0",
        "-b > 0",
        "a.c == 1",
        "a[0] == 1",
        "!a",
        "a && true",
        "size(b) == 1",
        "a.contains('x')",
    ] {
        assert!(
            !matches(text, r#"{"a":{"b":1},"b":18446744073709551615}"#),
            "{text}"
        );
    }
    assert!(!matches("has(data.x.y)", "{}") && !matches("!has(data.x.y)", "{}"));
}

#[test]
fn values_of_different_types_are_different_and_lists_are_not_compared() {
    assert!(matches("a != 1 && a != null && a != true", r#"{"a":"1"}"#));
    for text in ["a == b", "a != b", "a in c", "b == a"] {
        assert!(!matches(text, r#"{"a":[1],"b":[1],"c":[[1]]}"#), "{text}");
    }
    assert!(matches("a != b", r#"{"a":[1],"b":{}}"#));
    assert!(matches("b in c", r#"{"b":1,"c":[[1],1]}"#));
}

#[test]
fn numbers_in_different_notations_compare_by_value() {
    assert!(matches("a == 1.0 && a < 1.5", r#"{"a":1}"#));
    assert!(matches("a == 1 && a in [1]", r#"{"a":1.0}"#));
    assert!(matches(
        "a > 9223372036854775807",
        r#"{"a":18446744073709551615}"#
    ));
    assert!(matches(
        "a == -9223372036854775808",
        r#"{"a":-9223372036854775808}"#
    ));
    assert!(!matches(
        "a == 9007199254740992.0",
        r#"{"a":9007199254740993}"#
    ));
}

#[test]
fn the_last_of_several_fields_of_one_name_counts() {
    let payload = r#"{"a":{"b":1,"c":2},"a":{"b":3},"x":1,"x":[2]}"#;
    assert!(matches(
        "a.b == 3 && !has(data.a.c) && x[0] == 2 && size(data) == 2",
        payload
    ));
    assert!(!matches("a.c == 2", payload));
    assert!(!matches("a.b == 1", r#"{"a":{"b":1},"a":7}"#));
}

#[test]
fn a_field_is_found_at_any_position_with_a_name_of_any_length() {
    for length in [0, 1, 2, 7, 60, 61, 62, 63, 64, 65, 130] {
        let (name, other) = ("k".repeat(length), "x".repeat(length));
        let filter = format!("data['{name}'] == 1");
        for offset in 0..130 {
            let blanks = " ".repeat(offset);
            for colon in [":", " :", ": ", "\n:\t"] {
                let payload = |last: &str| {
                    format!(r#"{{"a":"{name}",{blanks}"{other}"{colon}[2],"{last}"{colon}1}}"#)
                };
                let payloads = [payload(&name), payload("\\u006b")];
                assert!(matches(&filter, &payloads[0]), "{length} at {offset}");
                assert_eq!(matches(&filter, &payloads[1]), length == 1, "{length}");
            }
        }
    }
    // A JSON string contains no unescaped control characters.
    assert!(matches(r#"data["a\tb"] == 1"#, r#"{"a\tb":1}"#));
    assert!(!matches(r#"data["a\tb"] == 1"#, "{\"a\tb\":1}"));
}

#[test]
fn a_payload_that_is_not_one_value_matches_nothing_whatever_is_asked_of_it() {
    for payload in [
        &b""[..],
        b" ",
        b"no JSON",
        b"\xff\xfe",
        b"1 2",
        b"1,",
        b"{\"a\":1",
        b"{\"a\":1} x",
        b"{\"a\":1}}",
        b"{\"a\":1,\"b\":[}",
        b"{\"a\":1,\"b\":[1}]",
        b"{\"a\":1,\"b\":\"}",
        b"{\"a\":1,\"b\":\\}",
    ] {
        for text in ["a == 1", "true", "b == 2 || a == 1"] {
            let filter = Filter::new(text, &Limits::default()).unwrap();
            assert!(!filter.matches(payload), "{text} of {payload:?}");
        }
    }
}

#[test]
fn only_referenced_values_must_be_json() {
    for b in [
        &b"01"[..],
        b"1e999",
        b"-",
        b"truex",
        b"",
        b"1 2",
        b"\"\xff\"",
        b"\"\n\"",
        b"\"\\ud800\"",
        b"\"x\" 1",
        b"[] 1",
        b"1:2",
    ] {
        let payload = [b"{\"a\":1,\"b\":", b, b"}"].concat();
        let shown = payload.escape_ascii();
        for (text, expected) in [("a == 1", true), ("b != 7", false), ("has(data.b)", false)] {
            let filter = Filter::new(text, &Limits::default()).unwrap();
            assert_eq!(filter.matches(&payload), expected, "{text} of {shown}");
        }
    }
    // A key is a string between an opening bracket or a comma, and a colon.
    for payload in [
        r#"{"x" "a":1}"#,
        r#"{"a" x:1}"#,
        r#"{a:1}"#,
        r#"{"x":"a":1}"#,
        r#"{"a"}"#,
        "{\"a\\u0\":1}",
        r#"{"a"[]:1}"#,
    ] {
        assert!(!matches("a == 1", payload), "{payload}");
    }
    assert!(matches("a == 1", "{ ,\n\"a\" :\t1 ,}"));
    // Elements are separated by commas.
    assert!(matches(
        "a[1] == 2 && size(a) == 3 && 2 in a",
        r#"{"a":[x,2,]}"#
    ));
    assert!(!matches(
        "a[0] != 7 || 3 in a || !(3 in a)",
        r#"{"a":[x,2,]}"#
    ));
}

#[test]
fn unsupported_constructs_are_reported_with_their_position() {
    let unsupported = |construct| Problem::Unsupported { construct };
    for (text, column, problem) in [
        ("a + 1 > 2", 3, unsupported("arithmetic")),
        ("a -1 > 2", 3, unsupported("arithmetic")),
        ("a % 2 == 0", 3, unsupported("arithmetic")),
        ("a ? b : c", 3, unsupported("the conditional operator ? :")),
        (
            "a.exists(x, x == 1)",
            3,
            unsupported("a macro that iterates over a list"),
        ),
        (
            "a.b.map(x, x)",
            5,
            unsupported("a macro that iterates over a list"),
        ),
        ("[1] == a", 1, unsupported("a list anywhere but after in")),
        ("{'a': 1} == a", 1, unsupported("constructing a map")),
        ("a{b: 1}", 2, unsupported("constructing a message")),
        ("a == b'x'", 6, unsupported("a bytes literal")),
        (
            "'x'.y == 1",
            4,
            unsupported("a field or index of an expression other than a field"),
        ),
        (
            "a.matches('x')",
            3,
            Problem::Function {
                function: "matches".into(),
            },
        ),
        (
            "int(a) == 1",
            1,
            Problem::Function {
                function: "int".into(),
            },
        ),
        ("for == 1", 1, Problem::Reserved { word: "for" }),
        ("ü == 1", 1, Problem::Character('ü')),
        ("'ü' == §", 8, Problem::Character('§')),
        ("a == 'x", 6, Problem::UnclosedString),
        (r"a == 'x\q'", 8, Problem::Escape),
        ("a == 9223372036854775808", 6, Problem::Number),
        ("a == -1u", 7, Problem::Number),
        ("", 1, Problem::Empty),
        (" // nothing", 12, Problem::Empty),
    ] {
        assert_eq!(refusal(text), ParseError { column, problem }, "{text}");
    }
}

#[test]
fn syntax_errors_report_what_was_expected() {
    for (text, message) in [
        ("a = 1", "column 3: found =, expected =="),
        (
            "a == ",
            "column 6: found the end, expected a field, a constant, a function or (",
        ),
        ("a == 1 &&& b", "column 10: unexpected character '&'"),
        ("(a == 1", "column 8: found the end, expected )"),
        (
            "a == 1)",
            "column 7: found ), expected an operator or the end",
        ),
        (
            "a b",
            "column 3: found a name, expected an operator or the end",
        ),
        (
            "a in 5",
            "column 6: found another expression, expected a list of constants or a field after in",
        ),
        (
            "a in [b]",
            "column 7: found a name, expected a constant; a list holds only constants",
        ),
        (
            "a[b] == 1",
            "column 3: found a name, expected an integer or a string as an index",
        ),
        (
            "a. == 1",
            "column 4: found ==, expected the name of a field or a function",
        ),
        (
            "has(a)",
            "column 1: has takes a field after a dot, as in has(data.level)",
        ),
        (
            "has(a['b'])",
            "column 1: has takes a field after a dot, as in has(data.level)",
        ),
        (
            "has()",
            "column 5: has takes a field after a dot, as in has(data.level)",
        ),
        (
            "size(a, b)",
            "column 7: size takes one string, list or object",
        ),
        ("a.contains()", "column 12: contains takes one string"),
    ] {
        assert_eq!(refusal(text).to_string(), message, "{text}");
    }
    let message = refusal("startsWith(a, 'b')").to_string();
    assert!(message.contains("path.startsWith"), "{message}");
}

#[test]
fn limits_are_named_with_what_was_found() {
    let limits = Limits::default();
    let long = |bytes: usize| format!("a == '{}'", "x".repeat(bytes - 7));
    assert!(Filter::new(&long(1_024), &limits).is_ok());
    let message = refusal(&long(1_025)).to_string();
    assert!(
        message.contains("1025") && message.contains("1024"),
        "{message}"
    );

    let many = |names: usize| vec!["a"; names].join("||");
    assert!(Filter::new(&many(32), &limits).is_ok());
    let problem = Problem::TooManyNodes { nodes_max: 64 };
    assert_eq!(
        refusal(&many(33)),
        ParseError {
            column: 97,
            problem
        }
    );

    let nested = |depth: usize| format!("{}true{}", "(".repeat(depth), ")".repeat(depth));
    let limits = Limits::new(10_000, 10_000);
    assert!(Filter::new(&nested(DEPTH_MAX), &limits).is_ok());
    let error = Filter::new(&nested(DEPTH_MAX + 1), &limits).unwrap_err();
    let depth_max = DEPTH_MAX;
    assert_eq!(error.problem, Problem::TooDeep { depth_max });
    let compared = |count: usize| vec!["true"; count + 1].join("==");
    assert!(Filter::new(&compared(DEPTH_MAX), &limits).is_ok());
    assert_eq!(
        Filter::new(&compared(DEPTH_MAX + 1), &limits)
            .unwrap_err()
            .problem,
        Problem::TooDeep { depth_max }
    );
}

#[test]
fn hostile_texts_are_refused_or_harmless_without_deep_recursion() {
    let limits = Limits::new(1 << 20, 1 << 20);
    for text in [
        "(",
        "!",
        "-",
        "- ",
        "[",
        "a[",
        "a.",
        "a||",
        "(a||b)&&",
        "size(",
        "has(",
        "a==",
        "\"",
        "\\",
        "\0",
        "🦀",
        "{1:",
        "a in [",
        "a?b:",
        "'''",
        "//",
        "a.exists(x,",
        "(((((a)))))&&",
        "a.contains(",
        "1",
        "0x",
        "-(",
        "!(",
        "1.e",
    ] {
        let hostile = text.repeat(100_000 / text.len());
        let closed = format!("{hostile}a{}", ")".repeat(50_000));
        for text in [hostile, closed] {
            if let Ok(filter) = Filter::new(&text, &limits) {
                filter.matches(br#"{"a":1}"#);
            }
        }
    }
}
