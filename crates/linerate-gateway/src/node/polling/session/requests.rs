//! What requests do with a session whose client polls.

use std::{
    future::Future,
    mem,
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use linerate::{Message, Sender};
use tokio::{
    task::yield_now,
    time::{timeout, timeout_at},
};

use super::{Incoming, PolledSession, Stage, State};
use crate::{
    clock::now,
    protocol::polling::{PollEnd, Polled, PollingRefusal},
};

/// How long a poll without messages waits for one while the client is about to continue on a
/// WebSocket. Without this pause, a client that does not wait for its WebSocket would poll without
/// pause.
const PROBE_PAUSE: Duration = Duration::from_millis(100);

/// A thread whose other tasks take this long between two turns of a task is busy.
const ROUND_MIN: Duration = Duration::from_millis(3);

/// How long a poll waits for more output on a busy thread, in rounds of the thread's tasks. A
/// response costs nearly the same for one message as for many: fewer of them leave the thread time
/// for what they deliver.
const GATHERED_ROUNDS: u32 = 8;

/// The limit on this wait.
const GATHERING_MAX: Duration = Duration::from_millis(100);

/// A WebSocket that may continue a session. Others cannot while this exists.
#[derive(Debug)]
pub(crate) struct Probe(Arc<PolledSession>);

/// The request that a session serves in one of two ways. The session is lost if this is dropped
/// before the request has ended: what was or should have been delivered is then unknown.
struct Turn<'a> {
    session: &'a PolledSession,
    flag: fn(&mut State) -> &mut bool,
    is_over: bool,
}

/// While a poll waits for more output, single messages do not wake it.
struct Gathering<'a>(&'a PolledSession);

impl PolledSession {
    /// Waits for output and fetches it, for at most `hold` and for as long as the session allows.
    ///
    /// # Errors
    /// The session has ended or continues on a WebSocket, or another poll is waiting, which ends
    /// the session.
    pub(crate) async fn poll(&self, hold: Option<Duration>) -> Result<Polled, PollingRefusal> {
        let turn = self.begin(|state| &mut state.is_polled)?;
        self.note_poll();
        let is_late = self.has_room_for_more(&self.state.lock());
        if is_late {
            // Boxed, because polls that wait for output keep room for it.
            Box::pin(self.gather()).await;
        }
        let hold = [hold, self.limits.hold].into_iter().flatten().min();
        let until = hold.and_then(|hold| now().checked_add(hold));
        let mut probed_until = None;
        let polled = loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            let is_probed = {
                let mut state = self.state.lock();
                if let Some(polled) = state.fetch() {
                    break polled;
                }
                state.stage == Stage::Probed
            };
            if is_probed {
                probed_until.get_or_insert_with(|| now() + PROBE_PAUSE);
            }
            let (end, at) = match probed_until {
                Some(at) => (PollEnd::Upgrading, Some(at)),
                None => (PollEnd::Idle, until),
            };
            if wait(changed, at).await.is_err() {
                break Ok(Polled::new(Vec::new(), end));
            }
        };
        turn.end();
        self.note_poll();
        polled
    }

    /// Waits for more output if the thread is busy.
    async fn gather(&self) {
        let begun = now();
        yield_now().await;
        let round = now() - begun;
        if round < ROUND_MIN {
            return;
        }
        let gathering = Gathering::begin(self);
        let enough = self.until(|state| (!self.has_room_for_more(state)).then_some(()));
        // Then the poll fetches what there is.
        _ = timeout((GATHERED_ROUNDS * round).min(GATHERING_MAX), enough).await;
        drop(gathering);
    }

    /// Returns whether there is output, and room for more.
    fn has_room_for_more(&self, state: &State) -> bool {
        state.stage == Stage::Polled && (1..self.limits.bytes_max).contains(&state.output_bytes)
    }

    /// Tells the session that its client is there. It may also wait for room, and its task for the
    /// last poll.
    fn note_poll(&self) {
        self.state.lock().has_polled = true;
        self.wake();
    }

    /// Delivers the body of a request. Completes when the session has handled all of it, or has
    /// ended.
    ///
    /// # Errors
    /// The session has ended or continues on a WebSocket, or another body is being delivered, which
    /// ends the session.
    pub(crate) async fn send(&self, body: Bytes) -> Result<(), PollingRefusal> {
        let turn = self.begin(|state| &mut state.is_sending)?;
        let share = self.messages.share(body.len() as u64);
        let put = self.put(body.len(), Incoming::Body(body, share)).await;
        if put.is_ok() {
            self.until(|state| (state.is_over() || state.input_bytes.is_none()).then_some(()))
                .await;
        }
        turn.end();
        put
    }

    /// Begins to check whether a WebSocket can continue the session.
    ///
    /// # Errors
    /// The session has ended, or another WebSocket continues it or is about to.
    pub(crate) fn probe(self: Arc<Self>) -> Result<Probe, PollingRefusal> {
        let mut state = self.state.lock();
        match state.stage {
            Stage::Polled => state.stage = Stage::Probed,
            Stage::Probed | Stage::Upgraded => return Err(PollingRefusal::BadRequest),
            Stage::Ended | Stage::Gone => return Err(PollingRefusal::UnknownSession),
        }
        drop(state);
        // A poll that waits has to end.
        self.wake();
        Ok(Probe(self))
    }

    /// Passes on a message from the WebSocket that has continued the session.
    ///
    /// # Errors
    /// The session has ended.
    pub(crate) async fn forward(&self, message: Message) -> Result<(), PollingRefusal> {
        self.put(message.len(), Incoming::Message(message)).await
    }

    /// Waits until the session has ended, and all of its output was fetched if it was polled.
    pub(crate) async fn gone(&self) {
        self.until(|state| (state.stage == Stage::Gone).then_some(()))
            .await;
    }

    /// Waits until the session has ended.
    pub(crate) async fn over(&self) {
        self.until(|state| state.is_over().then_some(())).await;
    }

    /// Takes the last output of a session that has ended, which no poll can fetch any more.
    pub(crate) fn take_rest(&self) -> Vec<Bytes> {
        let mut state = self.state.lock();
        if state.stage != Stage::Ended {
            return Vec::new();
        }
        state.stage = Stage::Gone;
        let output = state.take_output();
        drop(state);
        self.wake();
        output
    }

    /// Hands input to the session once it has handled all input before.
    async fn put(&self, bytes: usize, incoming: Incoming) -> Result<(), PollingRefusal> {
        let mut incoming = Some(incoming);
        self.until(|state| {
            if state.is_over() {
                return Some(Err(PollingRefusal::UnknownSession));
            }
            if state.input_bytes.is_some() {
                return None;
            }
            state.input = incoming.take();
            state.input_bytes = Some(bytes);
            if let Some(reader) = state.reader.take() {
                reader.wake();
            }
            Some(Ok(()))
        })
        .await
    }

    /// Begins to serve a request. `flag` returns what is true while such a request is served.
    fn begin(&self, flag: fn(&mut State) -> &mut bool) -> Result<Turn<'_>, PollingRefusal> {
        let mut state = self.state.lock();
        match state.stage {
            Stage::Gone => return Err(PollingRefusal::UnknownSession),
            Stage::Upgraded => return Err(PollingRefusal::BadRequest),
            Stage::Polled | Stage::Probed | Stage::Ended => {}
        }
        if mem::replace(flag(&mut state), true) {
            drop(state);
            self.lose();
            return Err(PollingRefusal::BadRequest);
        }
        Ok(Turn {
            session: self,
            flag,
            is_over: false,
        })
    }

    /// Waits until `check` returns something.
    async fn until<T>(&self, mut check: impl FnMut(&mut State) -> Option<T>) -> T {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if let Some(found) = check(&mut self.state.lock()) {
                return found;
            }
            changed.await;
        }
    }
}

impl Probe {
    /// Continues the session on the WebSocket with this sender.
    ///
    /// # Errors
    /// The session has ended.
    pub(crate) async fn upgrade(&self, sender: Sender) -> Result<(), PollingRefusal> {
        self.0.put(0, Incoming::Upgrade(sender)).await
    }

    /// Returns the session.
    pub(crate) const fn session(&self) -> &Arc<PolledSession> {
        &self.0
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        if state.stage == Stage::Probed {
            state.stage = Stage::Polled;
        }
    }
}

impl<'a> Gathering<'a> {
    fn begin(session: &'a PolledSession) -> Self {
        session.state.lock().is_gathering = true;
        Self(session)
    }
}

impl Drop for Gathering<'_> {
    fn drop(&mut self) {
        self.0.state.lock().is_gathering = false;
    }
}

impl Turn<'_> {
    fn end(mut self) {
        self.is_over = true;
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *(self.flag)(&mut self.session.state.lock()) = false;
        if !self.is_over {
            self.session.lose();
        }
    }
}

/// Waits for `changed` until a time, if there is one.
async fn wait(
    changed: impl Future<Output = ()>,
    until: Option<Instant>,
) -> Result<(), tokio::time::error::Elapsed> {
    match until {
        Some(until) => timeout_at(until.into(), changed).await,
        None => {
            changed.await;
            Ok(())
        }
    }
}
