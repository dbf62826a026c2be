//! Questions about figures.

use std::time::Duration;

use serde_json::{Value, json};

use super::flow::{Client, LINE, types};
use crate::session::{Limits, Outcome, SessionError, question::QUESTIONS_MAX};

const QUERY: &str = r#"{"type":"query","seq":7,"query":{}}"#;
const ROWS: &str = r#"{"type":"rows","seq":8,"query":{},"offset":0,"limit":100}"#;

/// Asks for the requests with a status, and returns the summary of the only reply.
fn figures_of(client: &mut Client, status: &str) -> Value {
    let filters = [format!("status == {status}")];
    let query = json!({"type": "query", "seq": 9, "query": {"filters": filters}});
    let mut replies = client.say(&query.to_string());
    assert_eq!(
        (types(&replies), &replies[0]["seq"]),
        (vec!["figures"], &9.into())
    );
    replies[0]["summary"].take()
}

#[test]
fn queries_are_answered_during_and_after_the_upload() {
    let mut client = Client::started(Limits::default(), 3 * LINE.len() as u64);
    client.send(LINE);
    assert_eq!(figures_of(&mut client, "200")["requests"], 1);
    client.send(&LINE.repeat(2));
    client.finish();
    assert_eq!(figures_of(&mut client, "200")["requests"], 3);
    assert_eq!(figures_of(&mut client, "404")["requests"], 0);
}

#[test]
fn changes_between_periods_are_explained() {
    let line = |minute: u32, path: &str| {
        format!(
            "192.0.2.7 - - [22/Jan/2021:01:{minute:02}:05 +0000] \"GET {path} HTTP/1.1\" 200 5\n"
        )
    };
    let log = line(1, "/a") + &line(2, "/a") + &line(2, "/b").repeat(40);
    let mut client = Client::started(Limits::default(), log.len() as u64);
    client.send(log.as_bytes());
    client.finish();
    let minute = 1_611_277_260;
    let mut ask = |filters: &[&str]| {
        let question = json!({"type": "changes", "seq": 6, "query": {
            "before": {"from": minute, "until": minute + 60},
            "after": {"from": minute + 60, "until": minute + 120},
            "filters": filters,
        }});
        // Each period is examined in a step of its own.
        assert!(client.say(&question.to_string()).is_empty());
        let mut replies = client.replies();
        assert_eq!(types(&replies), ["changes"]);
        assert_eq!(replies[0]["seq"], 6);
        replies[0]["changes"].take()
    };
    let all = ask(&[]);
    assert_eq!(all["difference"], 40.0);
    assert_eq!(
        all["values"],
        json!([{"field": "path", "value": "/b", "before": 0, "after": 40, "share": 1.0}])
    );
    let none = ask(&["path == \"/a\""]);
    assert_eq!(
        (&none["difference"], &none["values"]),
        (&json!(0.0), &json!([]))
    );
}

#[test]
fn a_long_comparison_reports_how_far_it_is_in_both_periods() {
    const REQUESTS: usize = 600_000;
    let mut client = Client::started(Limits::default(), (REQUESTS * LINE.len()) as u64);
    client.send(&LINE.repeat(REQUESTS));
    client.finish();
    let held = client.session.memory_bytes();
    let question = json!({"type": "changes", "seq": 5, "query": {
        "before": {"from": 0, "until": 2_000_000_000},
        "after": {"from": 0, "until": 2_000_000_000},
    }});
    assert!(client.say(&question.to_string()).is_empty());
    assert!(client.session.memory_bytes() > held);
    let mut fractions = Vec::new();
    let changes = loop {
        client.now += Duration::from_millis(200);
        let reply = client.session.poll_reply(client.now).unwrap();
        let reply: Value = serde_json::from_str(&reply).unwrap();
        match reply["fraction"].as_f64() {
            Some(fraction) => fractions.push(fraction),
            None => break reply,
        }
    };
    assert!(fractions.is_sorted(), "{fractions:?}");
    assert!(fractions.contains(&0.5), "{fractions:?}");
    assert!(fractions.iter().any(|it| *it > 0.8), "{fractions:?}");
    assert_eq!(changes["changes"]["after"]["requests"], REQUESTS);
    assert_eq!(client.session.memory_bytes(), held);
}

#[test]
fn unanswerable_query_is_refused_and_the_session_continues() {
    let mut client = Client::started(Limits::default(), LINE.len() as u64);
    for (question, seq, code) in [
        (
            r#"{"type":"query","seq":1,"query":{"top_max":1001}}"#,
            1,
            "top_too_long",
        ),
        (
            r#"{"type":"query","seq":2,"query":{"filters":"?"}}"#,
            2,
            "malformed",
        ),
        (
            r#"{"type":"query","seq":3,"query":{"conditions":[]}}"#,
            3,
            "malformed",
        ),
        (ROWS, 8, "rows_not_kept"),
        (
            r#"{"type":"changes","seq":4,"query":{"before":{"from":0,"until":1}}}"#,
            4,
            "malformed",
        ),
        (
            r#"{"type":"changes","seq":5,"query":{"before":{"from":0,"until":1},"after":{"from":9,"until":9}}}"#,
            5,
            "empty_period",
        ),
        (
            r#"{"type":"changes","seq":6,"query":{"before":{"from":0,"until":1},"after":{"from":8,"until":9},"top_max":1001}}"#,
            6,
            "top_too_long",
        ),
        (
            r#"{"type":"values","seq":7,"query":{"field":"path","top_max":201}}"#,
            7,
            "top_too_long",
        ),
        (
            r#"{"type":"values","seq":8,"query":{"field":"time"}}"#,
            8,
            "not_listed",
        ),
        (
            r#"{"type":"values","seq":9,"query":{"field":"path","by":"p50"}}"#,
            9,
            "malformed",
        ),
        (
            r#"{"type":"latency","seq":10,"query":{"filters":["x"]}}"#,
            10,
            "bad_filter",
        ),
    ] {
        let replies = client.say(question);
        assert_eq!(types(&replies), ["refused"]);
        assert_eq!(
            (&replies[0]["seq"], &replies[0]["code"]),
            (&seq.into(), &code.into())
        );
        assert!(replies[0]["message"].as_str().unwrap().len() > 10);
    }
    client.send(LINE);
    assert_eq!(client.finish()[0]["summary"]["requests"], 1);
}

#[test]
fn limits_of_requests_are_answered_or_refused() {
    let mut client = Client::started(Limits::default(), 3 * LINE.len() as u64);
    client.send(&LINE.repeat(3));
    let mut ask = |limit: Value, by: &str, rules: Value| {
        let rates = json!({"limit": limit, "by": by, "rules": rules});
        let question = json!({"type": "rates", "seq": 6, "query": {}, "rates": rates});
        let mut replies = client.say(&question.to_string());
        // The search has several steps.
        while client.session.poll_timeout() == Some(Duration::ZERO) {
            replies.extend(client.replies());
        }
        assert_eq!((replies.len(), &replies[0]["seq"]), (1, &6.into()));
        replies[0].take()
    };
    let limit = json!({"requests": 2, "seconds": 60});
    let answer = ask(limit.clone(), "address", json!("nginx"));
    assert_eq!(answer["rates"]["effect"]["over"], 1);
    let rules = answer["rates"]["rules"].as_str().unwrap();
    assert!(rules.contains("rate=2r/m"), "{rules}");
    assert_eq!(
        ask(limit.clone(), "network", Value::Null)["rates"]["keys"],
        1
    );
    for (limit, by, rules, code) in [
        (limit.clone(), "asn", Value::Null, "no_asns"),
        (limit.clone(), "agent", json!("nftables"), "no_such_rules"),
        (limit.clone(), "agent", json!("ufw"), "malformed"),
        (limit, "city", Value::Null, "malformed"),
        (
            json!({"requests": 0, "seconds": 60}),
            "address",
            Value::Null,
            "malformed",
        ),
        (
            json!({"requests": 1, "seconds": 86_401}),
            "address",
            Value::Null,
            "malformed",
        ),
    ] {
        let answer = ask(limit, by, rules);
        assert_eq!(answer["code"], code, "{answer}");
    }
}

#[test]
fn invalid_filter_is_refused_with_its_position() {
    let mut client = Client::started(Limits::default(), LINE.len() as u64);
    for (filters, filter, column) in [
        (json!(["true", "status =="]), 1, 10),
        (json!(["pth == 1", "true"]), 0, 1),
        (json!(["status == 200 && method == 1"]), 0, 18),
    ] {
        let question = json!({"type": "query", "seq": 5, "query": {"filters": filters}});
        let replies = client.say(&question.to_string());
        assert_eq!(replies[0]["code"], "bad_filter", "{}", replies[0]);
        assert_eq!(
            (&replies[0]["filter"], &replies[0]["column"]),
            (&filter.into(), &column.into())
        );
    }
}

#[test]
fn values_and_latencies_are_answered() {
    let mut client = Client::started(Limits::default(), LINE.len() as u64);
    client.send(LINE);
    client.finish();
    let question = json!({"type": "values", "seq": 1, "query": {
        "field": "status", "by": "bytes", "ascending": true, "filters": ["status == 200"],
    }});
    let replies = client.say(&question.to_string());
    assert_eq!(types(&replies), ["values"]);
    assert_eq!(replies[0]["list"]["values"][0]["value"], "200");
    assert_eq!(replies[0]["list"]["values"][0]["latency"], Value::Null);
    let replies = client.say(r#"{"type":"latency","seq":2,"query":{}}"#);
    assert_eq!(types(&replies), ["latency"]);
    assert_eq!(
        (
            &replies[0]["latency"]["counts"],
            &replies[0]["latency"]["p50_us"]
        ),
        (&json!([0]), &json!([null]))
    );
}

#[test]
fn lines_are_kept_on_request() {
    let mut client = Client::new(Limits::default());
    let files = [json!({"name": "a", "size": 3 * LINE.len()})];
    client.say(&json!({"type": "start", "files": files, "rows": true}).to_string());
    client.send(&LINE.repeat(3));
    client.finish();
    let mut wanted = json!({"type": "rows", "seq": 4, "query": {}, "offset": 1, "limit": 1});
    let replies = client.say(&wanted.to_string());
    let text = std::str::from_utf8(LINE).unwrap().trim_end();
    let rows = [json!({"line": 2, "text": text})];
    assert_eq!(
        replies,
        [json!({"type": "rows", "seq": 4, "total": 3, "rows": rows})]
    );
    wanted["containing"] = "hTTp/1".into();
    assert_eq!(client.say(&wanted.to_string()), replies);
    wanted["containing"] = "http/1.x".into();
    assert_eq!(client.say(&wanted.to_string())[0]["total"], 0);
    wanted["containing"] = "x".repeat(1_025).into();
    assert_eq!(
        client.say(&wanted.to_string())[0]["code"],
        "search_too_long"
    );
}

#[test]
fn queries_up_to_the_limit_wait_and_one_more_is_refused() {
    let mut client = Client::started(Limits::default(), 0);
    for _ in 0..QUESTIONS_MAX {
        client.session.handle_text(QUERY, client.now);
    }
    assert_eq!(client.replies().len(), QUESTIONS_MAX);
    for _ in 0..=QUESTIONS_MAX {
        client.session.handle_text(QUERY, client.now);
    }
    let questions_max = QUESTIONS_MAX;
    assert_eq!(
        client.session.outcome(),
        Some(&Outcome::Failed(SessionError::TooManyQuestions {
            questions_max
        }))
    );
}

#[test]
fn queries_before_the_start_are_refused() {
    let mut client = Client::new(Limits::default());
    assert_eq!(client.say(QUERY)[0]["code"], "protocol");
}

#[test]
fn answer_of_more_than_16_mib_is_refused() {
    // Each of these characters takes six bytes in JSON.
    let long = "\u{1}".repeat(900);
    let lines = (0..1_000).map(|line| {
        format!(
            "192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] \"GET /{line}{long} HTTP/1.1\" 404 6 \"{line}{long}\" \"{line}{long}\"\n"
        )
    });
    let log: String = lines.collect();
    let mut client = Client::started(Limits::default(), log.len() as u64);
    client.send(log.as_bytes());
    assert_eq!(client.finish()[0]["summary"]["requests"], 1_000);
    for (top_max, kind) in [(1_000, "refused"), (300, "figures")] {
        let question = json!({"type": "query", "seq": 1, "query": {"top_max": top_max}});
        let replies = client.say(&question.to_string());
        assert_eq!(types(&replies), [kind], "{top_max}");
        if kind == "refused" {
            assert_eq!(replies[0]["code"], "answer_too_large");
        }
    }
}

#[test]
fn a_long_search_is_reported_and_can_be_dropped() {
    const REQUESTS: usize = 300_000;
    let mut client = Client::started(Limits::default(), (REQUESTS * LINE.len()) as u64);
    client.send(&LINE.repeat(REQUESTS));
    client.finish();
    let held = client.session.memory_bytes();
    let ask = |client: &mut Client, seq: u64| {
        client.say(
            &json!({"type": "query", "seq": seq, "query": {"filters": ["status == 200"]}})
                .to_string(),
        )
    };
    assert!(ask(&mut client, 1).is_empty());
    assert_eq!(client.session.poll_timeout(), Some(Duration::ZERO));
    assert!(client.session.memory_bytes() > held);
    assert_eq!(client.session.reply_bytes_max(None), 64 << 20);
    let answer = client.replies();
    assert_eq!(answer[0]["summary"]["requests"], REQUESTS);
    assert_eq!(client.session.memory_bytes(), held);

    assert!(ask(&mut client, 2).is_empty());
    assert!(client.say(r#"{"type":"drop","seq":2}"#).is_empty());
    assert_ne!(client.session.poll_timeout(), Some(Duration::ZERO));
    assert_eq!(client.session.memory_bytes(), held);
    // A question that is already answered, or was never asked, may be dropped as well.
    assert!(client.say(r#"{"type":"drop","seq":1}"#).is_empty());
    assert_eq!(client.session.outcome(), None);
}

#[test]
fn a_client_is_told_how_far_a_long_search_is() {
    const REQUESTS: usize = 600_000;
    let mut client = Client::started(Limits::default(), (REQUESTS * LINE.len()) as u64);
    client.send(&LINE.repeat(REQUESTS));
    client.finish();
    assert!(
        client
            .say(r#"{"type":"query","seq":5,"query":{}}"#)
            .is_empty()
    );
    client.now += Duration::from_millis(200);
    let replies = client.replies();
    assert_eq!(types(&replies), ["searching", "figures"]);
    assert_eq!(replies[0]["seq"], 5);
    let fraction = replies[0]["fraction"].as_f64().unwrap();
    assert!((0.8..0.9).contains(&fraction), "{fraction}");
}
