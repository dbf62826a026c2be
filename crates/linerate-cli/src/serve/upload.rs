//! `/logs/upload`: takes an access log and pushes its figures (subprotocol `linerate.logs.v1`).
//!
//! The log is parsed as it arrives: binary messages are handed to the session piece by piece, so
//! that no more of them is held than one read from the socket. While a reply can't be sent,
//! nothing is read, and TCP slows the client.
//!
//! How the connection is closed once the session is over:
//!
//! | session | code |
//! | --- | --- |
//! | cancelled, or idle after its end | 1000 |
//! | the file is no access log | 1003 |
//! | the file is too large | 1009 |
//! | another error of the client | 1008 |
//! | too many uploads | 1013 |

use std::{pin::pin, sync::Arc, time::Duration};

use linerate::{CloseCode, MessageKind, Options, Reader, Receiver, Result, Sender};
use linerate_logview::session::{Limits, Outcome, Session, SessionError, SessionId};
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep_until},
};

use super::endpoint::{Endpoint, Farewell};

const BUSY: &str = r#"{"type":"error","code":"busy","message":"The server reads as many logs as it may at a time. Try again in a while."}"#;
const BUSY_FAREWELL: Farewell = Farewell {
    code: CloseCode::TRY_AGAIN_LATER,
    reason: "too many uploads",
};

/// Returns the options of a connection that uploads.
///
/// A message may be as long as the window, since the client may not have sent more than that
/// without an acknowledgement. It is parsed piece by piece; only while a reply is held up may the
/// next message pile up, and then this is the bound.
pub(super) fn options(common: &Options) -> Options {
    let mut options = common.clone();
    options.config.limits.message_bytes_max = Limits::default().window_bytes;
    options
}

/// One upload, if there is a place for it.
#[derive(Debug)]
pub(super) struct Upload {
    places: Arc<Semaphore>,
}

impl Upload {
    pub(super) fn new(places: Arc<Semaphore>) -> Self {
        Self { places }
    }
}

impl Endpoint for Upload {
    async fn talk(self, sender: &Sender, receiver: &mut Receiver) -> Result<Farewell> {
        // Given back on drop, so on every way out of here.
        let Ok(_place) = self.places.try_acquire_owned() else {
            sender.send(BUSY).await?;
            return Ok(BUSY_FAREWELL);
        };
        let mut conversation = Conversation::new(sender);
        conversation.reply().await?;
        while !conversation.session.is_finished() {
            if !conversation.hear_message(receiver).await? {
                tracing::debug!("upload ended by the client's Close frame");
                return Ok(Farewell::DONE);
            }
        }
        Ok(farewell(conversation.session.outcome()))
    }
}

/// The session and its clock.
struct Conversation<'a> {
    session: Session,
    text_bytes_max: usize,
    started: Instant,
    sender: &'a Sender,
}

impl<'a> Conversation<'a> {
    fn new(sender: &'a Sender) -> Self {
        let limits = Limits::default();
        let id = SessionId::from_bytes(rand::random());
        Self {
            text_bytes_max: limits.text_bytes_max,
            session: Session::new(limits, id, Duration::ZERO),
            started: Instant::now(),
            sender,
        }
    }

    /// Takes one message; returns `false` if there is none because the client closes.
    async fn hear_message(&mut self, receiver: &mut Receiver) -> Result<bool> {
        let Some(begun) = self.while_replying(receiver.reader()).await? else {
            return Ok(true);
        };
        let Some(reader) = begun? else {
            return Ok(false);
        };
        match reader.kind() {
            MessageKind::Binary => self.hear_log(reader).await?,
            MessageKind::Text => self.hear_control(reader).await?,
        }
        Ok(true)
    }

    /// Takes a binary message as it arrives. After every MiB or so, receiving lets the other
    /// connections of the worker have their turn.
    async fn hear_log(&mut self, mut reader: Reader<'_>) -> Result<()> {
        while let Some(piece) = self.while_replying(reader.chunk()).await? {
            let Some(piece) = piece? else {
                self.session.handle_chunk(b"", true, self.now());
                return self.reply().await;
            };
            self.session
                .handle_chunk(piece.as_bytes(), false, self.now());
            self.reply().await?;
        }
        Ok(())
    }

    /// Takes a text message, of which only so much is kept that the session can refuse it.
    async fn hear_control(&mut self, mut reader: Reader<'_>) -> Result<()> {
        let mut text = String::new();
        while text.len() <= self.text_bytes_max {
            let Some(piece) = self.while_replying(reader.chunk()).await? else {
                return Ok(());
            };
            let Some(piece) = piece? else { break };
            text.push_str(piece.as_text().unwrap_or_default());
        }
        self.session.handle_text(&text, self.now());
        self.reply().await
    }

    /// Waits for `input`, and meanwhile sends the replies that become due; `None` if the session
    /// ended over it.
    async fn while_replying<T>(&mut self, input: impl Future<Output = T>) -> Result<Option<T>> {
        let mut input = pin!(input);
        while let Some(due) = self.session.poll_timeout() {
            tokio::select! {
                biased;
                input = &mut input => return Ok(Some(input)),
                () = sleep_until(self.started + due) => {
                    self.session.handle_timeout(self.now());
                    self.reply().await?;
                }
            }
        }
        Ok(None)
    }

    /// Sends the replies that are due.
    async fn reply(&mut self) -> Result<()> {
        while let Some(reply) = self.session.poll_reply(self.now()) {
            self.sender.send(reply).await?;
        }
        Ok(())
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
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
        SessionError::Compressed(_) | SessionError::NotALog { .. } => Farewell {
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

    use linerate_logview::session::{Outcome, SessionError};

    use super::{BUSY, farewell};

    #[test]
    fn the_close_code_tells_how_the_session_ended() {
        let code = |outcome: Outcome| farewell(Some(&outcome)).code.as_u16();
        let failed = |error: SessionError| code(Outcome::Failed(error));
        let idle_max = Duration::from_secs(1);
        assert_eq!(failed(SessionError::Idle { idle_max }), 1000);
        assert_eq!(code(Outcome::Cancelled), 1000);
        assert_eq!(failed(SessionError::Compressed("gzip")), 1003);
        assert_eq!(
            failed(SessionError::NotALog {
                requests: 0,
                lines: 9
            }),
            1003
        );
        let reason = Box::new(SessionError::Compressed("xz"));
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
