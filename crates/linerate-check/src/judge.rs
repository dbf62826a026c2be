//! From what came back to a verdict.

mod deadline;
#[cfg(test)]
mod tests;

use crate::{
    case::{Answer, Expect, Verdict},
    http::{Head, accept},
    http2,
    outcome::{Closed, End, Outcome},
    tls,
};

/// A verdict, and why.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Judgement {
    /// How good it is.
    pub verdict: Verdict,
    /// Why it is not right, in a few words; empty where it is.
    pub why: String,
}

impl Judgement {
    pub(crate) fn right() -> Self {
        Self {
            verdict: Verdict::Right,
            why: String::new(),
        }
    }

    pub(crate) fn permitted(why: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Permitted,
            why: why.into(),
        }
    }

    pub(crate) fn wrong(why: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Wrong,
            why: why.into(),
        }
    }

    pub(crate) fn dangerous(why: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Dangerous,
            why: why.into(),
        }
    }

    pub(crate) fn not_applicable(why: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::NotApplicable,
            why: why.into(),
        }
    }
}

/// Returns what to think of an outcome. `echoes` says whether messages come back from the endpoint.
pub(crate) fn judge(expect: &Expect, outcome: &Outcome, echoes: bool) -> Judgement {
    if let Some(fault) = &outcome.fault {
        return Judgement::wrong(format!("it sent {fault}"));
    }
    match expect {
        Expect::Alert(alerts) => tls::judge_refusal(alerts, outcome),
        Expect::Answers(answers) => judge_answers(answers, outcome, echoes),
        Expect::Close { codes, before } => judge_close(codes, before, outcome, echoes),
        Expect::ConnectionError(codes) => http2::judge_connection(codes, outcome),
        Expect::Decline => judge_declining(outcome),
        Expect::End { otherwise } => judge_end(*otherwise, outcome, echoes),
        Expect::Endure(stream) => http2::judge_endurance(*stream, outcome),
        Expect::Fail {
            codes,
            before,
            stages,
            may_wait,
        } => judge_failure(codes, before, (*stages, *may_wait), outcome, echoes),
        Expect::GivenUp { may_wait, .. } => deadline::judge(*may_wait, outcome),
        Expect::Open(answers) => judge_opening(answers, outcome, echoes),
        Expect::OpenOrRefuse => judge_either(outcome),
        Expect::Reject => judge_rejection(outcome),
        Expect::Streams(fates) => http2::judge_streams(fates, outcome),
        Expect::Survive(answers) => judge_survival(answers, outcome, echoes),
        Expect::Refuse {
            statuses,
            fields,
            alone,
            may_ignore,
        } => judge_refusal(statuses, fields, (*alone, *may_ignore), outcome),
    }
}

fn judge_answers(expected: &[Answer], outcome: &Outcome, echoes: bool) -> Judgement {
    if !echoes {
        return match (outcome.answers_probe, outcome.close) {
            (true, _) => Judgement::right(),
            (false, Some(closed)) => judge_unwanted_close(closed),
            (false, None) => Judgement::wrong("a Ping behind it is not answered"),
        };
    }
    if let Some(unexpected) = unexpected(expected, outcome, true) {
        return Judgement::wrong(unexpected);
    }
    if lacks(expected, outcome) {
        return match outcome.close {
            Some(closed) => judge_unwanted_close(closed),
            None if outcome.end == End::Open => Judgement::wrong("the answer does not come"),
            None => Judgement::wrong("the connection ends instead of an answer"),
        };
    }
    Judgement::right()
}

fn judge_unwanted_close(closed: Closed) -> Judgement {
    match closed.code {
        Some(1009) => Judgement::permitted("larger than what it takes"),
        _ => Judgement::wrong("what is in order is refused"),
    }
}

/// Returns what came back although nothing asked for it.
fn unexpected(expected: &[Answer], outcome: &Outcome, echoes: bool) -> Option<String> {
    let messages = |answers: &[Answer]| -> Vec<Answer> {
        answers
            .iter()
            .filter(|answer| answer.opcode != 0xA)
            .cloned()
            .collect()
    };
    let wanted = messages(expected);
    let found = messages(&outcome.answers);
    let agrees = found.len() <= wanted.len() && found.iter().zip(&wanted).all(|(a, b)| a == b);
    if echoes && !agrees {
        return Some(if found.len() > wanted.len() {
            "it was taken for a message".into()
        } else {
            "the message comes back changed".into()
        });
    }
    let mut pongs = outcome.answers.iter().filter(|answer| answer.opcode == 0xA);
    let stray = pongs.any(|pong| !expected.contains(pong));
    stray.then(|| "a Pong that nothing asked for".into())
}

/// Returns whether something that has to come is not there. Of several Pings, only the last has to
/// be answered (RFC 6455 §5.5.3).
fn lacks(expected: &[Answer], outcome: &Outcome) -> bool {
    let is_message = |answer: &&Answer| answer.opcode != 0xA;
    let wanted = expected.iter().filter(is_message).count();
    let found = outcome.answers.iter().filter(is_message).count();
    let last_pong = expected.iter().rfind(|answer| answer.opcode == 0xA);
    found < wanted || last_pong.is_some_and(|pong| !outcome.answers.contains(pong))
}

/// Returns whether there is nothing left to wait for.
pub(crate) fn is_settled(expect: &Expect, outcome: &Outcome, echoes: bool) -> bool {
    if outcome.end != End::Open || outcome.fault.is_some() || outcome.close.is_some() {
        return true;
    }
    match expect {
        Expect::Answers(_) | Expect::Open(_) | Expect::Survive(_) if !echoes => {
            outcome.answers_probe
        }
        Expect::Survive(answers) if answers.is_empty() => !outcome.answers.is_empty(),
        Expect::Answers(answers) | Expect::Open(answers) | Expect::Survive(answers) => {
            !lacks(answers, outcome) || unexpected(answers, outcome, true).is_some()
        }
        Expect::Fail { before, .. } | Expect::Close { before, .. } => {
            unexpected(before, outcome, echoes).is_some()
        }
        Expect::Reject => !outcome.answers.is_empty(),
        Expect::ConnectionError(_) | Expect::Endure(_) | Expect::Streams(_) => {
            http2::is_settled(expect, outcome)
        }
        Expect::Alert(_)
        | Expect::Decline
        | Expect::End { .. }
        | Expect::GivenUp { .. }
        | Expect::OpenOrRefuse
        | Expect::Refuse { .. } => false,
    }
}

fn judge_close(codes: &[u16], before: &[Answer], outcome: &Outcome, echoes: bool) -> Judgement {
    if let Some(unexpected) = unexpected(before, outcome, echoes) {
        return Judgement::wrong(unexpected);
    }
    if echoes && lacks(before, outcome) {
        return Judgement::permitted("what came before it is not answered");
    }
    match (outcome.close, outcome.end) {
        (None, End::Open) => Judgement::wrong("the Close frame is not answered"),
        (None, _) => Judgement::wrong("the connection ends without a Close frame in answer"),
        (Some(_), End::Open) => Judgement::wrong("the connection is not closed"),
        (Some(closed), end) => match closed.code {
            code if !codes.contains(&code.unwrap_or(0)) => {
                Judgement::permitted("the Close frame is answered with another code")
            }
            // Whatever we send to a connection that is closed is answered so.
            _ if end == End::Reset && outcome.stages < 2 => {
                Judgement::permitted("the connection is cut, not closed")
            }
            _ => Judgement::right(),
        },
    }
}

fn judge_end(otherwise: Verdict, outcome: &Outcome, echoes: bool) -> Judgement {
    if let Some(unexpected) = unexpected(&[], outcome, echoes) {
        return Judgement::wrong(unexpected);
    }
    match outcome.end {
        End::Open if otherwise == Verdict::Right => Judgement::right(),
        End::Open => Judgement {
            verdict: otherwise,
            why: "the connection is not ended".into(),
        },
        End::Fin | End::Reset => Judgement::right(),
    }
}

fn judge_failure(
    codes: &[u16],
    before: &[Answer],
    (stages, may_wait): (usize, bool),
    outcome: &Outcome,
    echoes: bool,
) -> Judgement {
    if let Some(unexpected) = unexpected(before, outcome, echoes) {
        return Judgement::wrong(unexpected);
    }
    match outcome.close {
        Some(closed) if closed.code.is_some_and(|code| codes.contains(&code)) => {
            if closed.stages > stages {
                Judgement::permitted("it is noticed only at the end of the message")
            } else if outcome.end == End::Open {
                Judgement::permitted("the connection stays open behind the Close frame")
            } else {
                Judgement::right()
            }
        }
        Some(Closed { code: None, .. }) => Judgement::permitted("the Close frame has no code"),
        Some(_) => Judgement::permitted("the Close frame has another code"),
        None if outcome.end != End::Open => Judgement::permitted("dropped without a Close frame"),
        None if may_wait => Judgement::permitted("it waits for more"),
        None => Judgement::wrong("nothing happens"),
    }
}

fn judge_opening(answers: &[Answer], outcome: &Outcome, echoes: bool) -> Judgement {
    match &outcome.head {
        None if outcome.end == End::Open => Judgement::wrong("no answer"),
        None => Judgement::wrong("the connection ends without an answer"),
        Some(head) if !head.opens() => Judgement::wrong("what is in order is refused"),
        Some(_) => judge_answers(answers, outcome, echoes),
    }
}

fn judge_either(outcome: &Outcome) -> Judgement {
    if answers_twice(outcome) {
        return Judgement::dangerous("what belongs to the request is answered as a second one");
    }
    match &outcome.head {
        Some(head) => match head.status() {
            Some(101 | 200..=599) => Judgement::right(),
            status => Judgement::wrong(format!("the status is {}", status.unwrap_or(0))),
        },
        None if outcome.end == End::Open => Judgement::wrong("no answer"),
        None => Judgement::permitted("dropped without an answer"),
    }
}

fn judge_declining(outcome: &Outcome) -> Judgement {
    let head = outcome.head.as_ref();
    match head.and_then(|head| head.field("sec-websocket-extensions")) {
        Some(agreed) if !agreed.is_empty() => Judgement::wrong(format!("it agrees to {agreed}")),
        _ => judge_either(outcome),
    }
}

/// Returns whether there is a second answer behind the first.
fn answers_twice(outcome: &Outcome) -> bool {
    outcome.rest.windows(9).any(|window| window == b"HTTP/1.1 ")
}

fn judge_survival(answers: &[Answer], outcome: &Outcome, echoes: bool) -> Judgement {
    if outcome.close.is_some() {
        return Judgement::right();
    }
    if outcome.end != End::Open && lacks(answers, outcome) {
        return Judgement::permitted("dropped without a Close frame");
    }
    match outcome.end {
        // It takes even what nobody should.
        _ if answers.is_empty() && !outcome.answers.is_empty() => Judgement::right(),
        End::Open if answers.is_empty() => Judgement::wrong("nothing happens"),
        _ if answers.is_empty() => Judgement::permitted("dropped without a Close frame"),
        _ => judge_answers(answers, outcome, echoes),
    }
}

fn judge_rejection(outcome: &Outcome) -> Judgement {
    if !outcome.answers.is_empty() {
        return Judgement::wrong("a WebSocket is opened");
    }
    match (outcome.close, outcome.end) {
        (Some(_), _) => Judgement::permitted("a Close frame where there is no WebSocket"),
        (None, End::Open) => Judgement::permitted("the connection is not ended"),
        (None, _) => Judgement::right(),
    }
}

fn judge_refusal(
    statuses: &[u16],
    fields: &[(&str, &str)],
    (alone, may_ignore): (bool, bool),
    outcome: &Outcome,
) -> Judgement {
    let Some(head) = &outcome.head else {
        return match outcome.end {
            End::Open => Judgement::wrong("no answer"),
            End::Fin | End::Reset => Judgement::permitted("dropped without an answer"),
        };
    };
    let status = head.status().unwrap_or(0);
    if alone && answers_twice(outcome) {
        return Judgement::dangerous("what belongs to the request is answered as a second one");
    }
    if head.opens() {
        return if may_ignore && head.field("sec-websocket-extensions").is_none() {
            Judgement::permitted("it is ignored")
        } else {
            Judgement::wrong("a WebSocket is opened")
        };
    }
    if let Some((name, value)) = fields
        .iter()
        .find(|(name, value)| !head.has_token(name, value))
    {
        return Judgement::wrong(format!("the answer lacks {name}: {value}"));
    }
    if statuses.contains(&status) {
        Judgement::right()
    } else if (400..=599).contains(&status) {
        Judgement::permitted("refused with another status")
    } else {
        Judgement::wrong(format!("the status is {status}"))
    }
}

/// Returns why an answer with the status 101 to `request` opens no WebSocket, or one that nobody has
/// asked for (RFC 6455 §4.1, as a client has to see it).
pub(crate) fn fault_of_opening(head: &Head, request: &Head) -> Option<String> {
    // Which of several keys is meant is judged by their own row.
    let keys = request
        .fields
        .iter()
        .filter(|(name, _)| name == "sec-websocket-key");
    let mut accepts = keys.map(|(_, key)| accept(key));
    let found = head.field("sec-websocket-accept").unwrap_or_default();
    if !accepts.any(|accept| accept == found) {
        return Some("a 101 with a wrong Sec-WebSocket-Accept".into());
    }
    if !head.has_token("upgrade", "websocket") || !head.has_token("connection", "upgrade") {
        return Some("a 101 without Upgrade: websocket and Connection: Upgrade".into());
    }
    fault_of_choices(head, request)
}

/// Returns why an answer over HTTP/2 opens a WebSocket that nobody has asked for (RFC 8441 §5).
pub(crate) fn fault_of_choices(head: &Head, request: &Head) -> Option<String> {
    for name in ["sec-websocket-extensions", "sec-websocket-protocol"] {
        let agreed = head.field(name).unwrap_or_default();
        let offered = request.field(name).unwrap_or_default();
        let names = agreed
            .split(',')
            .map(first_name)
            .filter(|name| !name.is_empty());
        for agreed in names {
            if !offered
                .split(',')
                .map(first_name)
                .any(|offered| offered == agreed)
            {
                return Some(format!(
                    "an answer with {name}: {agreed}, which was not offered"
                ));
            }
        }
    }
    None
}

/// Returns an element of a list without its parameters.
fn first_name(element: &str) -> &str {
    element.split(';').next().unwrap_or_default().trim()
}

/// Returns whether all codes of a list may be sent, 0 standing for none.
#[cfg(test)]
pub(crate) fn all_may_be_sent(codes: &[u16]) -> bool {
    codes
        .iter()
        .all(|code| *code == 0 || crate::answers::may_be_sent(*code))
}
