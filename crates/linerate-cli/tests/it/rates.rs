//! Tests of `linerate logs --limit`.

use std::process::Output;

use serde_json::{Value, json};

use crate::support::{linerate, run_with_input};

fn logs(arguments: &[&str], input: &str) -> Output {
    let mut command = linerate(&["logs", "-"]);
    run_with_input(command.args(arguments), input.as_bytes())
}

fn text(arguments: &[&str], input: &str) -> String {
    let output = logs(arguments, input);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn error(arguments: &[&str]) -> String {
    let output = logs(arguments, "");
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

fn asns() -> &'static str {
    concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../linerate-logview/tests/data/asns.mmdb"
    )
}

/// Ten requests of a program in ten seconds, in reverse order, and one of another client.
fn log(agent: &str) -> String {
    let line = |address: &str, second: u32, agent: &str| {
        format!(
            "{address} - - [22/Jan/2021:01:47:{second:02} +0000] \"GET /a HTTP/1.1\" 200 5 \
             \"-\" \"{agent}\"\n"
        )
    };
    let program = (0..10).rev().map(|second| line("192.0.2.7", second, agent));
    program.chain([line("2001:db8::1", 5, "t")]).collect()
}

#[test]
fn clients_over_a_limit_are_listed_as_text_and_as_json() {
    let arguments = ["--limit", "4/5s"];
    let found = text(&[&arguments[..], &["--json"]].concat(), &log("t"));
    let found: Value = serde_json::from_str(&found).unwrap();
    assert_eq!(
        (&found["keys"], &found["requests"]),
        (&json!(2), &json!(11))
    );
    let limited = &found["limited"][0];
    assert_eq!(limited["value"], "192.0.2.7");
    assert_eq!((&limited["over"], &limited["peak"]), (&json!(6), &json!(5)));
    assert_eq!(limited["times"], 1);
    let curve = found["curve"].as_array().unwrap();
    let over: Vec<_> = curve
        .iter()
        .map(|it| it["over"].as_u64().unwrap())
        .collect();
    assert_eq!(over, [9, 8, 7, 6, 0]);
    let found = text(&arguments, &log("t"));
    assert!(
        found.contains("4 requests in any 5 s by address\n"),
        "{found}"
    );
    assert!(
        found.contains("2021-01-22 01:47:04 UTC  192.0.2.7\n"),
        "{found}"
    );
    let filtered = text(
        &[
            "--limit",
            "4/5s",
            "--filter",
            "address != \"192.0.2.7\"",
            "--json",
        ],
        &log("t"),
    );
    assert!(filtered.contains(r#""limited":[]"#), "{filtered}");
}

#[test]
fn requests_are_counted_by_each_key() {
    for (by, value) in [
        ("network", "192.0.2.0/24"),
        ("agent", "curl/8"),
        ("asn", "AS64496 Example"),
    ] {
        let arguments = ["--limit", "4/5s", "--by", by];
        let asn = ["--asn", asns()];
        let arguments = match by {
            "asn" => [&arguments[..], &asn].concat(),
            _ => arguments.to_vec(),
        };
        let found = text(&arguments, &log("curl/8"));
        assert!(found.contains(&format!("  {value}\n")), "{by}: {found}");
    }
    assert!(error(&["--limit", "4/5s", "--by", "asn"]).contains("add --asn FILE"));
}

#[test]
fn rules_are_exported_and_cannot_be_extended_by_a_log() {
    let hostile = r#"x\"; } deny all; $x \n `"#;
    let blocked = [
        "192.0.2.7/32",
        "192.0.2.7/32",
        "192.0.2.7/32",
        "192.0.2.7/32",
    ];
    for (program, blocked) in ["nginx", "nftables", "haproxy", "caddy"]
        .into_iter()
        .zip(blocked)
    {
        let arguments = ["--limit", "4/5s", "--export", program];
        let rules = text(&arguments, &log(hostile));
        assert!(rules.contains(blocked), "{program}: {rules}");
        assert!(!rules.contains("2001:db8::1"), "{program}: {rules}");
    }
    for program in ["nginx", "haproxy", "caddy"] {
        let arguments = ["--limit", "4/5s", "--by", "agent", "--export", program];
        let rules = text(&arguments, &log(hostile));
        assert!(rules.contains("\\x7d"), "{program}: {rules}");
        assert!(!rules.contains("deny all;"), "{program}: {rules}");
        assert!(!rules.contains("$x"), "{program}: {rules}");
    }
    let arguments = ["--limit", "4/5s", "--by", "agent", "--export", "nftables"];
    let output = logs(&arguments, &log("t"));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("nftables cannot limit by agent"), "{said}");
}

#[test]
fn impossible_limits_are_refused_with_the_reason() {
    for (limit, reason) in [
        ("60", "60/60s"),
        ("0/60s", "allows 0 requests"),
        ("60/0s", "window of 0 s"),
        ("60/25h", "window of 90000 s"),
    ] {
        let said = error(&["--limit", limit]);
        assert!(said.contains(reason), "{said}");
    }
    for others in [&["--export", "nginx"][..], &["--by", "agent"]] {
        assert!(error(others).contains("--limit"));
    }
}
