//! Bodies of requests that must come in time, and within the memory budget.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use axum::body::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use linerate_budget::{Budget, Consumer, Holder, Lease, Registration};
use tokio::time::{Sleep, sleep};

use super::CONNECTION_BYTES;
use crate::node::most_of;

/// How long the whole body of a request may take.
pub(crate) const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// A body that holds no more is read in any state: it costs less than the connection that it comes on, and servers of
/// applications can still say what is to be done.
const SMALL_BYTES: u64 = 4 << 10;

/// How much is read of a body that is refused, so that its connection can go on.
const DISCARDED_BYTES_MAX: usize = 1 << 20;

/// What a request's body holds of the memory budget, until the request is answered.
#[derive(Debug)]
pub(super) struct Held {
    budget: Budget,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    lease: Lease,
    /// Whether the body is not handed out to its end, for want of memory.
    is_refused: bool,
    /// Whether nothing of it is read any more.
    is_ended: bool,
    reader: Option<Waker>,
}

impl Held {
    pub(super) fn new(budget: &Budget) -> Arc<Self> {
        Arc::new(Self {
            budget: budget.clone(),
            state: Mutex::new(State {
                lease: budget.lease(Consumer::Bodies),
                is_refused: false,
                is_ended: false,
                reader: None,
            }),
        })
    }

    /// Returns whether the body was not handed out to its end, for want of memory.
    pub(super) fn is_refused(&self) -> bool {
        self.state().is_refused
    }

    /// Draws what a piece takes: once as it has arrived, once more where the body is put together.
    fn draw(&self, bytes: usize) -> io::Result<()> {
        let bytes = 2 * bytes as u64;
        let mut state = self.state();
        if state.lease.bytes() + bytes <= 2 * SMALL_BYTES {
            state.lease.force(bytes);
            return Ok(());
        }
        let drawn = state.lease.grow_unless_critical(bytes);
        state.is_refused |= drawn.is_err();
        drawn.map_err(|_| short_of_memory())
    }

    /// Returns whether hardly anything was handed out.
    fn is_fresh(&self) -> bool {
        self.state().lease.bytes() <= 2 * SMALL_BYTES
    }

    /// Fails if the body is to end; the task is woken if that changes.
    fn check(&self, context: &Context<'_>) -> io::Result<()> {
        let mut state = self.state();
        if state.is_ended {
            return Err(short_of_memory());
        }
        match &mut state.reader {
            Some(reader) => reader.clone_from(context.waker()),
            reader => *reader = Some(context.waker().clone()),
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Holder for Held {
    fn holds(&self) -> (Consumer, u64) {
        let parts = [
            (Consumer::Bodies, self.state().lease.bytes()),
            // Of HTTP/1, which ends with a body that is not read.
            (Consumer::Connections, CONNECTION_BYTES),
        ];
        most_of(parts)
    }

    fn end(&self) {
        let mut state = self.state();
        (state.is_refused, state.is_ended) = (true, true);
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

/// The body of a request. It fails when its time is over, however much of it has come, and when memory is short.
#[derive(Debug)]
pub(super) struct Timed<B> {
    body: B,
    held: Arc<Held>,
    /// Exists once the body had to be waited for.
    registration: Option<Registration>,
    /// How much was read in vain since it was refused before much was handed out.
    discarded: Option<usize>,
    over: Pin<Box<Sleep>>,
}

impl<B> Timed<B> {
    pub(super) fn new(body: B, held: Arc<Held>) -> Self {
        Self {
            body,
            held,
            registration: None,
            discarded: None,
            over: Box::pin(sleep(BODY_TIMEOUT)),
        }
    }

    /// Makes known that the body can be ended: it waits for its peer.
    fn register(&mut self) {
        let held = &self.held;
        self.registration
            .get_or_insert_with(|| held.budget.register(held));
    }
}

impl<B> Body for Timed<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<axum::BoxError>,
{
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.over.as_mut().poll(context).is_ready() {
            let message = format!("body took more than {BODY_TIMEOUT:?}");
            return Poll::Ready(Some(Err(io::Error::new(io::ErrorKind::TimedOut, message))));
        }
        loop {
            if let Err(error) = self.held.check(context) {
                return Poll::Ready(Some(Err(error)));
            }
            let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) else {
                self.register();
                return Poll::Pending;
            };
            let frame = match frame {
                Some(Ok(frame)) => frame,
                None if self.discarded.is_some() => {
                    return Poll::Ready(Some(Err(short_of_memory())));
                }
                end => return Poll::Ready(end.map(|frame| frame.map_err(io::Error::other))),
            };
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            let discarded = match self.discarded {
                Some(discarded) => discarded + bytes,
                None => match self.held.draw(bytes) {
                    Ok(()) => return Poll::Ready(Some(Ok(frame))),
                    Err(_) if self.held.is_fresh() => bytes,
                    Err(error) => return Poll::Ready(Some(Err(error))),
                },
            };
            if discarded > DISCARDED_BYTES_MAX {
                return Poll::Ready(Some(Err(short_of_memory())));
            }
            self.discarded = Some(discarded);
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn short_of_memory() -> io::Error {
    io::Error::new(io::ErrorKind::OutOfMemory, "the server is short of memory")
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use linerate_budget::State;

    use super::*;

    const MIB: usize = 1 << 20;

    /// Returns what is handed out of a body of several pieces, and what is held of it.
    async fn read(budget: &Budget, pieces: &[usize]) -> (Result<usize, axum::Error>, Arc<Held>) {
        let pieces: Vec<_> = pieces.iter().map(|bytes| vec![b'x'; *bytes]).collect();
        let pieces = futures_util::stream::iter(pieces.into_iter().map(Ok::<_, io::Error>));
        let held = Held::new(budget);
        let body = Timed::new(Body::from_stream(pieces), held.clone());
        let read = to_bytes(Body::new(body), usize::MAX).await;
        (read.map(|bytes| bytes.len()), held)
    }

    #[tokio::test]
    async fn a_body_draws_before_it_is_handed_out_and_is_refused_at_the_budget() {
        let budget = Budget::new(8 * MIB as u64);
        let (whole, held) = read(&budget, &[MIB, MIB]).await;
        assert_eq!((whole.unwrap(), held.is_refused()), (2 * MIB, false));
        assert!(budget.used(Consumer::Bodies) >= 4 * MIB as u64);
        // The second piece of another would be too much.
        let (cut, other) = read(&budget, &[MIB, 2 * MIB]).await;
        assert!(cut.is_err() && other.is_refused());
        assert!(budget.used_total() <= 8 * MIB as u64);
        drop((held, other));
        assert_eq!(budget.used_total(), 0);
    }

    #[tokio::test]
    async fn while_memory_is_critical_small_bodies_are_read_and_large_ones_read_in_vain() {
        let budget = Budget::new(8 * MIB as u64);
        let mut others = budget.lease(Consumer::Backlogs);
        others.set(8 * MIB as u64);
        assert_eq!(budget.state(), State::Critical);
        let (small, held) = read(&budget, &[2_000, 2_096]).await;
        assert_eq!((small.unwrap(), held.is_refused()), (4_096, false));
        let (large, held) = read(&budget, &[60_000, 60_000]).await;
        assert!(large.is_err() && held.is_refused());
        assert_eq!(
            held.holds().0,
            Consumer::Connections,
            "nothing is held of it"
        );
    }

    #[tokio::test]
    async fn a_body_that_waits_can_be_ended() {
        let budget = Budget::new(8 * MIB as u64);
        let held = Held::new(&budget);
        let pieces = futures_util::stream::pending::<io::Result<Bytes>>();
        let body = Timed::new(Body::from_stream(pieces), held.clone());
        let reading = tokio::spawn(to_bytes(Body::new(body), usize::MAX));
        while budget.holders().is_empty() {
            tokio::task::yield_now().await;
        }
        budget.holders()[0].end();
        assert!(reading.await.unwrap().is_err() && held.is_refused());
        assert!(budget.holders().is_empty());
    }
}
