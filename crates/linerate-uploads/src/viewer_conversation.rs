//! A connection that views a log which the server follows.

use std::{future::Future, iter, ops::ControlFlow, pin::pin, sync::Arc};

use linerate::{MessageKind, Reader, Receiver, Result, Sender};
use linerate_logview::session::{SessionId, Viewer};
use tokio::sync::watch;

use crate::{farewell::Farewell, memory::UploadBytes, parsing, sessions::Sessions, tails::Tail};

/// Sends snapshots as they are published, and answers queries.
///
/// Answers take a while to compute, so this is done on the parser threads.
pub(crate) struct ViewerConversation<'a> {
    sessions: &'a Arc<Sessions>,
    sender: &'a Sender,
    tail: Arc<Tail>,
    snapshots: watch::Receiver<Arc<str>>,
}

impl<'a> ViewerConversation<'a> {
    pub(crate) fn new(sessions: &'a Arc<Sessions>, sender: &'a Sender, tail: Arc<Tail>) -> Self {
        let mut snapshots = tail.snapshots();
        snapshots.mark_changed();
        Self {
            sessions,
            sender,
            snapshots,
            tail,
        }
    }

    pub(crate) async fn talk(mut self, receiver: &mut Receiver) -> Result<Farewell> {
        let id = SessionId::from_bytes(rand::random());
        let mut viewer = Viewer::new(self.sessions.limits.clone(), id);
        loop {
            viewer = match self.answer(viewer).await? {
                ControlFlow::Continue(viewer) => viewer,
                ControlFlow::Break(farewell) => return Ok(farewell),
            };
            let Some(reader) = self.while_showing(receiver.reader()).await?? else {
                return Ok(Farewell::DONE);
            };
            match reader.kind() {
                MessageKind::Binary => viewer.handle_binary(),
                MessageKind::Text => viewer.handle_text(&self.receive_text(reader).await?),
            }
        }
    }

    /// Receives a text message. Of one that is too long, only enough is read for it to be refused.
    async fn receive_text(&mut self, mut reader: Reader<'_>) -> Result<String> {
        let mut text = String::new();
        while text.len() <= self.sessions.limits.text_bytes_max {
            let Some(piece) = self.while_showing(reader.chunk()).await?? else {
                break;
            };
            text.push_str(piece.as_text().unwrap_or_default());
        }
        Ok(text)
    }

    /// Waits for `input`, and sends new snapshots in the meantime.
    async fn while_showing<T>(&mut self, input: impl Future<Output = T>) -> Result<T> {
        let mut input = pin!(input);
        loop {
            tokio::select! {
                biased;
                input = &mut input => return Ok(input),
                // This does not fail, because `self` keeps the tail alive.
                Ok(()) = self.snapshots.changed() => {
                    let snapshot = self.snapshots.borrow_and_update().clone();
                    if !snapshot.is_empty() {
                        self.sender.send(&*snapshot).await?;
                    }
                }
            }
        }
    }

    /// Sends the answers that are due. Breaks with a farewell if the conversation is over. The
    /// memory of the answers is charged to the budget of uploads.
    async fn answer(&mut self, mut viewer: Viewer) -> Result<ControlFlow<Farewell, Viewer>> {
        let mut share = self.sessions.share(UploadBytes::default());
        let wanted = viewer.reply_bytes_max() as u64;
        if self.sessions.grow(&mut share, wanted).is_err() {
            let error = self.sessions.no_memory();
            self.sender.send(error.to_json()).await?;
            return Ok(ControlFlow::Break(Farewell::of_error(&error)));
        }
        let turn = self.sessions.turn().await;
        let tail = self.tail.clone();
        let answered = parsing::spawn(turn, move || {
            let log = tail.log();
            let replies: Vec<_> = iter::from_fn(|| viewer.poll_reply(&log)).collect();
            drop(log);
            (viewer, replies)
        });
        let Ok((viewer, replies)) = answered.await else {
            return Ok(ControlFlow::Break(Farewell::FAILED));
        };
        share.set(replies.iter().map(|reply| reply.capacity() as u64).sum());
        for reply in replies {
            self.sender.send(reply).await?;
        }
        Ok(match viewer.outcome() {
            Some(outcome) => ControlFlow::Break(Farewell::of_outcome(Some(outcome))),
            None => ControlFlow::Continue(viewer),
        })
    }
}
