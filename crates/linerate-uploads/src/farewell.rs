//! How a connection is closed at the end of its conversation.

use linerate::CloseCode;
use linerate_logview::{
    decode::DecodeError,
    session::{Outcome, SessionError},
};

use crate::sessions::SessionRefusal;

const BUSY: &str = r#"{"type":"error","code":"busy","message":"The server has reached its limit of simultaneous uploads. Try again later."}"#;
const BUSY_ADDRESS: &str = r#"{"type":"error","code":"busy","message":"The server has reached its limit of simultaneous uploads from your address. Try again later."}"#;
pub(crate) const BUSY_VIEWERS: &str = r#"{"type":"error","code":"busy","message":"This log has as many viewers as the server allows at a time (logs.viewers_max). Try again later."}"#;
const OFF: &str = r#"{"type":"error","code":"off","message":"Uploads are switched off on this server (logs.uploads_max = 0)."}"#;

/// How to close a connection, unless the client has already begun to close it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Farewell {
    /// The code for the Close frame.
    pub code: CloseCode,
    /// The reason for the Close frame.
    pub reason: &'static str,
}

impl Farewell {
    pub(crate) const BUSY: Self = Self::new(CloseCode::TRY_AGAIN_LATER, "too many uploads");
    pub(crate) const BUSY_VIEWERS: Self = Self::new(CloseCode::TRY_AGAIN_LATER, "too many viewers");
    pub(crate) const CLOSED: Self = Self::new(CloseCode::POLICY_VIOLATION, "closed");
    pub(crate) const DONE: Self = Self::new(CloseCode::NORMAL, "");
    pub(crate) const FAILED: Self = Self::new(CloseCode::INTERNAL_ERROR, "");
    pub(crate) const KEYS_LIMITED: Self =
        Self::new(CloseCode::TRY_AGAIN_LATER, "too many wrong keys");
    pub(crate) const NOT_A_LOG: Self = Self::new(CloseCode::UNSUPPORTED_DATA, "not an access log");
    pub(crate) const NO_MEMORY: Self =
        Self::new(CloseCode::TRY_AGAIN_LATER, "out of memory for uploads");
    pub(crate) const OFF: Self = Self::new(CloseCode::POLICY_VIOLATION, "uploads disabled");
    pub(crate) const TAKEN: Self = Self::new(CloseCode::NORMAL, "resumed elsewhere");
    pub(crate) const TOO_LARGE: Self = Self::new(CloseCode::MESSAGE_TOO_BIG, "log too large");
    pub(crate) const WRONG_KEY: Self = Self::new(CloseCode::POLICY_VIOLATION, "wrong key");

    const fn new(code: CloseCode, reason: &'static str) -> Self {
        Self { code, reason }
    }

    /// Returns how to close a connection after its session.
    pub(crate) fn of_outcome(outcome: Option<&Outcome>) -> Self {
        let Some(Outcome::Failed(error)) = outcome else {
            return Self::DONE;
        };
        tracing::debug!(%error, "upload refused");
        Self::of_error(error)
    }

    pub(crate) fn of_error(error: &SessionError) -> Self {
        match error {
            SessionError::Idle { .. } => Self::DONE,
            SessionError::InFile { reason, .. } => Self::of_error(reason),
            SessionError::GaveWay { .. } | SessionError::NoMemory { .. } => Self::NO_MEMORY,
            SessionError::Decode(DecodeError::Ratio { .. } | DecodeError::TooLarge { .. })
            | SessionError::TooLarge { .. } => Self::TOO_LARGE,
            SessionError::Decode(_) | SessionError::NotALog { .. } => Self::NOT_A_LOG,
            _ => Self::new(CloseCode::POLICY_VIOLATION, error.code()),
        }
    }
}

/// Returns the error message and the farewell for an upload that gets no place.
pub(crate) fn refusal_of_place(why: SessionRefusal) -> (&'static str, Farewell) {
    match why {
        SessionRefusal::Address => (BUSY_ADDRESS, Farewell::BUSY),
        SessionRefusal::Busy => (BUSY, Farewell::BUSY),
        SessionRefusal::Off => (OFF, Farewell::OFF),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use linerate_logview::decode::DecodeError;
    use linerate_logview::session::{Outcome, SessionError};

    use super::{BUSY, Farewell};

    #[test]
    fn the_close_code_tells_how_the_session_ended() {
        let code = |outcome: Outcome| Farewell::of_outcome(Some(&outcome)).code.as_u16();
        let failed = |error: SessionError| code(Outcome::Failed(error));
        let idle_max = Duration::from_secs(1);
        assert_eq!(failed(SessionError::Idle { idle_max }), 1000);
        assert_eq!(code(Outcome::Cancelled), 1000);
        assert_eq!(
            failed(SessionError::NotALog {
                requests: 0,
                lines: 9
            }),
            1003
        );
        let reason = Box::new(SessionError::Decode(DecodeError::Truncated));
        assert_eq!(failed(SessionError::InFile { file: 2, reason }), 1003);
        assert_eq!(
            failed(SessionError::TooLarge {
                bytes: 2,
                bytes_max: 1
            }),
            1009
        );
        assert_eq!(failed(SessionError::SecondStart), 1008);
    }

    #[test]
    fn the_answer_to_one_upload_too_many_is_an_error_of_the_protocol() {
        let error: serde_json::Value = serde_json::from_str(BUSY).unwrap();
        assert_eq!(error["type"], "error");
        assert_eq!(error["code"], "busy");
        assert!(error["message"].is_string());
    }
}
