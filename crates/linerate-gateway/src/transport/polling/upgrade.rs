//! A WebSocket that continues the session of a client that polls.

use axum::response::Response;
use linerate::{Receiver, Result, Sender, WebSocket, axum::WebSocketUpgrade};
use linerate_proto::Opcode;
use tokio::time::timeout;

use super::{super::Admitted, refuse};
use crate::{
    node::{PolledSession, Probe},
    protocol::{
        dialect::PollingEndpoint,
        polling::{PolledName, PollingRefusal, ProbeStep, messages},
    },
};

/// Opens a WebSocket to continue a session. If the session is at another node, this is refused, and
/// the client keeps polling.
pub(in crate::transport) fn upgrade(
    endpoint: &'static PollingEndpoint,
    admitted: Admitted,
    name: &PolledName,
    upgrade: WebSocketUpgrade,
) -> Response {
    let node = admitted.endpoints.worker.node();
    let probe = match name.node == node.status.id() {
        true => node.polled.find(&name.session).and_then(|it| it.probe()),
        false => Err(PollingRefusal::UnknownSession),
    };
    let probe = match probe {
        Ok(probe) => probe,
        Err(refusal) => return refuse(endpoint, refusal),
    };
    let mut options = admitted.options();
    // The session sends pings in its own protocol.
    options.config.ping_interval = None;
    let connect_timeout = admitted.settings.config.client.connect_timeout;
    let guard = admitted.guard;
    upgrade
        .with_options(options)
        .on_upgrade(move |ws: WebSocket| async move {
            let (sender, mut receiver) = ws.split();
            let proven = timeout(connect_timeout, prove(endpoint, &sender, &mut receiver)).await;
            if proven.unwrap_or(Ok(false))? {
                carry(probe, sender, receiver).await?;
            }
            drop(guard);
            Ok(())
        })
}

/// Waits until the client has seen that the WebSocket works. Returns `false` if it does something
/// else.
async fn prove(
    endpoint: &PollingEndpoint,
    sender: &Sender,
    receiver: &mut Receiver,
) -> Result<bool> {
    while let Some(message) = receiver.recv().await? {
        match message
            .as_text()
            .map(str::as_bytes)
            .and_then(endpoint.probe)
        {
            Some(ProbeStep::Answer(answer)) => sender.send(answer).await?,
            Some(ProbeStep::Upgrade) => return Ok(true),
            None => return Ok(false),
        }
    }
    Ok(false)
}

/// Continues the session on the WebSocket, until one of them ends.
async fn carry(probe: Probe, sender: Sender, receiver: Receiver) -> Result<()> {
    let session = probe.session();
    if probe.upgrade(sender.clone()).await.is_ok() {
        forward(session, receiver).await;
    }
    // If the session has ended before it could continue here, its client no longer polls.
    for (opcode, payload) in messages(&session.take_rest().concat()) {
        match (opcode, std::str::from_utf8(payload)) {
            (Opcode::Text, Ok(text)) => sender.send(text).await?,
            _ => sender.send(payload).await?,
        }
    }
    Ok(())
}

/// Passes messages of the client on to the session, until one of them ends.
async fn forward(session: &PolledSession, mut receiver: Receiver) {
    loop {
        let message = tokio::select! {
            biased;
            () = session.over() => return,
            message = receiver.recv() => message,
        };
        match message {
            Ok(Some(message)) => {
                if session.forward(message).await.is_err() {
                    return;
                }
            }
            Ok(None) => break,
            Err(error) => {
                tracing::debug!(%error, "connection lost");
                break;
            }
        }
    }
    session.lose();
}
