//! The future that passes messages to a function, batch by batch.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use super::{Link, Recv, Urgency};
use crate::{Batch, MessageCow, Replies, Result, memory::Counted};

/// Passes each message to a function and sends its replies.
pub(crate) struct ForEach<'a, F> {
    link: &'a Link,
    receiving: Recv<'a>,
    on_message: F,
    /// The batch whose messages are being passed to the function.
    batch: Option<Batch>,
    replies: Replies,
    /// The memory that is held while the replies wait for room.
    counted: Counted,
}

impl<'a, F> ForEach<'a, F> {
    pub(crate) fn new(link: &'a Link, on_message: F) -> Self {
        Self {
            link,
            receiving: Recv::new(link),
            on_message,
            batch: None,
            replies: Replies::new(),
            counted: Counted::default(),
        }
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let replies = &mut self.replies;
        let sent = (self.link).poll_queue(cx, Urgency::Now, |outbox, engine| {
            outbox.push_replies(engine, replies)
        });
        if sent.is_pending() {
            let batch = self.batch.as_ref().map_or(0, Batch::capacity);
            self.count(self.replies.bytes(), batch);
        }
        sent
    }

    fn count(&mut self, replies: usize, batch: usize) {
        if (replies, batch) != (0, 0) || self.counted != Counted::default() {
            let options = self.link.lock().options.clone();
            self.counted.set(&options.accounts, replies, batch);
        }
    }
}

impl<F> Future for ForEach<'_, F>
where
    F: FnMut(MessageCow<'_>, &mut Replies) -> Result<()>,
{
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let this = &mut *self;
        let replies_bytes_max = this.link.send_queue_bytes_max();
        loop {
            if !this.replies.is_empty() {
                ready!(this.poll_send(cx))?;
                this.count(0, 0);
            }
            if let Some(batch) = &mut this.batch {
                for message in batch.drain() {
                    let called = (this.on_message)(message, &mut this.replies);
                    if let Err(error) = called {
                        _ = this.poll_send(cx);
                        return Poll::Ready(Err(error));
                    }
                    if this.replies.bytes() >= replies_bytes_max {
                        break;
                    }
                }
                this.batch.take_if(|batch| batch.is_empty());
                continue;
            }
            match ready!(this.receiving.poll_batch(cx)) {
                Ok(Some(batch)) => this.batch = Some(batch),
                Ok(None) => return Poll::Ready(Ok(())),
                Err(error) => return Poll::Ready(Err(*error)),
            }
        }
    }
}

/// The function is never pinned.
impl<F> Unpin for ForEach<'_, F> {}

impl<F> Drop for ForEach<'_, F> {
    fn drop(&mut self) {
        if let Some(mut batch) = self.batch.take_if(|batch| !batch.is_empty()) {
            self.link.put_back(&mut batch);
        }
        self.count(0, 0);
    }
}
