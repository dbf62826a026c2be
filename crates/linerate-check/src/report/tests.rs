use super::*;
use crate::{
    case::{Case, Expect, Input, Opening, Verdict},
    judge::Judgement,
    outcome::Outcome,
};

fn row() -> Row {
    let case = |name: &str| Case {
        name: name.into(),
        input: Input {
            opening: Opening::WebSocket,
            stages: Vec::new(),
            ends: false,
        },
        expect: Expect::End {
            otherwise: Verdict::Permitted,
        },
    };
    Row {
        id: "F04",
        title: "frames <without> a mask",
        section: "RFC 6455 §5.1",
        required: "close, 1002",
        cases: vec![case("text"), case("ping"), case("close")],
    }
}

fn finding(case: usize, verdict: Verdict, why: &str) -> Finding {
    Finding {
        row: 0,
        case,
        sent: b"\x81\x00".to_vec(),
        outcome: Outcome::default(),
        judgement: Judgement {
            verdict,
            why: why.into(),
        },
    }
}

fn findings() -> [Finding; 3] {
    [
        finding(0, Verdict::Wrong, "it was accepted as a message"),
        finding(1, Verdict::Right, ""),
        finding(2, Verdict::NotApplicable, "no compression"),
    ]
}

fn with_report<T>(use_it: impl FnOnce(&Report<'_>) -> T) -> T {
    let (rows, findings) = ([row()], findings());
    use_it(&Report {
        name: "ws://a/",
        rows: &rows,
        findings: &findings,
        left_out: &["R, without --stress".to_owned()],
        process: None,
    })
}

#[test]
fn the_text_says_what_was_sent_and_what_is_required() {
    let text = with_report(text);
    for part in [
        "F04 wrong: frames <without> a mask",
        "required   close, 1002 (RFC 6455 §5.1)",
        "F04/text: it was accepted as a message",
        "sent       8100",
        "Left out: R, without --stress.",
        "Not applicable (1): no compression.",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    let all = text.lines().last().unwrap();
    let numbers: Vec<&str> = all.split_whitespace().collect();
    assert_eq!(numbers, ["all", "3", "1", "0", "1", "0", "1"]);
}

#[test]
fn the_page_refers_to_nothing_and_escapes() {
    let page = with_report(html);
    assert!(page.contains("frames &lt;without&gt; a mask"));
    assert!(page.contains("<details open>"));
    for reference in ["<link", "src=", "url(", "<script"] {
        assert!(!page.contains(reference), "{reference}");
    }
}

#[test]
fn lines_are_json() {
    let line = line(&row(), &findings()[0]);
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(line["row"], "F04");
    assert_eq!(line["verdict"], "wrong");
    assert_eq!(line["sent"], "8100");
    let summary = with_report(summary_line);
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["areas"]["framing"]["wrong"], 1);
    assert_eq!(summary["all"]["not applicable"], 1);
}
