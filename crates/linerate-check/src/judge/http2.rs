//! Judges what came back over HTTP/2.

use super::Judgement;
use crate::{
    answers::Answer,
    case::Expect,
    connection::End,
    http2::{
        Fate, StreamOutcome,
        frame::{NO_ERROR, PROTOCOL_ERROR, error_name},
    },
    outcome::Outcome,
};

/// Judges the streams of a connection. The worst verdict counts.
pub(super) fn judge_streams(fates: &[(u32, Fate)], outcome: &Outcome) -> Judgement {
    let seen = &outcome.http2;
    let nothing = StreamOutcome::default();
    let ends = has_ended(outcome);
    if ends && fates.iter().any(|(_, fate)| fate.may_end_connection()) {
        return judge_ended(fates, outcome);
    }
    let judged = fates.iter().map(|(id, fate)| {
        let stream = seen.streams.get(id).unwrap_or(&nothing);
        let mut judgement = judge_stream(fate, stream, ends);
        if !judgement.why.is_empty() {
            judgement.why = format!("stream {id}: {}", judgement.why);
        }
        judgement
    });
    let worst = judged.max_by_key(|judgement| judgement.verdict);
    worst.unwrap_or_else(|| Judgement::not_applicable("there are no streams to judge"))
}

fn has_ended(outcome: &Outcome) -> bool {
    outcome.end != End::Open || outcome.http2.goaway.is_some_and(|code| code != NO_ERROR)
}

/// Judges a connection that ended instead of a stream. RFC 9113 §5.4: "An endpoint MAY end a
/// connection at any time. In particular, an endpoint MAY choose to treat a stream error as a
/// connection error."
fn judge_ended(fates: &[(u32, Fate)], outcome: &Outcome) -> Judgement {
    let opened = fates.iter().any(|(id, fate)| {
        let stream = outcome.http2.streams.get(id);
        matches!(fate, Fate::Malformed) && stream.is_some_and(opens)
    });
    if opened {
        return Judgement::wrong("a WebSocket is opened");
    }
    let codes = fates.iter().find_map(|(_, fate)| match fate {
        Fate::Reset(codes) => Some(*codes),
        Fate::Malformed | Fate::MalformedOrOpened => Some(&[PROTOCOL_ERROR][..]),
        _ => None,
    });
    judge_goaway(codes.unwrap_or_default(), outcome)
}

fn judge_goaway(codes: &[u32], outcome: &Outcome) -> Judgement {
    match outcome.http2.goaway {
        None => Judgement::permitted("the connection ends without a GOAWAY"),
        Some(code) if !codes.contains(&code) => {
            Judgement::permitted(format!("the GOAWAY says {}", error_name(code)))
        }
        // RFC 9113 §5.4.1: "the endpoint MUST close the TCP connection".
        Some(_) if outcome.end == End::Open => {
            Judgement::permitted("the connection stays open after the GOAWAY")
        }
        Some(_) => Judgement::right(),
    }
}

/// Judges an input after which the connection has to end with one of these codes.
pub(super) fn judge_connection(codes: &[u32], outcome: &Outcome) -> Judgement {
    let mut opened = outcome.http2.streams.values();
    if has_ended(outcome) {
        return judge_goaway(codes, outcome);
    }
    if opened.any(|stream| stream.reset.is_some()) {
        return Judgement::permitted("only the stream is reset");
    }
    Judgement::wrong("nothing happens")
}

/// Judges a flood after which this stream was opened.
pub(super) fn judge_endurance(stream: u32, outcome: &Outcome) -> Judgement {
    let served = outcome.http2.streams.get(&stream);
    if served.is_some_and(|stream| !stream.answers.is_empty()) {
        return Judgement::right();
    }
    match outcome.http2.goaway {
        Some(code) if code != NO_ERROR => Judgement::right(),
        _ if outcome.end != End::Open => {
            Judgement::permitted("the connection ends without a GOAWAY")
        }
        _ => Judgement::wrong("nothing happens"),
    }
}

fn opens(stream: &StreamOutcome) -> bool {
    stream.head.as_ref().is_some_and(|head| head.opens())
}

fn judge_stream(fate: &Fate, stream: &StreamOutcome, ends: bool) -> Judgement {
    match fate {
        Fate::Answered if stream.head.is_some() || stream.reset.is_some() => Judgement::right(),
        Fate::Answered if ends => Judgement::permitted("the connection ends without an answer"),
        Fate::Answered => Judgement::wrong("no answer"),
        Fate::Answers(answers) => judge_answers(answers, stream, ends),
        Fate::Closes { codes, before } => judge_close(codes, before, stream, ends),
        Fate::Ends if !stream.answers.is_empty() => {
            Judgement::wrong("it was accepted as a message")
        }
        Fate::Ends if stream.end != End::Open => Judgement::right(),
        Fate::Ends => Judgement::permitted("the stream is not ended"),
        Fate::Malformed => judge_malformed(stream),
        Fate::MalformedOrOpened if opens(stream) => Judgement::right(),
        Fate::MalformedOrOpened => judge_malformed(stream),
        Fate::Refused(statuses) => judge_refusal(statuses, stream, ends),
        Fate::Reset(codes) => judge_reset(codes, stream),
    }
}

fn judge_answers(answers: &[Answer], stream: &StreamOutcome, ends: bool) -> Judgement {
    if !opens(stream) {
        return Judgement::wrong(match stream.status() {
            Some(status) => format!("valid input is refused with {status}"),
            None if stream.reset.is_some() => "valid input is answered with a reset".into(),
            None => "no answer".into(),
        });
    }
    if stream.answers == answers && stream.close.is_none() {
        return Judgement::right();
    }
    Judgement::wrong(match stream.close {
        Some(_) => "valid input is refused",
        None if stream.answers.len() > answers.len() => "it was accepted as a message",
        None if stream.end != End::Open || ends => "it ends without the expected answer",
        None => "the expected answer does not arrive",
    })
}

fn judge_close(codes: &[u16], before: &[Answer], stream: &StreamOutcome, ends: bool) -> Judgement {
    if stream.answers != before {
        return Judgement::wrong(
            "it was accepted as a message, or an earlier message was not answered",
        );
    }
    match (stream.close, stream.end) {
        (None, End::Open) if !ends => Judgement::wrong("nothing happens"),
        (None, _) => Judgement::permitted("dropped without a Close frame"),
        (Some(code), _) if !codes.contains(&code) => {
            Judgement::permitted("the Close frame has another code")
        }
        (Some(_), End::Open) => Judgement::permitted("the stream is not ended"),
        (Some(_), End::Reset) => Judgement::permitted("the stream is reset, not ended"),
        (Some(_), End::Fin) => Judgement::right(),
    }
}

fn judge_malformed(stream: &StreamOutcome) -> Judgement {
    match (stream.status(), stream.reset) {
        _ if opens(stream) => Judgement::wrong("a WebSocket is opened"),
        // RFC 9113 §8.1.1: "a server MAY send an HTTP response prior to closing or resetting the
        // stream".
        (Some(400..=599), _) => Judgement::right(),
        (Some(status), _) => Judgement::wrong(format!("the status is {status}")),
        (None, Some(PROTOCOL_ERROR)) => Judgement::right(),
        (None, Some(code)) => {
            Judgement::permitted(format!("the stream is reset with {}", error_name(code)))
        }
        (None, None) => Judgement::wrong("nothing happens"),
    }
}

fn judge_refusal(statuses: &[u16], stream: &StreamOutcome, ends: bool) -> Judgement {
    match stream.status() {
        _ if opens(stream) => Judgement::wrong("a WebSocket is opened"),
        Some(status) if statuses.contains(&status) => Judgement::right(),
        Some(400..=599) => Judgement::permitted("refused with another status"),
        Some(status) => Judgement::wrong(format!("the status is {status}")),
        None if stream.reset.is_some() || ends => Judgement::permitted("reset without an answer"),
        None => Judgement::wrong("no answer"),
    }
}

fn judge_reset(codes: &[u32], stream: &StreamOutcome) -> Judgement {
    match stream.reset {
        Some(code) if codes.contains(&code) => Judgement::right(),
        Some(code) => {
            Judgement::permitted(format!("the stream is reset with {}", error_name(code)))
        }
        None if stream.end != End::Open => Judgement::permitted("the stream ends without a reset"),
        None => Judgement::wrong("nothing happens"),
    }
}

/// Returns whether there is nothing left to wait for.
pub(super) fn is_settled(expect: &Expect, outcome: &Outcome) -> bool {
    if outcome.end != End::Open || outcome.fault.is_some() {
        return true;
    }
    // The end of the connection follows a GOAWAY.
    if has_ended(outcome) {
        return false;
    }
    let fates = match expect {
        Expect::Streams(fates) => fates,
        Expect::Endure(id) => {
            let served = outcome.http2.streams.get(id);
            return served.is_some_and(|stream| !stream.answers.is_empty());
        }
        _ => return false,
    };
    fates.iter().all(|(id, fate)| {
        let stream = outcome.http2.streams.get(id);
        stream.is_some_and(|stream| is_stream_settled(fate, stream))
    })
}

fn is_stream_settled(fate: &Fate, stream: &StreamOutcome) -> bool {
    let is_over = stream.end != End::Open;
    match fate {
        Fate::Answered | Fate::Refused(_) | Fate::Malformed | Fate::MalformedOrOpened => {
            is_over || stream.head.is_some()
        }
        Fate::Answers(answers) => is_over || stream.answers.len() >= answers.len() && opens(stream),
        Fate::Closes { .. } | Fate::Ends => is_over,
        Fate::Reset(_) => stream.reset.is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{case::Verdict, http::Head, http2::Http2Outcome};

    fn judged(seen: Http2Outcome, fates: &[(u32, Fate)], end: End) -> Verdict {
        let outcome = Outcome {
            http2: seen,
            end,
            ..Outcome::default()
        };
        judge_streams(fates, &outcome).verdict
    }

    fn seen(stream: StreamOutcome) -> Http2Outcome {
        Http2Outcome {
            streams: [(1, stream)].into(),
            ..Http2Outcome::default()
        }
    }

    fn answered(status: u16) -> StreamOutcome {
        StreamOutcome {
            head: Some(Head {
                line: format!("HTTP/2 {status}"),
                fields: Vec::new(),
            }),
            ..StreamOutcome::default()
        }
    }

    #[test]
    fn a_malformed_request_opens_nothing() {
        let fates = [(1, Fate::Malformed)];
        let judged = |stream| judged(seen(stream), &fates, End::Open);
        assert_eq!(judged(answered(200)), Verdict::Wrong);
        assert_eq!(judged(answered(400)), Verdict::Right);
        assert_eq!(judged(StreamOutcome::default()), Verdict::Wrong);
        let reset = |code| StreamOutcome {
            end: End::Reset,
            reset: Some(code),
            ..StreamOutcome::default()
        };
        assert_eq!(judged(reset(PROTOCOL_ERROR)), Verdict::Right);
        assert_eq!(judged(reset(2)), Verdict::Permitted);
    }

    #[test]
    fn a_request_that_may_be_opened_is_answered() {
        let fates = [(1, Fate::MalformedOrOpened)];
        let judged = |stream| judged(seen(stream), &fates, End::Open);
        assert_eq!(judged(answered(200)), Verdict::Right);
        assert_eq!(judged(answered(400)), Verdict::Right);
        assert_eq!(judged(StreamOutcome::default()), Verdict::Wrong);
    }

    #[test]
    fn the_connection_may_end_in_place_of_a_stream_that_broke_a_rule() {
        let both = [(1, Fate::Malformed), (3, Fate::Answers(Vec::new()))];
        let gone = |code| Http2Outcome {
            goaway: code,
            ..Http2Outcome::default()
        };
        let of = |code| judged(gone(code), &both, End::Fin);
        assert_eq!(of(Some(PROTOCOL_ERROR)), Verdict::Right);
        assert_eq!(of(Some(2)), Verdict::Permitted);
        assert_eq!(of(None), Verdict::Permitted);
        let innocent = [(1, Fate::Answers(Vec::new()))];
        let judged = judged(gone(Some(PROTOCOL_ERROR)), &innocent, End::Fin);
        assert_eq!(judged, Verdict::Wrong);
    }

    #[test]
    fn a_flood_is_endured_by_an_answer_or_a_goaway() {
        let mut outcome = Outcome::default();
        let judged = |outcome: &Outcome| judge_endurance(3, outcome).verdict;
        assert_eq!(judged(&outcome), Verdict::Wrong);
        outcome.end = End::Reset;
        assert_eq!(judged(&outcome), Verdict::Permitted);
        outcome.http2.goaway = Some(11);
        assert_eq!(judged(&outcome), Verdict::Right);
    }

    #[test]
    fn the_worst_stream_counts() {
        let fates = [(1, Fate::Answers(Vec::new())), (3, Fate::Refused(&[501]))];
        let mut both = seen(answered(200));
        both.streams.insert(3, answered(501));
        assert_eq!(judged(both.clone(), &fates, End::Open), Verdict::Right);
        both.streams.insert(3, answered(200));
        assert_eq!(judged(both, &fates, End::Open), Verdict::Wrong);
    }

    #[test]
    fn a_close_frame_ends_its_stream() {
        let codes = &[1002];
        let fates = [(
            1,
            Fate::Closes {
                codes,
                before: Vec::new(),
            },
        )];
        let mut stream = answered(200);
        let nothing = judged(seen(stream.clone()), &fates, End::Open);
        assert_eq!(nothing, Verdict::Wrong);
        stream.close = Some(1002);
        let open = judged(seen(stream.clone()), &fates, End::Open);
        assert_eq!(open, Verdict::Permitted);
        stream.end = End::Fin;
        assert_eq!(judged(seen(stream), &fates, End::Open), Verdict::Right);
    }
}
