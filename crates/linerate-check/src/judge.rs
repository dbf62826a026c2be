//! Judges what came back.

mod deadline;
mod http2;
#[cfg(test)]
mod tests;
mod tls;

use crate::{
    answers::Answer,
    case::{Expect, Verdict},
    connection::End,
    http::{Head, accept},
    outcome::{CloseFrame, Outcome},
};

/// A verdict, and the reason for it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// The reason in a few words; empty if the verdict is [`Verdict::Right`].
    pub why: String,
}

impl Judgement {
    pub(crate) fn right() -> Self {
        Self::new(Verdict::Right, "")
    }

    pub(crate) fn permitted(why: impl Into<String>) -> Self {
        Self::new(Verdict::Permitted, why)
    }

    pub(crate) fn wrong(why: impl Into<String>) -> Self {
        Self::new(Verdict::Wrong, why)
    }

    pub(crate) fn dangerous(why: impl Into<String>) -> Self {
        Self::new(Verdict::Dangerous, why)
    }

    pub(crate) fn not_applicable(why: impl Into<String>) -> Self {
        Self::new(Verdict::NotApplicable, why)
    }

    fn new(verdict: Verdict, why: impl Into<String>) -> Self {
        let why = why.into();
        Self { verdict, why }
    }
}

/// Judges an outcome. `echoes` is true if the endpoint echoes messages.
pub(crate) fn judge(expect: &Expect, outcome: &Outcome, echoes: bool) -> Judgement {
    if let Some(fault) = &outcome.fault {
        return Judgement::wrong(format!("it sent {fault}"));
    }
    match expect {
        Expect::Alert(alerts) => tls::judge(alerts, outcome),
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
            (false, None) => Judgement::wrong("a Ping sent after it is not answered"),
        };
    }
    if let Some(unexpected) = unexpected(expected, outcome, true) {
        return Judgement::wrong(unexpected);
    }
    if lacks(expected, outcome) {
        return match outcome.close {
            Some(closed) => judge_unwanted_close(closed),
            None if outcome.end == End::Open => {
                Judgement::wrong("the expected answer does not arrive")
            }
            None => Judgement::wrong("the connection ends without the expected answer"),
        };
    }
    Judgement::right()
}

fn judge_unwanted_close(closed: CloseFrame) -> Judgement {
    match closed.code {
        Some(1009) => Judgement::permitted("the message is larger than the endpoint accepts"),
        _ => Judgement::wrong("valid input is refused"),
    }
}

/// Describes the first answer that was not expected.
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
            "it was accepted as a message".into()
        } else {
            "the message comes back changed".into()
        });
    }
    let mut pongs = outcome.answers.iter().filter(|answer| answer.opcode == 0xA);
    let stray = pongs.any(|pong| !expected.contains(pong));
    stray.then(|| "an unsolicited Pong".into())
}

/// Returns whether a required answer is missing. Of several Pings, only the last has to be answered
/// (RFC 6455 §5.5.3).
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
        return Judgement::permitted("earlier input is not answered");
    }
    match (outcome.close, outcome.end) {
        (None, End::Open) => Judgement::wrong("the Close frame is not answered"),
        (None, _) => Judgement::wrong("the connection ends without a Close frame"),
        (Some(_), End::Open) => Judgement::wrong("the connection is not closed"),
        (Some(closed), end) => match closed.code {
            code if !codes.contains(&code.unwrap_or(0)) => {
                Judgement::permitted("the Close frame is answered with another code")
            }
            // TCP answers everything we send on a closed connection with a reset.
            _ if end == End::Reset && outcome.stages < 2 => {
                Judgement::permitted("the connection is reset, not closed")
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
                Judgement::permitted("the error is noticed only at the end of the message")
            } else if outcome.end == End::Open {
                Judgement::permitted("the connection stays open after the Close frame")
            } else {
                Judgement::right()
            }
        }
        Some(CloseFrame { code: None, .. }) => Judgement::permitted("the Close frame has no code"),
        Some(_) => Judgement::permitted("the Close frame has another code"),
        None if outcome.end != End::Open => Judgement::permitted("dropped without a Close frame"),
        None if may_wait => Judgement::permitted("it waits for more data"),
        None => Judgement::wrong("nothing happens"),
    }
}

fn judge_opening(answers: &[Answer], outcome: &Outcome, echoes: bool) -> Judgement {
    match &outcome.head {
        None if outcome.end == End::Open => Judgement::wrong("no answer"),
        None => Judgement::wrong("the connection ends without an answer"),
        Some(head) if !head.opens() => Judgement::wrong("valid input is refused"),
        Some(_) => judge_answers(answers, outcome, echoes),
    }
}

fn judge_either(outcome: &Outcome) -> Judgement {
    if answers_twice(outcome) {
        return Judgement::dangerous("part of the request is answered as a second request");
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

/// Returns whether a second response follows the first.
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
        // The endpoint accepts even more than it should; it has survived the input.
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
        (Some(_), _) => Judgement::permitted("a Close frame, although no WebSocket is open"),
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
        return Judgement::dangerous("part of the request is answered as a second request");
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

/// Returns why a client has to reject the 101 response to `request`: it is not a valid handshake,
/// or it selects something that was not offered (RFC 6455 §4.1).
pub(crate) fn fault_of_opening(head: &Head, request: &Head) -> Option<String> {
    // Any of several keys is accepted here; a separate row tests requests with several keys.
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

/// Returns which extension or subprotocol a response selects although it was not offered
/// (RFC 6455 §4.1, RFC 8441 §5).
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

/// Returns a list element without its parameters.
fn first_name(element: &str) -> &str {
    element.split(';').next().unwrap_or_default().trim()
}

/// Returns whether all codes in a list may be sent. 0 stands for a Close frame without a code.
#[cfg(test)]
pub(crate) fn all_may_be_sent(codes: &[u16]) -> bool {
    codes
        .iter()
        .all(|code| *code == 0 || crate::answers::may_be_sent(*code))
}
