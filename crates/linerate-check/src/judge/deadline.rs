//! Judges whether an endpoint ends a connection that makes no progress (RFC 9112 §9.5, RFC 6455
//! §7.1.1, §10.4).

use super::Judgement;
use crate::{connection::End, outcome::Outcome};

/// Judges an input after which the connection has to end, whatever the endpoint sends before that.
/// With `may_wait`, keeping the connection open breaks no rule.
pub(super) fn judge(may_wait: bool, outcome: &Outcome) -> Judgement {
    if !outcome.answers.is_empty() {
        return Judgement::wrong("it was accepted as a message");
    }
    let said = outcome.close.is_some() || outcome.head.as_ref().is_some_and(|head| !head.opens());
    match outcome.end {
        End::Open if said => Judgement::wrong("the connection stays open after the answer"),
        End::Open if may_wait => Judgement::permitted("it sends no Ping to a silent peer"),
        End::Open => Judgement::wrong("it waits for more data"),
        End::Fin | End::Reset => judge_last_words(outcome),
    }
}

fn judge_last_words(outcome: &Outcome) -> Judgement {
    let status = outcome.head.as_ref().and_then(|head| head.status());
    match status {
        // 101 and 200 opened the WebSocket before, over HTTP/1.1 or on an HTTP/2 stream.
        None | Some(101 | 200 | 408) => Judgement::right(),
        Some(400..=599) => Judgement::permitted("refused with another status"),
        Some(status) => Judgement::wrong(format!("the status is {status}")),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{answers::Answer, case::Verdict, http::Head, outcome::CloseFrame};

    fn outcome(status: Option<u16>, end: End) -> Outcome {
        let head = status.map(|status| Head {
            line: format!("HTTP/1.1 {status} x"),
            fields: Vec::new(),
        });
        Outcome {
            head,
            end,
            took: Duration::from_secs(10),
            ..Outcome::default()
        }
    }

    #[test]
    fn whoever_ends_it_is_right_whatever_is_said() {
        let judged = |status, end| judge(false, &outcome(status, end)).verdict;
        assert_eq!(judged(None, End::Fin), Verdict::Right);
        assert_eq!(judged(None, End::Reset), Verdict::Right);
        assert_eq!(judged(Some(408), End::Fin), Verdict::Right);
        assert_eq!(judged(Some(400), End::Fin), Verdict::Permitted);
        assert_eq!(judged(Some(302), End::Fin), Verdict::Wrong);
    }

    #[test]
    fn whoever_waits_is_wrong_unless_silence_is_in_order() {
        let open = outcome(None, End::Open);
        assert_eq!(judge(false, &open).verdict, Verdict::Wrong);
        assert_eq!(judge(true, &open).verdict, Verdict::Permitted);
    }

    #[test]
    fn words_without_an_end_are_wrong() {
        let answered = outcome(Some(408), End::Open);
        assert_eq!(judge(true, &answered).verdict, Verdict::Wrong);
        let mut closed = outcome(None, End::Open);
        closed.close = Some(CloseFrame {
            code: Some(1002),
            stages: 1,
        });
        assert_eq!(judge(true, &closed).verdict, Verdict::Wrong);
        let mut taken = outcome(None, End::Fin);
        taken.answers.push(Answer {
            opcode: 1,
            payload: Vec::new(),
        });
        assert_eq!(judge(false, &taken).verdict, Verdict::Wrong);
    }
}
