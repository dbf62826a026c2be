//! Request bodies with a time limit, accounted in the memory budget.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use axum::body::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use linerate_budget::{Budget, Consumer, Holder, Lease, Registration};
use parking_lot::Mutex;
use tokio::time::{Sleep, sleep};

use super::CONNECTION_BYTES;

/// Maximum time to receive the whole body of a request.
pub(crate) const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum size of a body that is read even when memory is critical, in bytes. It costs less than
/// its connection, and applications can still control the server.
const SMALL_BYTES: u64 = 4 << 10;

/// Maximum number of bytes read and discarded of a refused body, so that its connection can
/// continue.
const DISCARDED_BYTES_MAX: usize = 1 << 20;

/// The memory that the body of a request holds, until the request is answered.
#[derive(Debug)]
pub(super) struct BodyMemory {
    budget: Budget,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    lease: Lease,
    /// True if the body was cut short because memory is short.
    is_refused: bool,
    /// True if nothing more of the body is read.
    is_ended: bool,
    reader: Option<Waker>,
}

impl BodyMemory {
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

    /// Returns whether the body was cut short because memory is short.
    pub(super) fn is_refused(&self) -> bool {
        self.state.lock().is_refused
    }

    /// Accounts for a piece: once for the piece as it arrived, and once for the assembled body.
    fn draw(&self, bytes: usize) -> io::Result<()> {
        let bytes = 2 * bytes as u64;
        let mut state = self.state.lock();
        if state.lease.bytes() + bytes <= 2 * SMALL_BYTES {
            state.lease.force(bytes);
            return Ok(());
        }
        let drawn = state.lease.grow_unless_critical(bytes);
        state.is_refused |= drawn.is_err();
        drawn.map_err(|_| short_of_memory())
    }

    /// Returns whether at most a small amount has been passed on.
    fn is_fresh(&self) -> bool {
        self.state.lock().lease.bytes() <= 2 * SMALL_BYTES
    }

    /// Fails if the body must end. Otherwise the task is woken when that changes.
    fn check(&self, context: &Context<'_>) -> io::Result<()> {
        let mut state = self.state.lock();
        if state.is_ended {
            return Err(short_of_memory());
        }
        match &mut state.reader {
            Some(reader) => reader.clone_from(context.waker()),
            reader => *reader = Some(context.waker().clone()),
        }
        Ok(())
    }
}

impl Holder for BodyMemory {
    fn holds(&self) -> (Consumer, u64) {
        let parts = [
            (Consumer::Bodies, self.state.lock().lease.bytes()),
            // The HTTP/1.1 connection, which ends if its body is not read.
            (Consumer::Connections, CONNECTION_BYTES),
        ];
        Consumer::largest_of(parts)
    }

    fn end(&self) {
        let mut state = self.state.lock();
        (state.is_refused, state.is_ended) = (true, true);
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

/// The body of a request. It fails when its time is over, even if more data is arriving, and when
/// memory is short.
#[derive(Debug)]
pub(super) struct Timed<B> {
    body: B,
    held: Arc<BodyMemory>,
    /// Present once reading has had to wait.
    registration: Option<Registration>,
    /// Number of bytes discarded since the body was refused; `None` if it was not refused, or if
    /// much of it had already been passed on.
    discarded: Option<usize>,
    over: Pin<Box<Sleep>>,
}

impl<B> Timed<B> {
    pub(super) fn new(body: B, held: Arc<BodyMemory>) -> Self {
        Self {
            body,
            held,
            registration: None,
            discarded: None,
            over: Box::pin(sleep(BODY_TIMEOUT)),
        }
    }

    /// Registers the body as one that can be ended, because it waits for its peer.
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
            let message = format!("body did not arrive within {BODY_TIMEOUT:?}");
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
    io::Error::new(io::ErrorKind::OutOfMemory, "server is short of memory")
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use linerate_budget::State;

    use super::*;

    const MIB: usize = 1 << 20;

    /// Returns the number of bytes read from a body of several pieces, and the memory that it
    /// holds.
    async fn read(
        budget: &Budget,
        pieces: &[usize],
    ) -> (Result<usize, axum::Error>, Arc<BodyMemory>) {
        let pieces: Vec<_> = pieces.iter().map(|bytes| vec![b'x'; *bytes]).collect();
        let pieces = futures_util::stream::iter(pieces.into_iter().map(Ok::<_, io::Error>));
        let held = BodyMemory::new(budget);
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
        // The second piece of another body would exceed the budget.
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
        let held = BodyMemory::new(&budget);
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
