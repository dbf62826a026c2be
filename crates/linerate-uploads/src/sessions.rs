//! The sessions of all uploads: their limits, and the sessions that are kept after their page was
//! closed.

mod registry;
mod viewing;

use std::{
    fmt, mem,
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
    asns::Asns,
    countries::{Countries, CountriesError},
    session::{Limits, Session, SessionError, SessionId, Uploads},
};
use tokio::{
    runtime::Handle,
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep_until, timeout},
};

use self::registry::{DetachedSession, Location, Registry, SessionEntry};
pub(crate) use self::viewing::{ViewGuard, ViewRefusal};
use crate::{
    hosted::{HostedSession, SharedSession},
    memory::{Memory, Share, UploadBytes},
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
    /// How long a session is kept after its last page was closed.
    keep: Duration,
    viewers_max: usize,
    uploads_max: usize,
    per_address_max: usize,
    memory: Memory,
    started: Instant,
    places: Arc<Semaphore>,
    parsers: Arc<Semaphore>,
    /// Number of sessions that wait for a turn.
    waiting: AtomicUsize,
    known: Mutex<Registry>,
    /// Notified when a session is kept or removed.
    changed: Notify,
}

/// Why a service cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The database of countries or of autonomous systems cannot be used.
    #[error(transparent)]
    Countries(#[from] CountriesError),
    /// A thread that reads a file cannot be started.
    #[error(transparent)]
    Thread(#[from] std::io::Error),
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

/// A connection's right to a session. Dropping it frees the place for another session.
pub(crate) struct SessionGuard {
    sessions: Arc<Sessions>,
    id: SessionId,
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
        limits.aggregate.asns = options.asn.as_deref().map(Asns::open).transpose()?;
        limits.silence_max = options.silence;
        limits.idle_max = options.idle;
        let parsers = match options.parse_threads {
            0 => thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        };
        let parsers_max = usize::try_from(options.memory_bytes_max / PARSER_BYTES);
        let parsers = parsers.min(parsers_max.unwrap_or(usize::MAX)).max(1);
        let tails = Tails::start(options, &limits, &process)?;
        let sessions = Arc::new(Self {
            limits,
            tails,
            keep: options.resume,
            viewers_max: options.viewers_max,
            uploads_max: options.uploads_max,
            per_address_max: options.uploads_per_address_max,
            memory: Memory::new(options.memory_bytes_max, process),
            started: Instant::now(),
            places: Arc::new(Semaphore::new(options.uploads_max)),
            parsers: Arc::new(Semaphore::new(parsers)),
            waiting: AtomicUsize::new(0),
            known: Mutex::default(),
            changed: Notify::new(),
        });
        if let Some(space) = &sessions.limits.aggregate.spill {
            let weak = Arc::downgrade(&sessions);
            space.on_shortage(move || weak.upgrade().is_some_and(|all| all.free_disk_space()));
        }
        Ok(sessions)
    }

    /// Returns the number of sessions with a page, and the number kept without one.
    pub(crate) fn count(&self) -> (usize, usize) {
        let known = self.known();
        let kept = known
            .entries()
            .filter(|(_, entry)| entry.kept_since().is_some());
        let kept = kept.count();
        (known.len() - kept, kept)
    }

    /// Returns for how long a session is kept after its last page was closed.
    pub(crate) fn keep_time(&self) -> Duration {
        self.keep
    }

    /// Returns whether clients with access may upload.
    pub(crate) fn offer(&self) -> Uploads {
        match self.uploads_max {
            0 => Uploads::Off,
            _ => Uploads::Allowed,
        }
    }

    /// Creates a session for a new connection. The session needs no place until it has files.
    pub(crate) fn session(&self) -> Arc<SharedSession> {
        let [id, view] = [(); 2].map(|()| SessionId::from_bytes(rand::random()));
        let session = Session::new(self.limits.clone(), id, self.now()).with_view(view);
        let share = self.memory.share(UploadBytes::default());
        Arc::new(SharedSession::new(id, view, session, share))
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

    /// Adds bytes to a share. If there are not enough left, first the sessions without a page give
    /// way, oldest first, and then the upload that holds the most.
    pub(crate) fn grow(&self, share: &mut Share, bytes: u64) -> Result<(), MemoryShortage> {
        while share.grow(bytes).is_err() {
            if !self.forget_oldest(|_| true) {
                let wanted = share.held().bytes().saturating_add(bytes);
                return Err(self.call_largest(wanted));
            }
        }
        Ok(())
    }

    /// Reserves the memory that `work` bytes of decompressed input of a session may need.
    pub(crate) fn reserve(
        &self,
        hosted: &mut HostedSession,
        work: usize,
    ) -> Result<(), MemoryShortage> {
        let bytes = hosted.lacking_bytes(work);
        self.grow(&mut hosted.share, bytes)
    }

    /// Makes the upload that holds the most memory give way, if it holds more than `wanted` bytes,
    /// which is what the asking upload would hold.
    ///
    /// Only one upload gives way at a time, because its memory may be enough.
    fn call_largest(&self, wanted: u64) -> MemoryShortage {
        let mut known = self.known();
        let called = known.entries().filter_map(|(_, entry)| entry.signals());
        if called.into_iter().any(|calls| calls.gave_way().is_some()) {
            return MemoryShortage::Soon;
        }
        let sizes = known.entries().map(|(id, entry)| (entry.held.bytes(), id));
        let largest = sizes.max_by_key(|(bytes, _)| *bytes);
        let Some((bytes, id)) = largest.filter(|(bytes, _)| *bytes > wanted) else {
            return MemoryShortage::Refused;
        };
        let removed = match known.get(id).and_then(SessionEntry::signals) {
            Some(calls) => {
                calls.gave_way_bytes.store(bytes, Ordering::Relaxed);
                calls.give_way.notify_one();
                None
            }
            // It has viewers only, which are told by its end.
            None => known.remove(id),
        };
        drop(known);
        drop(removed);
        self.memory.note_shed(bytes);
        tracing::info!(
            bytes,
            "ending the largest upload, because others need memory"
        );
        MemoryShortage::Soon
    }

    /// Discards the session that has been without a page for the longest time, of those for which
    /// `may` returns true. Returns false if there is none.
    fn forget_oldest(&self, may: impl Fn(&SessionEntry) -> bool) -> bool {
        let oldest = self.known().forget_oldest(may);
        // The lock is released by now, because freeing a session takes a while.
        oldest.is_some()
    }

    /// Discards a session without a page that uses disk space. Returns false if there is none.
    fn free_disk_space(&self) -> bool {
        self.forget_oldest(|entry| {
            let shared = entry.shared.upgrade();
            shared.is_some_and(|shared| shared.spilled_bytes() > 0)
        })
    }

    /// Discards sessions without a page while the process has little memory left.
    fn forget_while_tight(&self) {
        while self.memory.is_tight() && self.forget_oldest(|_| true) {}
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
        let _waiting = self.wait();
        // The semaphore is never closed. If it were, the turn would only start too early.
        self.parsers.clone().acquire_owned().await.ok()
    }

    /// Returns whether another session waits for a turn.
    pub(crate) fn is_turn_wanted(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Counts a session that waits for its turn or for the lock of a session.
    pub(crate) fn wait(&self) -> WaitingGuard<'_> {
        WaitingGuard::new(&self.waiting)
    }

    /// Gives a session a place. If there is none, the session that has been without a page for the
    /// longest time gives way.
    pub(crate) fn admit(
        self: &Arc<Self>,
        shared: &Arc<SharedSession>,
        address: IpAddr,
        calls: Arc<SessionSignals>,
    ) -> Result<SessionGuard, SessionRefusal> {
        if self.uploads_max == 0 {
            return Err(SessionRefusal::Off);
        }
        self.forget_while_tight();
        if self.memory.is_tight() {
            return Err(SessionRefusal::Busy);
        }
        let address = address.to_canonical();
        // Dropped after the lock is released, because freeing sessions takes a while.
        let mut forgotten = Vec::new();
        let mut known = self.known();
        while !self.has_room_for(address, &known) {
            let oldest = known.forget_oldest(|known| known.address == address);
            forgotten.push(oldest.ok_or(SessionRefusal::Address)?);
        }
        let mut place = self.places.clone().try_acquire_owned();
        while place.is_err() {
            // The place becomes free only when the session is dropped.
            drop(known.forget_oldest(|_| true).ok_or(SessionRefusal::Busy)?);
            place = self.places.clone().try_acquire_owned();
        }
        let place = place.map_err(|_| SessionRefusal::Busy)?;
        let newcomer = SessionEntry {
            address,
            held: shared.held().clone(),
            view: shared.view,
            viewers: 0,
            shared: Arc::downgrade(shared),
            location: Location::Attached(calls),
        };
        known.insert(shared.id, newcomer);
        Ok(self.seat(shared.id, place))
    }

    /// Keeps a session whose page was closed, for the configured time.
    pub(crate) fn keep(self: &Arc<Self>, mut seat: SessionGuard, shared: Arc<SharedSession>) {
        let Some(place) = seat.place.take_if(|_| !self.keep.is_zero()) else {
            return;
        };
        let mut known = self.known();
        if let Some(entry) = known.get_mut(seat.id) {
            entry.location = Location::Detached(DetachedSession {
                shared,
                since: Instant::now(),
                place,
            });
        }
        self.sweep_later(&mut known);
        drop(known);
        self.changed.notify_waiters();
        self.forget_while_tight();
    }

    /// Starts the task that discards sessions whose time is over, unless it runs already.
    fn sweep_later(self: &Arc<Self>, known: &mut Registry) {
        if let Ok(runtime) = Handle::try_current()
            && !known.is_swept
        {
            known.is_swept = true;
            runtime.spawn(self.clone().sweep());
        }
    }

    /// Discards sessions without a page when their time is over, or when the process has little
    /// memory left. Ends when there are none.
    async fn sweep(self: Arc<Self>) {
        let mut states = self.memory.watch();
        loop {
            let next = {
                let mut known = self.known();
                let Some(since) = known.oldest_kept() else {
                    known.is_swept = false;
                    return;
                };
                since + self.keep
            };
            tokio::select! {
                () = sleep_until(next) => {
                    let expired = self.known().forget_expired(self.keep, Instant::now());
                    drop(expired);
                }
                _ = states.changed() => self.forget_while_tight(),
            }
        }
    }

    /// Takes over a session from a connection that was lost, even if the server has not noticed the
    /// loss yet. Returns `None` if the session is unknown or is not released in time.
    pub(crate) async fn resume(
        self: &Arc<Self>,
        id: SessionId,
        calls: Arc<SessionSignals>,
    ) -> Option<(Arc<SharedSession>, SessionGuard)> {
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
    ) -> Option<Option<(Arc<SharedSession>, SessionGuard)>> {
        let mut known = self.known();
        let location = &mut known.get_mut(id)?.location;
        if let Location::Attached(calls) = location {
            calls.leave.notify_one();
            return Some(None);
        }
        let attached = Location::Attached(calls.clone());
        let Location::Detached(kept) = mem::replace(location, attached) else {
            return None;
        };
        Some(Some((kept.shared, self.seat(id, kept.place))))
    }

    /// Returns whether an address may have one more session. There is no limit for loopback
    /// addresses, because they may belong to a proxy that does not forward the client's address.
    fn has_room_for(&self, address: IpAddr, known: &Registry) -> bool {
        let same = known
            .entries()
            .filter(|(_, known)| known.address == address);
        address.is_loopback() || same.count() < self.per_address_max
    }

    fn seat(self: &Arc<Self>, id: SessionId, place: OwnedSemaphorePermit) -> SessionGuard {
        SessionGuard {
            sessions: self.clone(),
            id,
            place: Some(place),
        }
    }

    fn known(&self) -> MutexGuard<'_, Registry> {
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
            self.sessions.known().remove(self.id);
            self.sessions.changed.notify_waiters();
        }
    }
}

/// Counts a waiting session while it exists.
pub(crate) struct WaitingGuard<'a>(&'a AtomicUsize);

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

#[cfg(test)]
mod tests;
