//! The conversation: does what the user asks for and shows messages until one side closes the
//! connection.

use std::{
    pin::{Pin, pin},
    time::Duration,
};

use futures_util::{Stream, StreamExt};
use linerate::{CloseCode, Message, Receiver, Sender, WebSocket};
use tokio::{
    sync::mpsc,
    time::{Instant, interval, interval_at, sleep_until},
};

use super::{
    action::Action,
    transcript::{RoundTrips, Transcript},
};

/// How often to check whether the Pong of a keepalive Ping has arrived.
const PONG_INTERVAL: Duration = Duration::from_millis(100);

/// How often to show how much of a file has been sent.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// The payload of a Ping that the user sent, and its round-trip time.
type Pong = (String, Duration);

/// The code and the reason with which the user closes the connection.
type Farewell = (CloseCode, String);

/// Does what the user asks for and shows all messages that arrive.
///
/// Closes the connection once `interrupted` completes, or once `actions` have ended and no message
/// has arrived for `wait`.
///
/// # Errors
/// Returns an error if the connection is lost, the input cannot be read, or the output cannot be
/// written.
pub(super) async fn talk(
    ws: WebSocket,
    actions: impl Stream<Item = anyhow::Result<Action>> + Unpin,
    interrupted: impl Future<Output = ()>,
    transcript: &mut Transcript,
    wait: Duration,
) -> anyhow::Result<()> {
    let (sender, mut receiver) = ws.split();
    let mut round_trips = RoundTrips::default();
    let talked = {
        let (pongs, answered) = mpsc::unbounded_channel();
        let doing = do_all(actions, &sender, transcript, pongs);
        let talk = Talk {
            transcript,
            round_trips: &mut round_trips,
            answered,
        };
        talk.run(&sender, &mut receiver, pin!(doing), interrupted, wait)
            .await
    };
    transcript.end_prompt().await;
    let done = talked?;
    transcript.round_trips(&round_trips).await?;
    if let Some(closed) = receiver.closed() {
        transcript.closed(&closed).await?;
    }
    done
}

/// What is shown while the user's actions are being done.
struct Talk<'t> {
    transcript: &'t Transcript,
    round_trips: &'t mut RoundTrips,
    answered: mpsc::UnboundedReceiver<Pong>,
}

impl Talk<'_> {
    /// Shows messages and Pongs until the connection is closed; returns how `doing` ended, or `Ok`
    /// if it has not.
    async fn run(
        mut self,
        sender: &Sender,
        receiver: &mut Receiver,
        mut doing: Pin<&mut impl Future<Output = anyhow::Result<Option<Farewell>>>>,
        interrupted: impl Future<Output = ()>,
        wait: Duration,
    ) -> anyhow::Result<anyhow::Result<()>> {
        let mut interrupted = pin!(interrupted);
        let mut look_for_pong = interval(PONG_INTERVAL);
        let mut latency = receiver.latency();
        let mut done = None;
        let mut last_sign = Instant::now();
        loop {
            tokio::select! {
                message = receiver.recv() => {
                    let Some(message) = message? else { break };
                    self.transcript.received(&message).await?;
                    last_sign = Instant::now();
                }
                result = &mut doing, if done.is_none() => {
                    let is_over = matches!(result, Ok(Some(_)));
                    done = Some(result);
                    last_sign = Instant::now();
                    if is_over {
                        break;
                    }
                }
                () = sleep_until(last_sign + wait), if done.is_some() => break,
                Some((payload, time)) = self.answered.recv() => {
                    self.show_pong(&payload, time).await?;
                }
                _ = look_for_pong.tick() => {
                    if latency != receiver.latency() {
                        latency = receiver.latency();
                        if let Some(latency) = latency {
                            self.show_pong("", latency).await?;
                        }
                    }
                }
                () = &mut interrupted => break,
            }
        }
        let (done, farewell) = match done {
            Some(Ok(farewell)) => (Ok(()), farewell),
            Some(Err(error)) => (Err(error), None),
            None => (Ok(()), None),
        };
        let (code, reason) = farewell.unwrap_or((CloseCode::NORMAL, String::new()));
        // If the server has already begun to close, this only waits.
        sender.close(code, &reason).await?;
        while let Some(message) = receiver.recv().await? {
            self.transcript.received(&message).await?;
        }
        Ok(done)
    }

    async fn show_pong(&mut self, payload: &str, time: Duration) -> anyhow::Result<()> {
        self.round_trips.add(time);
        Ok(self.transcript.pong(payload, time).await?)
    }
}

/// Does what the user asks for until that is to close the connection, there is nothing more, or
/// sending fails. The reason for a failure is reported by the receiving side.
async fn do_all(
    mut actions: impl Stream<Item = anyhow::Result<Action>> + Unpin,
    sender: &Sender,
    transcript: &Transcript,
    pongs: mpsc::UnboundedSender<Pong>,
) -> anyhow::Result<Option<Farewell>> {
    while let Some(action) = actions.next().await {
        let sent = match action? {
            Action::Close { code, reason } => return Ok(Some((code, reason))),
            Action::Ping(payload) => {
                let (sender, pongs) = (sender.clone(), pongs.clone());
                tokio::spawn(async move {
                    if let Ok(time) = sender.round_trip(payload.as_bytes()).await {
                        // The conversation may have ended.
                        _ = pongs.send((payload, time));
                    }
                });
                Ok(())
            }
            Action::Send(message) => {
                transcript.sent(&message)?;
                sender.send(message).await
            }
            Action::SendFile { name, message } => {
                send_file(&name, message, sender, transcript).await?
            }
        };
        if sent.is_err() {
            break;
        }
    }
    Ok(None)
}

/// Sends the content of a file and shows how much of it remains to be sent.
async fn send_file(
    name: &str,
    message: Message,
    sender: &Sender,
    transcript: &Transcript,
) -> anyhow::Result<linerate::Result<()>> {
    let bytes = message.len();
    let started = Instant::now();
    if let Err(error) = sender.send(message).await {
        return Ok(Err(error));
    }
    let mut progress = interval_at(started + PROGRESS_INTERVAL, PROGRESS_INTERVAL);
    loop {
        tokio::select! {
            flushed = sender.flush() => {
                if flushed.is_ok() {
                    let seconds = started.elapsed().as_secs_f64();
                    let text = format!("sent {name}: {bytes} bytes in {seconds:.1} s");
                    transcript.file(&text).await?;
                }
                return Ok(flushed);
            }
            _ = progress.tick() => {
                let queued = sender.queued_bytes();
                transcript.file(&format!("sending {name}: {queued} bytes remain")).await?;
            }
        }
    }
}
