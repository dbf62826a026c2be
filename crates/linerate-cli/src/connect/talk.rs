//! The conversation: input goes out, messages come in, until one side is done.

use std::{pin::pin, time::Duration};

use linerate::{CloseCode, Message, Sender, WebSocket};
use tokio::{
    sync::mpsc,
    time::{Instant, interval, sleep_until},
};

use super::transcript::{RoundTrips, Transcript};

/// How often it is looked whether a Pong has come.
const PONG_INTERVAL: Duration = Duration::from_millis(100);

/// Sends all messages and shows all that arrives.
///
/// Closes after ctrl-c, or when for `wait` after the end of the input no message has come.
///
/// # Errors
/// The connection was lost, a message can't be read, or nothing can be shown any more.
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
    // Does nothing more than wait if the server has begun to close.
    sender.close(CloseCode::NORMAL, "").await?;
    while let Some(message) = receiver.recv().await? {
        transcript.received(&message)?;
    }
    transcript.round_trips(&round_trips)?;
    if let Some((closed, reason)) = receiver.closed() {
        transcript.closed(closed, &reason)?;
    }
    all_sent.unwrap_or(Ok(()))
}

/// Sends messages until there are no more, or the connection takes no more: why, receiving tells.
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
