//! `/logs/upload`: takes access logs and pushes their figures (subprotocol `linerate.logs.v1`).
//!
//! The worker receives and sends. What comes goes by a lane, on which a few MiB may wait, to a
//! session on one of a few threads that parse, in order. A session whose connection was lost is
//! kept for a while, for its client to come back, to whichever worker.
//!
//! How the connection is closed once the session is over:
//!
//! | session | code |
//! | --- | --- |
//! | cancelled, idle after its end, or gone on over another connection | 1000 |
//! | a file is no access log | 1003 |
//! | the files are too large | 1009 |
//! | another error of the client | 1008 |
//! | too many uploads, or too little memory | 1013 |
//! | no key, a wrong one, or uploads are off | 1008 |

mod access;
mod conversation;
mod lane;
mod memory;
mod parsing;
mod sessions;
mod viewing;

use std::{net::IpAddr, sync::Arc};

use linerate::{CloseCode, Options, Receiver, Result, Sender};
use linerate_logview::{
    decode::DecodeError,
    session::{Outcome, SessionError},
};

use super::endpoint::{Endpoint, Farewell};
pub(super) use access::Gate;
use conversation::Conversation;
pub(super) use parsing::step_back;
use sessions::NoPlace;
pub(super) use sessions::{ALLOCATED_FOR_8, Sessions};

const BUSY: &str = r#"{"type":"error","code":"busy","message":"The server reads as many logs as it may at a time. Try again in a while."}"#;
const BUSY_FAREWELL: Farewell = Farewell {
    code: CloseCode::TRY_AGAIN_LATER,
    reason: "too many uploads",
};
const BUSY_ADDRESS: &str = r#"{"type":"error","code":"busy","message":"The server reads as many logs from your address as it may at a time. Try again in a while."}"#;
const OFF: &str = r#"{"type":"error","code":"off","message":"Uploads are switched off on this server (logs.uploads_max = 0)."}"#;
const OFF_FAREWELL: Farewell = Farewell {
    code: CloseCode::POLICY_VIOLATION,
    reason: "uploads are off",
};
const FAILED_FAREWELL: Farewell = Farewell {
    code: CloseCode::INTERNAL_ERROR,
    reason: "",
};
const TAKEN_FAREWELL: Farewell = Farewell {
    code: CloseCode::NORMAL,
    reason: "resumed elsewhere",
};

/// Returns the options of a connection that uploads.
///
/// A message may be as long as the window, since the client may not have sent more than that
/// without an acknowledgement. It is received piece by piece and never held as a whole: while nobody
/// receives, reading stops after [`Options::recv_queue_bytes_max`].
pub(super) fn options(common: &Options, sessions: &Sessions) -> Options {
    let mut options = common.clone();
    options.config.limits.message_bytes_max = sessions.limits.window_bytes;
    options
}

/// One connection that uploads.
#[derive(Debug)]
pub(super) struct Upload {
    sessions: Arc<Sessions>,
    visitor: Visitor,
}

/// Who wants to upload, and who decides whether it may.
#[derive(Clone, Debug)]
struct Visitor {
    address: IpAddr,
    gate: Arc<Gate>,
}

impl Upload {
    pub(super) fn new(sessions: Arc<Sessions>, gate: Arc<Gate>, address: IpAddr) -> Self {
        let visitor = Visitor { address, gate };
        Self { sessions, visitor }
    }
}

impl Endpoint for Upload {
    async fn talk(self, sender: &Sender, receiver: &mut Receiver) -> Result<Farewell> {
        Conversation::new(&self.sessions, sender, self.visitor)
            .talk(receiver)
            .await
    }
}

/// Says why there is no place for an upload.
fn refusal_of_place(why: NoPlace) -> (&'static str, Farewell) {
    match why {
        NoPlace::Address => (BUSY_ADDRESS, BUSY_FAREWELL),
        NoPlace::Busy => (BUSY, BUSY_FAREWELL),
        NoPlace::Off => (OFF, OFF_FAREWELL),
    }
}

/// Says how a connection is closed after its session.
fn farewell(outcome: Option<&Outcome>) -> Farewell {
    let Some(Outcome::Failed(error)) = outcome else {
        return Farewell::DONE;
    };
    tracing::debug!(%error, "upload refused");
    farewell_of_error(error)
}

fn farewell_of_error(error: &SessionError) -> Farewell {
    match error {
        SessionError::Idle { .. } => Farewell::DONE,
        SessionError::InFile { reason, .. } => farewell_of_error(reason),
        SessionError::GaveWay { .. } | SessionError::NoMemory { .. } => Farewell {
            code: CloseCode::TRY_AGAIN_LATER,
            reason: "no memory left for uploads",
        },
        SessionError::Decode(DecodeError::Ratio { .. } | DecodeError::TooLarge { .. }) => {
            Farewell {
                code: CloseCode::MESSAGE_TOO_BIG,
                reason: "log too large",
            }
        }
        SessionError::Decode(_) | SessionError::NotALog { .. } => Farewell {
            code: CloseCode::UNSUPPORTED_DATA,
            reason: "not an access log",
        },
        SessionError::TooLarge { .. } => Farewell {
            code: CloseCode::MESSAGE_TOO_BIG,
            reason: "log too large",
        },
        _ => Farewell {
            code: CloseCode::POLICY_VIOLATION,
            reason: error.code(),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use linerate_logview::decode::DecodeError;
    use linerate_logview::session::{Outcome, SessionError};

    use super::{BUSY, farewell};

    #[test]
    fn the_close_code_tells_how_the_session_ended() {
        let code = |outcome: Outcome| farewell(Some(&outcome)).code.as_u16();
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
