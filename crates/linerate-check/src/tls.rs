//! Connections over TLS whose records and segments are cut, and alerts in place of a handshake (RFC 8446).

mod forge;
mod shaped;
pub(crate) mod tls12;

use crate::{
    judge::Judgement,
    outcome::{End, Outcome},
};

pub(crate) use shaped::{Segments, Shaped};

/// How a connection over TLS is cut.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Shape {
    /// What a segment of TCP carries at most, from the first byte on.
    pub segment_bytes_max: Option<usize>,
    /// What a record has at most, from the first on; at least 32, header and protection included.
    pub record_bytes_max: Option<usize>,
    /// What a record of the WebSocket carries at most.
    pub write_bytes_max: Option<usize>,
    /// How it ends.
    pub ending: Ending,
    /// Whether it is TLS 1.2.
    pub is_tls12: bool,
    /// What it offers to speak (RFC 7301).
    pub protocols: &'static [&'static [u8]],
}

/// How our direction ends.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Ending {
    /// By bytes that nobody has protected; then the other side is waited for.
    Bare(&'static [u8]),
    /// By `close_notify`.
    #[default]
    CloseNotify,
    /// By a record of this type with this content, protected as all others; then the other side is waited for.
    Record(u8, &'static [u8]),
    /// Without `close_notify` (RFC 8446 §6.1).
    Truncated,
}

/// Types of records (RFC 8446 §5.1).
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;

/// Returns the alert that is the first record.
pub(crate) fn alert(arrived: &[u8]) -> Option<u8> {
    match arrived {
        [ALERT, 3, _, 0, 2, _, alert, ..] => Some(*alert),
        _ => None,
    }
}

/// Returns what to think where one of these alerts has to come, or the end if there is none.
pub(crate) fn judge_refusal(alerts: &[u8], outcome: &Outcome) -> Judgement {
    if outcome.rest.first() == Some(&HANDSHAKE) {
        return Judgement::wrong("the handshake goes on");
    }
    match (alert(&outcome.rest), outcome.end) {
        // It has a deadline, or should have one.
        (None, End::Open) if alerts.is_empty() => {
            Judgement::permitted("the connection is not ended")
        }
        (None, End::Open) => Judgement::wrong("nothing happens"),
        (None, _) if alerts.is_empty() => Judgement::right(),
        (None, _) => Judgement::permitted("dropped without an alert"),
        (Some(alert), _) if !alerts.is_empty() && !alerts.contains(&alert) => {
            Judgement::permitted("another alert")
        }
        // RFC 8446 §6.2: "Upon transmission or receipt of a fatal alert message, both parties MUST immediately
        // close the connection."
        (Some(_), End::Open) => Judgement::wrong("the connection stays open behind the alert"),
        (Some(_), _) => Judgement::right(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Verdict;

    #[test]
    fn a_refusal_is_an_alert_and_the_end() {
        let judged = |rest: &[u8], end: End| {
            let outcome = Outcome {
                rest: rest.into(),
                end,
                ..Outcome::default()
            };
            judge_refusal(&[70], &outcome).verdict
        };
        let version = b"\x15\x03\x03\x00\x02\x02\x46";
        assert_eq!(judged(version, End::Fin), Verdict::Right);
        assert_eq!(judged(version, End::Open), Verdict::Wrong);
        assert_eq!(
            judged(b"\x15\x03\x03\x00\x02\x02\x28", End::Fin),
            Verdict::Permitted
        );
        assert_eq!(judged(b"", End::Reset), Verdict::Permitted);
        assert_eq!(judged(b"", End::Open), Verdict::Wrong);
        assert_eq!(judged(b"\x16\x03\x03", End::Fin), Verdict::Wrong);
        let waits = judge_refusal(&[], &Outcome::default()).verdict;
        assert_eq!(waits, Verdict::Permitted);
    }
}
