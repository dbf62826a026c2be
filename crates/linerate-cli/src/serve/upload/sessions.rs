//! The sessions of all uploads: how many there may be, and those whose connection was lost.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use linerate_gateway::config::LogsOptions;
use linerate_logview::{
    countries::Countries,
    session::{Limits, Session, SessionId},
};
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep, timeout},
};

use crate::serve::follow::Tails;

/// How long a connection may take to give up a session that goes on over another one.
const TAKEOVER_MAX: Duration = Duration::from_secs(5);

/// What the uploads of all workers share.
pub(in crate::serve) struct Sessions {
    pub(super) limits: Limits,
    pub(super) tails: Tails,
    resume: Duration,
    resume_bytes_max: usize,
    started: Instant,
    places: Arc<Semaphore>,
    parsers: Arc<Semaphore>,
    /// How many wait for a turn.
    waiting: AtomicUsize,
    known: Mutex<HashMap<SessionId, Known>>,
    /// Is told when a session was kept or is gone.
    changed: Notify,
}

/// Where a session is.
enum Known {
    /// With a connection, which gives it up when it is told.
    Attached(Arc<Notify>),
    Kept(Kept),
}

/// A session whose connection was lost.
struct Kept {
    session: Box<Session>,
    since: Instant,
    _place: OwnedSemaphorePermit,
}

/// A connection's right to a session. Dropped, it makes room for another.
pub(super) struct Seat {
    sessions: Arc<Sessions>,
    id: SessionId,
    /// Is told when the session goes on over another connection.
    leave: Arc<Notify>,
    place: Option<OwnedSemaphorePermit>,
}

impl Sessions {
    /// Creates what uploads share, and begins to read the files that are to be followed.
    ///
    /// # Errors
    /// The database of countries can't be used, or a thread that reads can't be started.
    pub(in crate::serve) fn new(options: &LogsOptions) -> anyhow::Result<Arc<Self>> {
        let mut limits = Limits::default();
        limits.upload_bytes_max = options.upload_bytes_max;
        limits.decode.decoded_bytes_max = options.upload_bytes_max;
        limits.aggregate.column_bytes_max = options.columns_bytes_max;
        limits.aggregate.line_bytes_sum_max = options.rows_bytes_max;
        limits.aggregate.countries = options.geoip.as_deref().map(Countries::open).transpose()?;
        limits.silence_max = options.silence;
        limits.idle_max = options.idle;
        let parsers = match options.parse_threads {
            0 => thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        };
        let tails = Tails::start(&options.tail, &limits)?;
        Ok(Arc::new(Self {
            limits,
            tails,
            resume: options.resume,
            resume_bytes_max: options.resume_bytes_max,
            started: Instant::now(),
            places: Arc::new(Semaphore::new(options.uploads_max)),
            parsers: Arc::new(Semaphore::new(parsers)),
            waiting: AtomicUsize::new(0),
            known: Mutex::default(),
            changed: Notify::new(),
        }))
    }

    /// Returns how many sessions have a connection, and how many are kept without one.
    pub(in crate::serve) fn count(&self) -> (usize, usize) {
        let known = self.known();
        let is_kept = |known: &&Known| matches!(known, Known::Kept(_));
        let kept = known.values().filter(is_kept).count();
        (known.len() - kept, kept)
    }

    /// Creates a session for a new connection. It takes no place before it has files.
    pub(super) fn session(&self) -> Session {
        let id = SessionId::from_bytes(rand::random());
        Session::new(self.limits.clone(), id, self.now())
    }

    /// Returns the time on the clock of all sessions.
    pub(super) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns the moment at which their clock shows `time`.
    pub(super) fn moment(&self, time: Duration) -> Instant {
        self.started + time
    }

    /// Waits for a turn on the threads that parse; it is over when what is returned is dropped.
    pub(super) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        let _waiting = Waiting::new(&self.waiting);
        // The semaphore is never closed; without a permit the turn would only come sooner.
        self.parsers.clone().acquire_owned().await.ok()
    }

    /// Says whether somebody waits for a turn.
    pub(super) fn is_turn_wanted(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Gives a session a place. Where there is none, the session that has been without a connection
    /// for longest gives way.
    pub(super) fn admit(self: &Arc<Self>, id: SessionId) -> Option<Seat> {
        let mut known = self.known();
        let mut place = self.places.clone().try_acquire_owned();
        while place.is_err() && forget_oldest(&mut known) {
            place = self.places.clone().try_acquire_owned();
        }
        let seat = self.seat(id, place.ok()?);
        known.insert(id, Known::Attached(seat.leave.clone()));
        Some(seat)
    }

    /// Keeps a session whose connection was lost for the time that is configured.
    pub(super) fn keep(self: &Arc<Self>, mut seat: Seat, session: Box<Session>) {
        let Some(place) = seat.place.take_if(|_| !self.resume.is_zero()) else {
            return;
        };
        let (id, since) = (seat.id, Instant::now());
        let kept = Kept {
            session,
            since,
            _place: place,
        };
        let mut known = self.known();
        known.insert(id, Known::Kept(kept));
        while bytes_kept(&known) > self.resume_bytes_max && forget_oldest(&mut known) {}
        drop(known);
        self.changed.notify_waiters();
        let sessions = self.clone();
        tokio::spawn(async move {
            sleep(sessions.resume).await;
            sessions.forget(id, since);
        });
    }

    /// Takes a session over from a connection that was lost, or that does not know it yet.
    pub(super) async fn resume(self: &Arc<Self>, id: SessionId) -> Option<(Box<Session>, Seat)> {
        let taken = timeout(TAKEOVER_MAX, async {
            loop {
                let changed = self.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                match self.try_resume(id) {
                    Some(None) => changed.await,
                    Some(taken) => break taken,
                    None => break None,
                }
            }
        });
        taken.await.ok().flatten()
    }

    /// Takes over a kept session; `Some(None)` if a connection has it that was told to give it up.
    fn try_resume(self: &Arc<Self>, id: SessionId) -> Option<Option<(Box<Session>, Seat)>> {
        let mut known = self.known();
        match known.remove(&id)? {
            Known::Attached(leave) => {
                leave.notify_one();
                known.insert(id, Known::Attached(leave));
                Some(None)
            }
            Known::Kept(kept) => {
                let seat = self.seat(id, kept._place);
                known.insert(id, Known::Attached(seat.leave.clone()));
                Some(Some((kept.session, seat)))
            }
        }
    }

    fn forget(&self, id: SessionId, since: Instant) {
        let mut known = self.known();
        let is_it = |known: &Known| matches!(known, Known::Kept(kept) if kept.since == since);
        if known.get(&id).is_some_and(is_it) {
            known.remove(&id);
        }
    }

    fn seat(self: &Arc<Self>, id: SessionId, place: OwnedSemaphorePermit) -> Seat {
        Seat {
            sessions: self.clone(),
            id,
            leave: Arc::default(),
            place: Some(place),
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<SessionId, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}

impl Seat {
    /// Waits until the session is wanted over another connection.
    pub(super) async fn told_to_leave(&self) {
        self.leave.notified().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if self.place.take().is_some() {
            self.sessions.known().remove(&self.id);
            self.sessions.changed.notify_waiters();
        }
    }
}

/// Counts who waits.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Forgets the session that has been without a connection for longest; `false` if there is none.
fn forget_oldest(known: &mut HashMap<SessionId, Known>) -> bool {
    let kept = known.iter().filter_map(|(id, known)| match known {
        Known::Attached(_) => None,
        Known::Kept(kept) => Some((kept.since, *id)),
    });
    let oldest = kept.min_by_key(|(since, _)| *since);
    oldest.is_some_and(|(_, id)| known.remove(&id).is_some())
}

fn bytes_kept(known: &HashMap<SessionId, Known>) -> usize {
    let bytes = known.values().map(|known| match known {
        Known::Attached(_) => 0,
        Known::Kept(kept) => kept.session.memory_bytes(),
    });
    bytes.sum()
}

#[cfg(test)]
mod tests;
