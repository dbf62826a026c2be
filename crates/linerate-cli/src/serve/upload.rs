//! `/logs/upload`: receives access logs and pushes their statistics (subprotocol
//! `linerate.logs.v1`).
//!
//! The worker receives and sends. Its input passes through a lane, which holds up to 2 MiB, to a
//! session, which parses it in order on one of a few parser threads. A session whose connection was
//! lost is kept for a while, so that its client can resume it on any worker.
//!
//! Close codes at the end of a session:
//!
//! | session | code |
//! | --- | --- |
//! | cancelled, idle after its end, or resumed on another connection | 1000 |
//! | a file is not an access log | 1003 |
//! | the files are too large | 1009 |
//! | another client error | 1008 |
//! | too many uploads, or not enough memory | 1013 |
//! | missing or wrong key, or uploads are switched off | 1008 |

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

const BUSY: &str = r#"{"type":"error","code":"busy","message":"The server has reached its limit of simultaneous uploads. Try again later."}"#;
const BUSY_FAREWELL: Farewell = Farewell {
    code: CloseCode::TRY_AGAIN_LATER,
    reason: "too many uploads",
};
const BUSY_ADDRESS: &str = r#"{"type":"error","code":"busy","message":"The server has reached its limit of simultaneous uploads from your address. Try again later."}"#;
const OFF: &str = r#"{"type":"error","code":"off","message":"Uploads are switched off on this server (logs.uploads_max = 0)."}"#;
const OFF_FAREWELL: Farewell = Farewell {
    code: CloseCode::POLICY_VIOLATION,
    reason: "uploads disabled",
};
const FAILED_FAREWELL: Farewell = Farewell {
    code: CloseCode::INTERNAL_ERROR,
    reason: "",
};
const TAKEN_FAREWELL: Farewell = Farewell {
    code: CloseCode::NORMAL,
    reason: "resumed elsewhere",
};

/// Returns the options of an upload connection.
///
/// A message may be as long as the window, because the client may not send more than that without
/// an acknowledgement. Messages are received in pieces and never held as a whole: while the
/// application does not receive, reading stops after [`Options::recv_queue_bytes_max`].
pub(super) fn options(common: &Options, sessions: &Sessions) -> Options {
    let mut options = common.clone();
    options.config.limits.message_bytes_max = sessions.limits.window_bytes;
    options
}

/// One upload connection.
#[derive(Debug)]
pub(super) struct Upload {
    sessions: Arc<Sessions>,
    visitor: Visitor,
}

/// The address of a client, and the gate that decides whether it may upload.
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

/// Returns the error message and the farewell for an upload that gets no place.
fn refusal_of_place(why: NoPlace) -> (&'static str, Farewell) {
    match why {
        NoPlace::Address => (BUSY_ADDRESS, BUSY_FAREWELL),
        NoPlace::Busy => (BUSY, BUSY_FAREWELL),
        NoPlace::Off => (OFF, OFF_FAREWELL),
    }
}

/// Returns how to close a connection after its session.
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
            reason: "out of memory for uploads",
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
