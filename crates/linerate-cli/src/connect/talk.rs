//! The conversation: sends input and shows messages until one side closes the connection.

use std::{pin::pin, time::Duration};

use linerate::{CloseCode, Message, Sender, WebSocket};
use tokio::{
    sync::mpsc,
    time::{Instant, interval, sleep_until},
};

use super::transcript::{RoundTrips, Transcript};

/// How often to check whether a Pong has arrived.
const PONG_INTERVAL: Duration = Duration::from_millis(100);

/// Sends all messages and shows all that arrive.
///
/// Closes the connection on ctrl-c, or once the input has ended and no message has arrived for
/// `wait`.
///
/// # Errors
/// Returns an error if the connection is lost, the input cannot be read, or the output cannot be
/// written.
pub(super) async fn talk(
    ws: WebSocket,
    messages: mpsc::Receiver<anyhow::Result<Message>>,
    transcript: &Transcript,
    wait: Duration,
) -> anyhow::Result<()> {
    let (sender, mut receiver) = ws.split();
    let mut sending = pin!(send_all(messages, &sender, transcript));
    let mut interrupted = pin!(tokio::signal::ctrl_c());
    let mut look_for_pong = interval(PONG_INTERVAL);
    let mut latency = receiver.latency();
    let mut round_trips = RoundTrips::default();
    let mut all_sent = None;
    let mut last_sign = Instant::now();
    loop {
        tokio::select! {
            message = receiver.recv() => {
                let Some(message) = message? else { break };
                transcript.received(&message)?;
                last_sign = Instant::now();
            }
            sent = &mut sending, if all_sent.is_none() => {
                all_sent = Some(sent);
                last_sign = Instant::now();
            }
            () = sleep_until(last_sign + wait), if all_sent.is_some() => break,
            _ = look_for_pong.tick() => {
                if latency != receiver.latency() {
                    latency = receiver.latency();
                    if let Some(latency) = latency {
                        round_trips.add(latency);
                        transcript.pong(latency)?;
                    }
                }
            }
            _ = &mut interrupted => break,
        }
    }
    // If the server has already begun to close, this only waits.
    sender.close(CloseCode::NORMAL, "").await?;
    while let Some(message) = receiver.recv().await? {
        transcript.received(&message)?;
    }
    transcript.round_trips(&round_trips)?;
    if let Some(closed) = receiver.closed() {
        transcript.closed(&closed)?;
    }
    all_sent.unwrap_or(Ok(()))
}

/// Sends messages until there are no more or sending fails. The reason for a failure is reported by
/// the receiving side.
async fn send_all(
    mut messages: mpsc::Receiver<anyhow::Result<Message>>,
    sender: &Sender,
    transcript: &Transcript,
) -> anyhow::Result<()> {
    while let Some(message) = messages.recv().await {
        let message = message?;
        transcript.sent(&message)?;
        if sender.send(message).await.is_err() {
            break;
        }
    }
    Ok(())
}
