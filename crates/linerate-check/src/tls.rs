//! TLS connections that are cut into small records and segments, and alerts instead of a handshake
//! (RFC 8446).

mod forge;
mod shaped;
pub(crate) mod tls12;

use crate::{
    judge::Judgement,
    outcome::{End, Outcome},
};

pub(crate) use shaped::{Segments, Shaped};

/// How a TLS connection is cut into pieces, how it ends, and what it negotiates.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Shape {
    /// The maximum size of a TCP segment in bytes, from the start of the connection.
    pub segment_bytes_max: Option<usize>,
    /// The maximum size of a record in bytes, including header and protection, from the start of
    /// the connection. At least 32.
    pub record_bytes_max: Option<usize>,
    /// The maximum number of WebSocket bytes in a record.
    pub write_bytes_max: Option<usize>,
    /// How our direction ends.
    pub ending: Ending,
    /// True for TLS 1.2.
    pub is_tls12: bool,
    /// The protocols to offer by ALPN (RFC 7301).
    pub protocols: &'static [&'static [u8]],
}

/// How our direction ends.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Ending {
    /// With these unprotected bytes; then we wait for the peer to end the connection.
    Bare(&'static [u8]),
    /// With `close_notify`.
    #[default]
    CloseNotify,
    /// With a record of this type and content, protected like all others; then we wait for the peer
    /// to end the connection.
    Record(u8, &'static [u8]),
    /// Without `close_notify` (RFC 8446 §6.1).
    Truncated,
}

/// Record types (RFC 8446 §5.1).
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;

/// Returns the code of the alert, if the first record is one.
pub(crate) fn alert(arrived: &[u8]) -> Option<u8> {
    match arrived {
        [ALERT, 3, _, 0, 2, _, alert, ..] => Some(*alert),
        _ => None,
    }
}

/// Judges an input that has to be refused with one of these alerts, or, if the list is empty, by
/// the end of the connection.
pub(crate) fn judge_refusal(alerts: &[u8], outcome: &Outcome) -> Judgement {
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
