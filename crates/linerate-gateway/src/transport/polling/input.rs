//! What the session of a client that polls reads: the bodies of requests, and then messages on a
//! WebSocket.

use std::{future::poll_fn, sync::Arc};

use bytes::Bytes;
use linerate_budget::Share;
use tokio::task::yield_now;

use super::{
    super::drive::{CommandFrame, Input},
    PolledLink,
};
use crate::{
    node::Incoming,
    protocol::{dialect::PollingEndpoint, polling::ClientMessage},
    server::ConnectionPlace,
};

/// The input of a session whose client polls.
#[derive(Debug)]
pub(super) struct PolledInput {
    endpoint: &'static PollingEndpoint,
    link: Arc<PolledLink>,
    /// The rest of the body that is being read, with the memory of the whole body.
    body: Option<(Bytes, Share)>,
    /// The slots of the session, until it has a connection.
    place: Option<ConnectionPlace>,
}

impl PolledInput {
    pub(super) const fn new(
        endpoint: &'static PollingEndpoint,
        link: Arc<PolledLink>,
        place: Option<ConnectionPlace>,
    ) -> Self {
        Self {
            endpoint,
            link,
            body: None,
            place,
        }
    }

    /// Takes the next message out of the body, if one is being read.
    fn split(&mut self) -> Option<CommandFrame> {
        let (body, share) = self.body.take()?;
        let (message, rest) = (self.endpoint.split)(body);
        match rest {
            Some(rest) => self.body = Some((rest, share)),
            None => self.link.session.handled(),
        }
        Some(match message {
            Ok(ClientMessage::Binary(bytes)) => CommandFrame::Binary(bytes),
            Ok(ClientMessage::Text(text)) => CommandFrame::Bytes(text),
            Err(error) => CommandFrame::Malformed(error),
        })
    }
}

impl Input for &mut PolledInput {
    async fn next(&mut self) -> Option<CommandFrame> {
        loop {
            if self.body.is_some() {
                // A body can have many messages. Other clients get their turn in between.
                yield_now().await;
            }
            if let Some(frame) = self.split() {
                return Some(frame);
            }
            let session = &self.link.session;
            match poll_fn(|cx| session.poll_input(cx)).await? {
                Incoming::Body(body, share) => self.body = Some((body, share)),
                Incoming::Message(message) => {
                    session.handled();
                    return Some(CommandFrame::Message(message));
                }
                Incoming::Poll => return Some(CommandFrame::Poll),
                Incoming::Upgrade(sender) => {
                    self.link.upgrade(sender);
                    self.link.session.handled();
                    self.place = None;
                    return Some(CommandFrame::Upgraded);
                }
            }
        }
    }
}
