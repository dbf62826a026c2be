use super::*;

fn message(payload: &str) -> Answer {
    Answer {
        opcode: 1,
        payload: payload.into(),
    }
}

fn outcome(answers: &[Answer], code: Option<u16>, end: End) -> Outcome {
    Outcome {
        answers: answers.to_vec(),
        close: code.map(|code| CloseFrame {
            code: (code > 0).then_some(code),
            stages: 1,
        }),
        end,
        ..Outcome::default()
    }
}

fn verdict(expect: &Expect, outcome: &Outcome) -> Verdict {
    judge(expect, outcome, true).verdict
}

fn fails() -> Expect {
    Expect::Fail {
        codes: &[1002],
        before: vec![message("one")],
        stages: 1,
        may_wait: false,
    }
}

#[test]
fn a_failure_is_right_with_its_code_and_the_end() {
    let right = outcome(&[message("one")], Some(1002), End::Fin);
    assert_eq!(verdict(&fails(), &right), Verdict::Right);
    for permitted in [
        outcome(&[], Some(1002), End::Open),
        outcome(&[], Some(1000), End::Fin),
        outcome(&[], Some(0), End::Fin),
        outcome(&[], None, End::Fin),
        outcome(&[], None, End::Reset),
    ] {
        assert_eq!(
            verdict(&fails(), &permitted),
            Verdict::Permitted,
            "{permitted:?}"
        );
    }
}

#[test]
fn a_failure_that_delivers_or_does_not_happen_is_wrong() {
    let both = [message("one"), message("two")];
    let delivered = outcome(&both, Some(1002), End::Fin);
    assert_eq!(verdict(&fails(), &delivered), Verdict::Wrong);
    let nothing = outcome(&[message("one")], None, End::Open);
    assert_eq!(verdict(&fails(), &nothing), Verdict::Wrong);
    let mut illegal = outcome(&[], Some(1002), End::Fin);
    illegal.fault = Some("a masked frame".into());
    assert_eq!(verdict(&fails(), &illegal), Verdict::Wrong);
}

#[test]
fn a_failure_that_comes_late_is_permitted() {
    let mut late = outcome(&[], Some(1002), End::Fin);
    late.close = late.close.map(|closed| CloseFrame {
        stages: 2,
        ..closed
    });
    assert_eq!(verdict(&fails(), &late), Verdict::Permitted);
}

#[test]
fn answers_have_to_be_the_same_and_all_of_them() {
    let expect = Expect::Answers(vec![message("one"), message("two")]);
    let both = [message("one"), message("two")];
    assert_eq!(
        verdict(&expect, &outcome(&both, None, End::Fin)),
        Verdict::Right
    );
    for wrong in [
        outcome(&[message("one")], None, End::Open),
        outcome(&[message("one")], None, End::Fin),
        outcome(&[message("two"), message("one")], None, End::Fin),
        outcome(
            &[message("one"), message("two"), message("x")],
            None,
            End::Fin,
        ),
        outcome(&[], Some(1002), End::Fin),
    ] {
        assert_eq!(verdict(&expect, &wrong), Verdict::Wrong, "{wrong:?}");
    }
    let too_large = outcome(&[], Some(1009), End::Fin);
    assert_eq!(verdict(&expect, &too_large), Verdict::Permitted);
}

#[test]
fn only_the_last_ping_has_to_be_answered() {
    let pong = |payload: &str| Answer {
        opcode: 0xA,
        payload: payload.into(),
    };
    let expect = Expect::Answers(vec![pong("1"), pong("2")]);
    let with = |answers: &[Answer]| verdict(&expect, &outcome(answers, None, End::Fin));
    assert_eq!(with(&[pong("1"), pong("2")]), Verdict::Right);
    assert_eq!(with(&[pong("2")]), Verdict::Right);
    assert_eq!(with(&[pong("1")]), Verdict::Wrong);
    assert_eq!(with(&[pong("2"), pong("3")]), Verdict::Wrong);
}

#[test]
fn where_nobody_echoes_a_pong_is_enough() {
    let expect = Expect::Answers(vec![message("one")]);
    let mut seen = outcome(&[], None, End::Fin);
    assert_eq!(judge(&expect, &seen, false).verdict, Verdict::Wrong);
    seen.answers_probe = true;
    assert_eq!(judge(&expect, &seen, false).verdict, Verdict::Right);
    // A server that does not echo may send any messages.
    seen.answers = vec![message("hello")];
    assert_eq!(judge(&expect, &seen, false).verdict, Verdict::Right);
}

#[test]
fn a_close_is_answered_and_then_the_connection_ends() {
    let expect = Expect::Close {
        codes: vec![1001],
        before: Vec::new(),
    };
    let with = |code, end| verdict(&expect, &outcome(&[], code, end));
    assert_eq!(with(Some(1001), End::Fin), Verdict::Right);
    assert_eq!(with(Some(1001), End::Reset), Verdict::Permitted);
    let mut late = outcome(&[], Some(1001), End::Reset);
    late.stages = 2;
    assert_eq!(verdict(&expect, &late), Verdict::Right);
    assert_eq!(with(Some(1000), End::Fin), Verdict::Permitted);
    assert_eq!(with(Some(1001), End::Open), Verdict::Wrong);
    assert_eq!(with(None, End::Fin), Verdict::Wrong);
}

fn answered(line: &str, rest: &[u8]) -> Outcome {
    Outcome {
        head: Some(Head {
            line: line.into(),
            fields: vec![("sec-websocket-version".into(), "13".into())],
        }),
        rest: rest.into(),
        end: End::Fin,
        ..Outcome::default()
    }
}

#[test]
fn a_refusal_has_a_status_that_fits() {
    let expect = Expect::Refuse {
        statuses: &[400],
        fields: &[("sec-websocket-version", "13")],
        alone: true,
        may_ignore: false,
    };
    let with = |line: &str| verdict(&expect, &answered(line, b"a body"));
    assert_eq!(with("HTTP/1.1 400 Bad Request"), Verdict::Right);
    assert_eq!(with("HTTP/1.1 403 Forbidden"), Verdict::Permitted);
    assert_eq!(with("HTTP/1.1 200 OK"), Verdict::Wrong);
    assert_eq!(with("HTTP/1.1 101 Switching Protocols"), Verdict::Wrong);
    assert_eq!(
        verdict(&expect, &outcome(&[], None, End::Fin)),
        Verdict::Permitted
    );
    assert_eq!(
        verdict(&expect, &outcome(&[], None, End::Open)),
        Verdict::Wrong
    );
    let mut lacking = answered("HTTP/1.1 400 Bad Request", b"");
    lacking.head.as_mut().unwrap().fields.clear();
    assert_eq!(verdict(&expect, &lacking), Verdict::Wrong);
}

#[test]
fn what_may_be_ignored_is_permitted_unless_it_is_agreed_on() {
    let expect = Expect::Refuse {
        statuses: &[400],
        fields: &[],
        alone: false,
        may_ignore: true,
    };
    let mut opened = answered("HTTP/1.1 101 Switching Protocols", b"");
    assert_eq!(verdict(&expect, &opened), Verdict::Permitted);
    let agreed = ("sec-websocket-extensions".into(), "x".into());
    opened.head.as_mut().unwrap().fields.push(agreed);
    assert_eq!(verdict(&expect, &opened), Verdict::Wrong);
}

#[test]
fn a_second_answer_is_dangerous() {
    let twice = answered("HTTP/1.1 400 Bad Request", b"HTTP/1.1 101 Switching");
    assert_eq!(verdict(&Expect::OpenOrRefuse, &twice), Verdict::Dangerous);
}

#[test]
fn an_opening_is_judged_as_clients_do() {
    let head = |fields: &[(&str, &str)]| Head {
        line: "HTTP/1.1 101 Switching Protocols".into(),
        fields: fields
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect(),
    };
    let request = head(&[
        ("sec-websocket-key", crate::http::KEY),
        ("sec-websocket-protocol", "a, b"),
    ]);
    let good = [
        ("upgrade", "WebSocket"),
        ("connection", "upgrade"),
        ("sec-websocket-accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
    ];
    assert_eq!(fault_of_opening(&head(&good), &request), None);
    let fault =
        |more: &[(&str, &str)]| fault_of_opening(&head(&[&good[..], more].concat()), &request);
    assert_eq!(fault(&[("sec-websocket-protocol", "b")]), None);
    assert!(
        fault(&[("sec-websocket-protocol", "c")])
            .unwrap()
            .contains("c, which")
    );
    assert!(
        fault(&[("sec-websocket-extensions", "x; y")])
            .unwrap()
            .contains("x, which")
    );
    assert!(
        fault_of_opening(&head(&good[..2]), &request)
            .unwrap()
            .contains("Accept")
    );
    assert!(
        fault_of_opening(&head(&good[1..]), &request)
            .unwrap()
            .contains("Upgrade")
    );
}

#[test]
fn a_client_that_rejects_an_answer_sends_nothing() {
    let with = |outcome: &Outcome| verdict(&Expect::Reject, outcome);
    assert_eq!(with(&outcome(&[], None, End::Fin)), Verdict::Right);
    assert_eq!(with(&outcome(&[], None, End::Open)), Verdict::Permitted);
    assert_eq!(
        with(&outcome(&[], Some(1002), End::Fin)),
        Verdict::Permitted
    );
    assert_eq!(
        with(&outcome(&[message("?")], None, End::Fin)),
        Verdict::Wrong
    );
}

#[test]
fn a_flood_may_be_taken_or_ended() {
    let expect = Expect::Survive(vec![message("one")]);
    let with = |outcome: &Outcome| verdict(&expect, outcome);
    assert_eq!(
        with(&outcome(&[message("one")], None, End::Fin)),
        Verdict::Right
    );
    assert_eq!(with(&outcome(&[], Some(1009), End::Fin)), Verdict::Right);
    assert_eq!(with(&outcome(&[], None, End::Reset)), Verdict::Permitted);
    assert_eq!(with(&outcome(&[], None, End::Open)), Verdict::Wrong);
    let bomb = |outcome: &Outcome| verdict(&Expect::Survive(Vec::new()), outcome);
    assert_eq!(bomb(&outcome(&[], Some(1009), End::Fin)), Verdict::Right);
    assert_eq!(bomb(&outcome(&[], None, End::Open)), Verdict::Wrong);
    assert_eq!(bomb(&outcome(&[], None, End::Fin)), Verdict::Permitted);
}
