//! Judges the answer to bytes that replace a TLS handshake (RFC 8446 §6.2).

use super::Judgement;
use crate::{
    connection::End,
    outcome::Outcome,
    tls::{HANDSHAKE, alert},
};

/// Judges an input that has to be refused with one of these alerts, or, if the list is empty, by
/// the end of the connection.
pub(super) fn judge(alerts: &[u8], outcome: &Outcome) -> Judgement {
    if outcome.rest.first() == Some(&HANDSHAKE) {
        return Judgement::wrong("the handshake continues");
    }
    match (alert(&outcome.rest), outcome.end) {
        // A server has a deadline for handshakes, or should have one.
        (None, End::Open) if alerts.is_empty() => {
            Judgement::permitted("the connection is not ended")
        }
        (None, End::Open) => Judgement::wrong("nothing happens"),
        (None, _) if alerts.is_empty() => Judgement::right(),
        (None, _) => Judgement::permitted("dropped without an alert"),
        (Some(alert), _) if !alerts.is_empty() && !alerts.contains(&alert) => {
            Judgement::permitted("another alert")
        }
        // RFC 8446 §6.2: "Upon transmission or receipt of a fatal alert message, both parties MUST
        // immediately close the connection."
        (Some(_), End::Open) => Judgement::wrong("the connection stays open after the alert"),
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
            judge(&[70], &outcome).verdict
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
        let waits = judge(&[], &Outcome::default()).verdict;
        assert_eq!(waits, Verdict::Permitted);
    }
}
