//! The sessions of all uploads: their limits, and the sessions that are kept after their connection
//! was lost.

use std::{
    collections::HashMap,
    fmt,
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use linerate_budget::Budget;
use linerate_logview::{
    countries::{Countries, CountriesError},
    session::{Limits, Session, SessionError, SessionId, Uploads},
};
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep, timeout},
};

use crate::{
    memory::{ALLOCATED_FOR_8, Memory, Share, UploadBytes},
    options::LogsOptions,
    tails::Tails,
};

/// Memory of the uploads' budget required for each parser thread, because a session needs extra
/// memory while it runs.
const PARSER_BYTES: u64 = 64 << 20;

/// How long a connection may take to release a session that is resumed on another connection.
const TAKEOVER_MAX: Duration = Duration::from_secs(5);

/// State shared by the uploads of all workers.
pub(crate) struct Sessions {
    pub(crate) limits: Limits,
    pub(crate) tails: Tails,
    resume: Duration,
    uploads_max: usize,
    per_address_max: usize,
    memory: Memory,
    started: Instant,
    places: Arc<Semaphore>,
    parsers: Arc<Semaphore>,
    /// Number of sessions that wait for a turn.
    waiting: AtomicUsize,
    known: Mutex<HashMap<SessionId, SessionEntry>>,
    /// Notified when a session is kept or removed.
    changed: Notify,
}

/// Why a service cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The database of countries cannot be used.
    #[error(transparent)]
    Countries(#[from] CountriesError),
    /// A thread that reads a file cannot be started.
    #[error(transparent)]
    Thread(#[from] std::io::Error),
}

/// A session with its share of the memory.
#[derive(Debug)]
pub(crate) struct HostedSession {
    pub(crate) session: Session,
    share: Share,
}

/// The reason why a session does not get a place.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum SessionRefusal {
    /// The client's address has reached its limit of sessions.
    Address,
    /// The limit of sessions is reached, or memory is low.
    Busy,
    /// Uploads are switched off.
    Off,
}

/// The reason why an upload does not get memory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum MemoryShortage {
    /// There is none left, and no other upload holds more than this one would.
    Refused,
    /// The upload that holds the most has been told to give way, so memory will be available soon.
    Soon,
}

/// Signals to the connection of a session.
#[derive(Debug, Default)]
pub(crate) struct SessionSignals {
    /// The session is resumed on another connection.
    leave: Notify,
    /// The session must end, because others need its memory.
    give_way: Notify,
    /// Number of bytes that the session held when it was told to give way, or 0 if it was not.
    gave_way_bytes: AtomicU64,
}

/// A session that has a place.
struct SessionEntry {
    address: IpAddr,
    held: UploadBytes,
    location: Location,
}

/// The current location of a session.
enum Location {
    /// The session belongs to a connection, which receives these signals.
    Attached(Arc<SessionSignals>),
    Detached(DetachedSession),
}

/// A session whose connection was lost.
struct DetachedSession {
    session: Box<HostedSession>,
    since: Instant,
    place: OwnedSemaphorePermit,
}

/// A connection's right to a session. Dropping it frees the place for another session.
pub(crate) struct SessionGuard {
    sessions: Arc<Sessions>,
    id: SessionId,
    address: IpAddr,
    place: Option<OwnedSemaphorePermit>,
}

impl Sessions {
    /// Creates the shared state, and starts to read the followed files. All memory is also charged
    /// to the budget of the process.
    ///
    /// # Errors
    /// Returns an error if the database of countries cannot be used, or if a thread that reads a
    /// file cannot be started.
    pub(crate) fn new(options: &LogsOptions, process: Budget) -> Result<Arc<Self>, StartError> {
        let mut limits = Limits::default();
        limits.upload_bytes_max = options.upload_bytes_max;
        limits.decode.decoded_bytes_max = options.upload_bytes_max;
        limits.decode.ratio_max = options.ratio_max;
        limits.aggregate.column_bytes_max = options.columns_bytes_max;
        limits.aggregate.spill = options.spill_space().map(Arc::new);
        limits.aggregate.line_bytes_sum_max = options.rows_bytes_max;
        limits.aggregate.countries = options.geoip.as_deref().map(Countries::open).transpose()?;
        limits.silence_max = options.silence;
        limits.idle_max = options.idle;
        let parsers = match options.parse_threads {
            0 => thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        };
        let parsers_max = usize::try_from(options.memory_bytes_max / PARSER_BYTES);
        let parsers = parsers.min(parsers_max.unwrap_or(usize::MAX)).max(1);
        let tails = Tails::start(options, &limits, &process)?;
        Ok(Arc::new(Self {
            limits,
            tails,
            resume: options.resume,
            uploads_max: options.uploads_max,
            per_address_max: options.uploads_per_address_max,
            memory: Memory::new(options.memory_bytes_max, process),
            started: Instant::now(),
            places: Arc::new(Semaphore::new(options.uploads_max)),
            parsers: Arc::new(Semaphore::new(parsers)),
            waiting: AtomicUsize::new(0),
            known: Mutex::default(),
            changed: Notify::new(),
        }))
    }

    /// Returns the number of sessions with a connection, and the number kept without one.
    pub(crate) fn count(&self) -> (usize, usize) {
        let known = self.known();
        let is_kept = |known: &&SessionEntry| matches!(known.location, Location::Detached(_));
        let kept = known.values().filter(is_kept).count();
        (known.len() - kept, kept)
    }

    /// Returns whether clients with access may upload.
    pub(crate) fn offer(&self) -> Uploads {
        match self.uploads_max {
            0 => Uploads::Off,
            _ => Uploads::Allowed,
        }
    }

    /// Creates a session for a new connection. The session needs no place until it has files.
    pub(crate) fn session(&self) -> Box<HostedSession> {
        let id = SessionId::from_bytes(rand::random());
        Box::new(HostedSession {
            session: Session::new(self.limits.clone(), id, self.now()),
            share: self.memory.share(UploadBytes::default()),
        })
    }

    /// Creates an empty share of the uploads' memory, whose bytes count towards `held`.
    pub(crate) fn share(&self, held: UploadBytes) -> Share {
        self.memory.share(held)
    }

    /// Returns the number of bytes used by all uploads.
    #[cfg(test)]
    pub(crate) fn memory_used(&self) -> u64 {
        self.memory.used()
    }

    /// Adds bytes to a share. If there are not enough left, first the sessions without a connection
    /// give way, oldest first, and then the upload that holds the most.
    pub(crate) fn grow(&self, share: &mut Share, bytes: u64) -> Result<(), MemoryShortage> {
        while share.grow(bytes).is_err() {
            let mut known = self.known();
            let Some(oldest) = forget_oldest(&mut known, |_| true) else {
                let wanted = share.held().bytes().saturating_add(bytes);
                return Err(self.call_largest(&known, wanted));
            };
            drop(known);
            drop(oldest);
        }
        Ok(())
    }

    /// Tells the upload that holds the most memory to give way, if it holds more than `wanted`
    /// bytes, which is what the asking upload would hold.
    ///
    /// Only one upload is told at a time, because its memory may be enough.
    fn call_largest(
        &self,
        known: &HashMap<SessionId, SessionEntry>,
        wanted: u64,
    ) -> MemoryShortage {
        let attached = known.values().filter_map(|known| match &known.location {
            Location::Attached(calls) => Some((known.held.bytes(), calls)),
            Location::Detached(_) => None,
        });
        let attached: Vec<_> = attached.collect();
        if attached.iter().any(|(_, calls)| calls.gave_way().is_some()) {
            return MemoryShortage::Soon;
        }
        let largest = attached.iter().max_by_key(|(bytes, _)| *bytes);
        let Some((bytes, calls)) = largest.filter(|(bytes, _)| *bytes > wanted) else {
            return MemoryShortage::Refused;
        };
        calls.gave_way_bytes.store(*bytes, Ordering::Relaxed);
        calls.give_way.notify_one();
        self.memory.note_shed(*bytes);
        tracing::info!(
            bytes,
            "ending the largest upload, because others need memory"
        );
        MemoryShortage::Soon
    }

    /// Returns the error for a session that needs more memory than is available.
    pub(crate) fn no_memory(&self) -> SessionError {
        SessionError::NoMemory {
            bytes_max: self.memory.bytes_max(),
        }
    }

    /// Returns the error for a session that was told to give way.
    pub(crate) fn gave_way(&self, calls: &SessionSignals) -> SessionError {
        SessionError::GaveWay {
            bytes: calls.gave_way().unwrap_or_default(),
            bytes_max: self.memory.bytes_max(),
        }
    }

    /// Returns the current time on the sessions' clock.
    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns the moment at which the sessions' clock shows `time`.
    pub(crate) fn moment(&self, time: Duration) -> Instant {
        self.started + time
    }

    /// Waits for a turn on the parser threads. The turn ends when the returned permit is dropped.
    pub(crate) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        let _waiting = WaitingGuard::new(&self.waiting);
        // The semaphore is never closed. If it were, the turn would only start too early.
        self.parsers.clone().acquire_owned().await.ok()
    }

    /// Returns whether another session waits for a turn.
    pub(crate) fn is_turn_wanted(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Gives a session a place. If there is none, the session that has been without a connection
    /// for the longest time gives way.
    pub(crate) fn admit(
        self: &Arc<Self>,
        hosted: &HostedSession,
        address: IpAddr,
        calls: Arc<SessionSignals>,
    ) -> Result<SessionGuard, SessionRefusal> {
        if self.uploads_max == 0 {
            return Err(SessionRefusal::Off);
        }
        if self.memory.is_tight() {
            return Err(SessionRefusal::Busy);
        }
        let address = address.to_canonical();
        // Dropped after the lock is released, because freeing sessions takes a while.
        let mut forgotten = Vec::new();
        let mut known = self.known();
        while !self.has_room_for(address, &known) {
            let oldest = forget_oldest(&mut known, |known| known.address == address);
            forgotten.push(oldest.ok_or(SessionRefusal::Address)?);
        }
        let mut place = self.places.clone().try_acquire_owned();
        while place.is_err() {
            // The place becomes free only when the session is dropped.
            drop(forget_oldest(&mut known, |_| true).ok_or(SessionRefusal::Busy)?);
            place = self.places.clone().try_acquire_owned();
        }
        let place = place.map_err(|_| SessionRefusal::Busy)?;
        let newcomer = SessionEntry {
            address,
            held: hosted.held().clone(),
            location: Location::Attached(calls),
        };
        Ok(self.seat(hosted.session.id(), newcomer, place, &mut known))
    }

    /// Keeps a session whose connection was lost, for the configured time.
    pub(crate) fn keep(self: &Arc<Self>, mut seat: SessionGuard, mut session: Box<HostedSession>) {
        session.settle();
        let Some(place) = seat.place.take_if(|_| !self.resume.is_zero()) else {
            return;
        };
        let (id, since) = (seat.id, Instant::now());
        let kept = DetachedSession {
            session,
            since,
            place,
        };
        let known = SessionEntry {
            address: seat.address,
            held: kept.session.held().clone(),
            location: Location::Detached(kept),
        };
        self.known().insert(id, known);
        self.changed.notify_waiters();
        let sessions = self.clone();
        tokio::spawn(async move {
            sleep(sessions.resume).await;
            sessions.forget(id, since);
        });
    }

    /// Takes over a session from a connection that was lost, even if the server has not noticed the
    /// loss yet. Returns `None` if the session is unknown or is not released in time.
    pub(crate) async fn resume(
        self: &Arc<Self>,
        id: SessionId,
        calls: Arc<SessionSignals>,
    ) -> Option<(Box<HostedSession>, SessionGuard)> {
        let taken = timeout(TAKEOVER_MAX, async {
            loop {
                let changed = self.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                match self.try_resume(id, &calls) {
                    Some(None) => changed.await,
                    Some(taken) => break taken,
                    None => break None,
                }
            }
        });
        taken.await.ok().flatten()
    }

    /// Takes over a kept session. Returns `Some(None)` if the session still belongs to a
    /// connection, which has now been told to release it, and `None` if the session is unknown.
    fn try_resume(
        self: &Arc<Self>,
        id: SessionId,
        calls: &Arc<SessionSignals>,
    ) -> Option<Option<(Box<HostedSession>, SessionGuard)>> {
        let mut known = self.known();
        if let Location::Attached(calls) = &known.get(&id)?.location {
            calls.leave.notify_one();
            return Some(None);
        }
        let SessionEntry {
            address,
            held,
            location: Location::Detached(kept),
        } = known.remove(&id)?
        else {
            return None;
        };
        let resumed = SessionEntry {
            address,
            held,
            location: Location::Attached(calls.clone()),
        };
        let seat = self.seat(id, resumed, kept.place, &mut known);
        Some(Some((kept.session, seat)))
    }

    fn forget(&self, id: SessionId, since: Instant) {
        let mut known = self.known();
        let is_it = |known: &SessionEntry| known.kept_since() == Some(since);
        let forgotten = match known.get(&id).is_some_and(is_it) {
            true => known.remove(&id),
            false => None,
        };
        // The lock is released first, because freeing a session takes a while.
        drop(known);
        drop(forgotten);
    }

    /// Returns whether an address may have one more session. There is no limit for loopback
    /// addresses, because they may belong to a proxy that does not forward the client's address.
    fn has_room_for(&self, address: IpAddr, known: &HashMap<SessionId, SessionEntry>) -> bool {
        let same = known.values().filter(|known| known.address == address);
        address.is_loopback() || same.count() < self.per_address_max
    }

    fn seat(
        self: &Arc<Self>,
        id: SessionId,
        attached: SessionEntry,
        place: OwnedSemaphorePermit,
        known: &mut HashMap<SessionId, SessionEntry>,
    ) -> SessionGuard {
        let address = attached.address;
        known.insert(id, attached);
        SessionGuard {
            sessions: self.clone(),
            id,
            address,
            place: Some(place),
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<SessionId, SessionEntry>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}

impl SessionSignals {
    /// Waits until the session is wanted on another connection.
    pub(crate) async fn to_leave(&self) {
        self.leave.notified().await;
    }

    /// Waits until the session has to give way.
    pub(crate) async fn to_give_way(&self) {
        self.give_way.notified().await;
    }

    /// Returns the number of bytes that the session held when it was told to give way, if it was.
    fn gave_way(&self) -> Option<u64> {
        let bytes = self.gave_way_bytes.load(Ordering::Relaxed);
        (bytes > 0).then_some(bytes)
    }
}

impl Drop for SessionGuard {
    fn drop(&mut self) {
        if self.place.take().is_some() {
            self.sessions.known().remove(&self.id);
            self.sessions.changed.notify_waiters();
        }
    }
}

/// Counts a waiting session while it exists.
struct WaitingGuard<'a>(&'a AtomicUsize);

impl<'a> WaitingGuard<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for WaitingGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Removes the session that has been without a connection for the longest time, of those for which
/// `may` returns true.
fn forget_oldest(
    known: &mut HashMap<SessionId, SessionEntry>,
    may: impl Fn(&SessionEntry) -> bool,
) -> Option<SessionEntry> {
    let kept = known.iter().filter(|(_, known)| may(known));
    let kept = kept.filter_map(|(id, known)| Some((known.kept_since()?, *id)));
    let (_, oldest) = kept.min_by_key(|(since, _)| *since)?;
    known.remove(&oldest)
}

impl SessionEntry {
    /// Returns the time at which the session lost its connection, or `None` if it has one.
    fn kept_since(&self) -> Option<Instant> {
        match &self.location {
            Location::Attached(_) => None,
            Location::Detached(kept) => Some(kept.since),
        }
    }
}

impl HostedSession {
    /// Reserves the memory that `work` bytes of decompressed input may need.
    pub(crate) fn reserve(
        &mut self,
        work: usize,
        sessions: &Sessions,
    ) -> Result<(), MemoryShortage> {
        if !self.session.has_files() {
            return Ok(());
        }
        let growth = self.session.growth_bytes_max(work) as u64;
        let needed = self.held_bytes().saturating_add(growth);
        let more = needed.saturating_sub(self.share.bytes());
        sessions.grow(&mut self.share, more)
    }

    /// Releases reserved memory that was not needed.
    pub(crate) fn settle(&mut self) {
        self.share.set(self.held_bytes());
    }

    /// Returns the maximum memory of replies, including the reply to `text` if one is given.
    pub(crate) fn reply_bytes_max(&self, text: Option<&str>) -> u64 {
        match self.session.has_files() {
            true => self.session.reply_bytes_max(text) as u64,
            false => 0,
        }
    }

    /// Returns the counter of the bytes that the upload holds.
    pub(crate) fn held(&self) -> &UploadBytes {
        self.share.held()
    }

    fn held_bytes(&self) -> u64 {
        self.session.memory_bytes() as u64 / 8 * ALLOCATED_FOR_8
    }
}

#[cfg(test)]
mod tests;
