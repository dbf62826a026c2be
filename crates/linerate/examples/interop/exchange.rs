//! One connection: messages are sent in batches, and each one must come back unchanged.

use std::{fmt, ops::AddAssign};

use linerate::{Message, WebSocket};

use crate::{
    Result,
    traffic::{Outgoing, Traffic, Way},
};

/// The totals of what was sent and echoed correctly.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) frames: u64,
    messages: u64,
    bytes: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, more: Self) {
        self.frames += more.frames;
        self.messages += more.messages;
        self.bytes += more.bytes;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mebibytes = self.bytes >> 20;
        write!(
            f,
            "{} frames, {} messages, {mebibytes} MiB, all echoed",
            self.frames, self.messages
        )
    }
}

/// Sends until `frames` frames have been sent, and compares the echoes.
pub(crate) async fn exchange(
    ws: &mut WebSocket,
    traffic: &mut Traffic,
    frames: u64,
) -> Result<Counts> {
    let mut counts = Counts::default();
    while counts.frames < frames {
        let batch = traffic.batch();
        for outgoing in &batch {
            counts.frames += send(ws, outgoing).await?;
        }
        for outgoing in &batch {
            let echo = receive(ws, outgoing.by_pieces).await?;
            check(&outgoing.message, &echo)
                .map_err(|why| format!("message {}: {why}", counts.messages))?;
            counts.messages += 1;
            counts.bytes += echo.len() as u64;
        }
    }
    Ok(counts)
}

/// Sends a message, and returns the number of frames.
async fn send(ws: &mut WebSocket, outgoing: &Outgoing) -> Result<u64> {
    let message = outgoing.message.clone();
    let mut frames = 1;
    match &outgoing.way {
        Way::Fragments(fragments) => {
            let mut writer = ws.writer(message.kind());
            for fragment in fragments {
                if let Some(ping) = &fragment.ping {
                    writer.ping(ping).await?;
                    frames += 1;
                }
                writer
                    .write(&message.as_bytes()[fragment.range.clone()])
                    .await?;
                frames += 1;
            }
            writer.finish().await?;
        }
        Way::Uncompressed => ws.send_uncompressed(message).await?,
        Way::Whole => ws.send(message).await?,
    }
    Ok(frames)
}

/// Receives a message, either whole or in pieces that are joined.
async fn receive(ws: &mut WebSocket, by_pieces: bool) -> Result<Message> {
    const ENDED: &str = "the peer closed the connection";
    if !by_pieces {
        return Ok(ws.recv().await?.ok_or(ENDED)?);
    }
    let mut reader = ws.reader().await?.ok_or(ENDED)?;
    let (kind, mut bytes) = (reader.kind(), Vec::new());
    while let Some(piece) = reader.chunk().await? {
        bytes.extend_from_slice(piece.as_bytes());
    }
    Ok(match kind {
        linerate::MessageKind::Binary => bytes.into(),
        linerate::MessageKind::Text => String::from_utf8(bytes)?.into(),
    })
}

fn check(sent: &Message, echo: &Message) -> Result<(), String> {
    if sent == echo {
        return Ok(());
    }
    let (before, after) = (sent.as_bytes(), echo.as_bytes());
    let same = before.iter().zip(after).take_while(|(a, b)| a == b).count();
    Err(format!(
        "{:?} of {} bytes became {:?} of {} bytes, equal up to byte {same}",
        sent.kind(),
        sent.len(),
        echo.kind(),
        echo.len()
    ))
}
