//! Tests of filter sets: filters that an index finds, and filters that it does not.

use std::sync::Arc;

use linerate_filter::{Evaluated, Filter, FilterSet, Limits};

fn set(texts: &[&str]) -> FilterSet {
    let mut set = FilterSet::default();
    for (id, text) in texts.iter().enumerate() {
        set.insert(
            id,
            Arc::new(Filter::new(text, &Limits::default()).expect("the text is a filter")),
        );
    }
    set
}

fn matched(set: &FilterSet, payload: &str) -> Vec<usize> {
    let mut matched = Vec::new();
    set.visit(payload.as_bytes(), |id| matched.push(id));
    matched.sort_unstable();
    matched
}

#[test]
fn filters_are_found_by_every_kind_of_constant() {
    let set = set(&[
        r#"a == "x""#,
        "a == 1",
        "1.0 == a",
        "a == true",
        "a == null",
        "a == 1.5",
        r#"a in ["x", 1, "x"]"#,
        r#"a == "x" && b > 1"#,
        "a != 1",
        "data == 7",
        "a == 18446744073709551615u",
    ]);
    for (payload, expected) in [
        (r#"{"a":"x"}"#, &[0, 6, 8][..]),
        (r#"{"a":"\u0078","b":2}"#, &[0, 6, 7, 8]),
        (r#"{"a":1}"#, &[1, 2, 6]),
        (r#"{"a":1.0e0}"#, &[1, 2, 6]),
        (r#"{"a":true}"#, &[3, 8]),
        (r#"{"a":null}"#, &[4, 8]),
        (r#"{"a":1.5}"#, &[5, 8]),
        (r#"{"a":18446744073709551615}"#, &[8, 10]),
        (r#"{"a":["x"]}"#, &[8]),
        ("{}", &[]),
        ("7", &[9]),
        (r#"{"a":1"#, &[]),
    ] {
        assert_eq!(matched(&set, payload), expected, "{payload}");
    }
}

#[test]
fn many_fields_of_one_object_are_found() {
    let name = |number: usize| format!("{}{number}", "n".repeat(number));
    let texts: Vec<String> = (0..20)
        .map(|number| format!("{} == {number}", name(number + 1)))
        .collect();
    let mut set = set(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let fields: Vec<String> = (0..20)
        .map(|number| format!(r#""{}":{number}"#, name(number + 1)))
        .collect();
    let payload = format!("{{{}}}", fields.join(","));
    assert_eq!(matched(&set, &payload), (0..20).collect::<Vec<_>>());
    (0..20).step_by(2).for_each(|id| set.remove(id));
    let odd: Vec<usize> = (1..20).step_by(2).collect();
    assert_eq!(matched(&set, &payload), odd);
}

#[test]
fn a_removed_or_replaced_filter_no_longer_matches() {
    let mut set = set(&["a == 1", "a == 1 && b == 2", "b == 2", "a > 0"]);
    let payload = r#"{"a":1,"b":2}"#;
    assert_eq!(matched(&set, payload), [0, 1, 2, 3]);
    set.remove(0);
    set.remove(0);
    set.remove(100);
    assert_eq!(matched(&set, payload), [1, 2, 3]);
    set.insert(
        2,
        Arc::new(Filter::new("c.d == 3", &Limits::default()).unwrap()),
    );
    assert_eq!(matched(&set, payload), [1, 3]);
    assert_eq!(matched(&set, r#"{"c":{"d":3}}"#), [2]);
    set.remove(1);
    set.remove(2);
    set.remove(3);
    assert!(set.is_empty());
    assert_eq!(matched(&set, payload), [0; 0]);
}

#[test]
fn evaluation_in_slices_respects_added_and_removed_filters() {
    let mut set = set(&["a > 0", "a > 1", "a > 2", "a == 2", "a < 3"]);
    let (payload, mut known) = (br#"{"a":2}"#, Evaluated::default());
    assert!(!set.evaluate(payload, &mut known, || true));
    let mut slices = 2;
    set.remove(1);
    set.remove(3);
    for (id, text) in [(0, "a > 7"), (1, "a != 7"), (5, "a <= 2")] {
        set.insert(id, Arc::new(Filter::new(text, &Limits::default()).unwrap()));
    }
    while !set.evaluate(payload, &mut known, || true) {
        slices += 1;
    }
    assert_eq!(slices, 6, "one filter per slice");
    let mut in_slices = Vec::new();
    set.visit_evaluated(payload, &known, |id| in_slices.push(id));
    in_slices.sort_unstable();
    assert_eq!(in_slices, [1, 4, 5]);
    assert_eq!(matched(&set, r#"{"a":2}"#), in_slices);
    assert!(set.evaluate(b"{", &mut Evaluated::default(), || true));
}

#[test]
fn evaluation_in_slices_continues_within_a_filter() {
    let text =
        "size(a) == 3 && !a.contains('x') && 'b' in l && !(2 in l) && (a == b || a.endsWith('c'))";
    let set = set(&[text, "a != 1"]);
    let payload = br#"{"a":"abc","b":"","l":["b",1]}"#;
    let (mut known, mut slices) = (Evaluated::default(), 1);
    while !set.evaluate(payload, &mut known, || true) {
        slices += 1;
    }
    assert_eq!(
        slices, 8,
        "one operation that may search per slice, or one filter without searches"
    );
    let mut matched = Vec::new();
    set.visit_evaluated(payload, &known, |id| matched.push(id));
    assert_eq!(matched, [0, 1]);
    let mut asked = 0;
    let mut after_three = || {
        asked += 1;
        asked == 3
    };
    let mut known = Evaluated::default();
    assert!(!set.evaluate(payload, &mut known, &mut after_three));
    assert!(set.evaluate(payload, &mut known, || false));
}

#[test]
fn evaluation_in_slices_advances_without_payload_searches() {
    // Operations that count as searches, but whose operands make them cost nothing.
    let set = set(&[
        "size('abc') == 3",
        "('a' == 'b') != true",
        "'abc'.startsWith('a') && 'b' == 'b'",
    ]);
    let (mut known, mut slices) = (Evaluated::default(), 1);
    while !set.evaluate(b"{}", &mut known, || true) {
        slices += 1;
        assert!(slices < 10, "evaluation makes no progress");
    }
    let mut matched = Vec::new();
    set.visit_evaluated(b"{}", &known, |id| matched.push(id));
    assert_eq!(matched, [0, 1, 2]);
}

#[test]
fn searches_are_counted_as_filters_come_and_go() {
    let mut set = set(&["a.contains('x')", "a == 1", "size(a) > 1"]);
    assert_eq!(set.searches(), 5);
    set.remove(0);
    set.remove(0);
    assert_eq!(set.searches(), 4);
    set.insert(
        2,
        Arc::new(Filter::new("a == b", &Limits::default()).unwrap()),
    );
    assert_eq!(set.searches(), 1);
}
