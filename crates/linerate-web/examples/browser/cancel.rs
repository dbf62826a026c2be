//! Futures that are dropped after a varying number of polls.

use std::{future::poll_fn, pin::pin, task::Poll};

use linerate_web::{Client, CloseCode, Options, WebSocket};
use wasm_bindgen::prelude::JsError;

/// The number of messages sent per number of polls, and their size: large enough to queue in the
/// browser.
const MESSAGES: usize = 20;
const MESSAGE_BYTES: usize = 20_000;

/// Returns how many futures were dropped, or what went wrong.
pub(crate) async fn run(url: &str) -> Result<u32, JsError> {
    let mut options = Options::default();
    options.send_queue_bytes_max = 0;
    let client = Client::new().with_options(options);
    let mut all = 0;
    for polls in 0.. {
        let mut patience = Patience { polls, dropped: 0 };
        patience.exchange(&client, url).await?;
        if patience.dropped == 0 {
            break;
        }
        all += patience.dropped;
    }
    Ok(all)
}

/// Polls futures at most `polls` times, and counts those that it drops.
struct Patience {
    polls: u32,
    dropped: u32,
}

impl Patience {
    async fn exchange(&mut self, client: &Client, url: &str) -> Result<(), JsError> {
        let mut ws = match self.poll(client.connect(url)).await {
            Some(opened) => opened?,
            None => client.connect(url).await?,
        };
        let sent = self.send(&mut ws).await?;
        for message in sent {
            let received = match self.poll(ws.recv()).await {
                Some(received) => received?,
                None => ws.recv().await?,
            };
            if received != Some(message.into()) {
                return Err(self.error("received a different message"));
            }
        }
        self.poll(ws.close(CloseCode::NORMAL, "")).await;
        let closed = ws.close(CloseCode::NORMAL, "").await?;
        closed
            .clean
            .then_some(())
            .ok_or_else(|| self.error("connection was not closed cleanly"))
    }

    /// Sends messages, and returns those that were sent.
    async fn send(&mut self, ws: &mut WebSocket) -> Result<Vec<Vec<u8>>, JsError> {
        let mut sent = Vec::new();
        for number in 0..MESSAGES {
            let message = vec![number as u8; MESSAGE_BYTES];
            if let Some(result) = self.poll(ws.send(message.clone())).await {
                result?;
                sent.push(message);
            }
        }
        let last = b"last".to_vec();
        ws.send(last.clone()).await?;
        sent.push(last);
        Ok(sent)
    }

    async fn poll<F: Future>(&mut self, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        let mut polled = 0;
        let output = poll_fn(|cx| {
            if polled == self.polls {
                return Poll::Ready(None);
            }
            polled += 1;
            future.as_mut().poll(cx).map(Some)
        })
        .await;
        self.dropped += u32::from(output.is_none());
        output
    }

    fn error(&self, what: &str) -> JsError {
        JsError::new(&format!("{what} after {} polls", self.polls))
    }
}
