//! The sessions of all uploads: how many there may be, and those whose connection was lost.

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
use linerate_gateway::config::LogsOptions;
use linerate_logview::{
    countries::Countries,
    session::{Limits, Session, SessionError, SessionId, Uploads},
};
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep, timeout},
};

use super::memory::{Held, Memory, Share};
use crate::serve::follow::Tails;

/// How much memory there has to be for each thread that parses: a session takes some more while it works.
const PARSER_BYTES: u64 = 64 << 20;

/// What an allocator takes for 8 bytes that are wanted, so that its sizes are few.
pub(in crate::serve) const ALLOCATED_FOR_8: u64 = 9;

/// How long a connection may take to give up a session that goes on over another one.
const TAKEOVER_MAX: Duration = Duration::from_secs(5);

/// What the uploads of all workers share.
pub(in crate::serve) struct Sessions {
    pub(super) limits: Limits,
    pub(super) tails: Tails,
    resume: Duration,
    uploads_max: usize,
    per_address_max: usize,
    memory: Memory,
    started: Instant,
    places: Arc<Semaphore>,
    parsers: Arc<Semaphore>,
    /// How many wait for a turn.
    waiting: AtomicUsize,
    known: Mutex<HashMap<SessionId, Known>>,
    /// Is told when a session was kept or is gone.
    changed: Notify,
}

/// A session and the memory that it has been given.
#[derive(Debug)]
pub(super) struct Hosted {
    pub(super) session: Session,
    share: Share,
}

/// Why a session gets no place.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum NoPlace {
    /// Its address has as many as it may.
    Address,
    /// There are as many as there may be.
    Busy,
    /// Uploads are switched off.
    Off,
}

/// Why an upload does not get memory now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Lack {
    /// There is none left, and no other upload holds more than this one would.
    Refused,
    /// The upload that holds the most was told to give way, so there will be some soon.
    Soon,
}

/// What the connection of a session is told.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// That the session goes on over another connection.
    leave: Notify,
    /// That the session is to end, since others need its memory.
    give_way: Notify,
    /// How many bytes the session held when it was told to give way; 0 if it was not.
    gave_way_bytes: AtomicU64,
}

/// A session that has a place.
struct Known {
    address: IpAddr,
    held: Held,
    whereabouts: Whereabouts,
}

/// Where a session is.
enum Whereabouts {
    /// With a connection, which hears these calls.
    Attached(Arc<Calls>),
    Kept(Kept),
}

/// A session whose connection was lost.
struct Kept {
    session: Box<Hosted>,
    since: Instant,
    place: OwnedSemaphorePermit,
}

/// A connection's right to a session. Dropped, it makes room for another.
pub(super) struct Seat {
    sessions: Arc<Sessions>,
    id: SessionId,
    address: IpAddr,
    place: Option<OwnedSemaphorePermit>,
}

impl Sessions {
    /// Creates what uploads share, and begins to read the files that are to be followed, which take up `tails_bytes_max`
    /// bytes together. Memory is taken from the budget of the process as well.
    ///
    /// # Errors
    /// The database of countries can't be used, or a thread that reads can't be started.
    pub(in crate::serve) fn new(
        options: &LogsOptions,
        tails_bytes_max: u64,
        process: Budget,
    ) -> anyhow::Result<Arc<Self>> {
        let mut limits = Limits::default();
        limits.upload_bytes_max = options.upload_bytes_max;
        limits.decode.decoded_bytes_max = options.upload_bytes_max;
        limits.decode.ratio_max = options.ratio_max;
        limits.aggregate.column_bytes_max = options.columns_bytes_max;
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
        let tails = Tails::start(&options.tail, &limits, tails_bytes_max, &process)?;
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

    /// Returns how many sessions have a connection, and how many are kept without one.
    pub(in crate::serve) fn count(&self) -> (usize, usize) {
        let known = self.known();
        let is_kept = |known: &&Known| matches!(known.whereabouts, Whereabouts::Kept(_));
        let kept = known.values().filter(is_kept).count();
        (known.len() - kept, kept)
    }

    /// Returns whether a client that is let in may upload.
    pub(super) fn offer(&self) -> Uploads {
        match self.uploads_max {
            0 => Uploads::Off,
            _ => Uploads::Allowed,
        }
    }

    /// Creates a session for a new connection. It takes no place before it has files.
    pub(super) fn session(&self) -> Box<Hosted> {
        let id = SessionId::from_bytes(rand::random());
        Box::new(Hosted {
            session: Session::new(self.limits.clone(), id, self.now()),
            share: self.memory.share(Held::default()),
        })
    }

    /// Returns a share of the memory of all uploads, which counts for what an upload holds.
    pub(super) fn share(&self, held: Held) -> Share {
        self.memory.share(held)
    }

    /// Returns how many bytes all uploads take up.
    #[cfg(test)]
    pub(super) fn memory_used(&self) -> u64 {
        self.memory.used()
    }

    /// Gives a share more bytes. Where there are none left, sessions without a connection give way, and then the upload that
    /// holds the most.
    pub(super) fn grow(&self, share: &mut Share, bytes: u64) -> Result<(), Lack> {
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

    /// Tells the upload that holds the most to give way, if that is more than the `wanted` bytes that another would hold.
    ///
    /// One is told at a time: what it holds may be enough.
    fn call_largest(&self, known: &HashMap<SessionId, Known>, wanted: u64) -> Lack {
        let attached = known.values().filter_map(|known| match &known.whereabouts {
            Whereabouts::Attached(calls) => Some((known.held.bytes(), calls)),
            Whereabouts::Kept(_) => None,
        });
        let attached: Vec<_> = attached.collect();
        if attached.iter().any(|(_, calls)| calls.gave_way().is_some()) {
            return Lack::Soon;
        }
        let largest = attached.iter().max_by_key(|(bytes, _)| *bytes);
        let Some((bytes, calls)) = largest.filter(|(bytes, _)| *bytes > wanted) else {
            return Lack::Refused;
        };
        calls.gave_way_bytes.store(*bytes, Ordering::Relaxed);
        calls.give_way.notify_one();
        self.memory.note_shed(*bytes);
        tracing::info!(
            bytes,
            "the largest upload is ended, since others need memory"
        );
        Lack::Soon
    }

    /// Returns what a client is told whose session needs more memory than there is.
    pub(super) fn no_memory(&self) -> SessionError {
        SessionError::NoMemory {
            bytes_max: self.memory.bytes_max(),
        }
    }

    /// Returns what a client is told whose session was called to give way.
    pub(super) fn gave_way(&self, calls: &Calls) -> SessionError {
        SessionError::GaveWay {
            bytes: calls.gave_way().unwrap_or_default(),
            bytes_max: self.memory.bytes_max(),
        }
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
    pub(super) fn admit(
        self: &Arc<Self>,
        hosted: &Hosted,
        address: IpAddr,
        calls: Arc<Calls>,
    ) -> Result<Seat, NoPlace> {
        if self.uploads_max == 0 {
            return Err(NoPlace::Off);
        }
        if self.memory.is_tight() {
            return Err(NoPlace::Busy);
        }
        let address = address.to_canonical();
        // Dropped after the lock, since it takes a while to free them.
        let mut forgotten = Vec::new();
        let mut known = self.known();
        while !self.has_room_for(address, &known) {
            let oldest = forget_oldest(&mut known, |known| known.address == address);
            forgotten.push(oldest.ok_or(NoPlace::Address)?);
        }
        let mut place = self.places.clone().try_acquire_owned();
        while place.is_err() {
            // Its place is free only when it is dropped.
            drop(forget_oldest(&mut known, |_| true).ok_or(NoPlace::Busy)?);
            place = self.places.clone().try_acquire_owned();
        }
        let place = place.map_err(|_| NoPlace::Busy)?;
        let newcomer = Known {
            address,
            held: hosted.held().clone(),
            whereabouts: Whereabouts::Attached(calls),
        };
        Ok(self.seat(hosted.session.id(), newcomer, place, &mut known))
    }

    /// Keeps a session whose connection was lost for the time that is configured.
    pub(super) fn keep(self: &Arc<Self>, mut seat: Seat, mut session: Box<Hosted>) {
        session.settle();
        let Some(place) = seat.place.take_if(|_| !self.resume.is_zero()) else {
            return;
        };
        let (id, since) = (seat.id, Instant::now());
        let kept = Kept {
            session,
            since,
            place,
        };
        let known = Known {
            address: seat.address,
            held: kept.session.held().clone(),
            whereabouts: Whereabouts::Kept(kept),
        };
        self.known().insert(id, known);
        self.changed.notify_waiters();
        let sessions = self.clone();
        tokio::spawn(async move {
            sleep(sessions.resume).await;
            sessions.forget(id, since);
        });
    }

    /// Takes a session over from a connection that was lost, or that does not know it yet.
    pub(super) async fn resume(
        self: &Arc<Self>,
        id: SessionId,
        calls: Arc<Calls>,
    ) -> Option<(Box<Hosted>, Seat)> {
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

    /// Takes over a kept session; `Some(None)` if a connection has it that was told to give it up.
    fn try_resume(
        self: &Arc<Self>,
        id: SessionId,
        calls: &Arc<Calls>,
    ) -> Option<Option<(Box<Hosted>, Seat)>> {
        let mut known = self.known();
        if let Whereabouts::Attached(calls) = &known.get(&id)?.whereabouts {
            calls.leave.notify_one();
            return Some(None);
        }
        let Known {
            address,
            held,
            whereabouts: Whereabouts::Kept(kept),
        } = known.remove(&id)?
        else {
            return None;
        };
        let resumed = Known {
            address,
            held,
            whereabouts: Whereabouts::Attached(calls.clone()),
        };
        let seat = self.seat(id, resumed, kept.place, &mut known);
        Some(Some((kept.session, seat)))
    }

    fn forget(&self, id: SessionId, since: Instant) {
        let mut known = self.known();
        let is_it = |known: &Known| known.kept_since() == Some(since);
        let forgotten = match known.get(&id).is_some_and(is_it) {
            true => known.remove(&id),
            false => None,
        };
        // To free it takes a while.
        drop(known);
        drop(forgotten);
    }

    /// Returns whether an address may have one more session. That of this machine may have any number: a proxy that does
    /// not say for whom it asks may have it.
    fn has_room_for(&self, address: IpAddr, known: &HashMap<SessionId, Known>) -> bool {
        let same = known.values().filter(|known| known.address == address);
        address.is_loopback() || same.count() < self.per_address_max
    }

    fn seat(
        self: &Arc<Self>,
        id: SessionId,
        attached: Known,
        place: OwnedSemaphorePermit,
        known: &mut HashMap<SessionId, Known>,
    ) -> Seat {
        let address = attached.address;
        known.insert(id, attached);
        Seat {
            sessions: self.clone(),
            id,
            address,
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

impl Calls {
    /// Waits until the session is wanted over another connection.
    pub(super) async fn to_leave(&self) {
        self.leave.notified().await;
    }

    /// Waits until the session has to give way.
    pub(super) async fn to_give_way(&self) {
        self.give_way.notified().await;
    }

    /// Returns how many bytes the session held when it was told to give way, if it was.
    fn gave_way(&self) -> Option<u64> {
        let bytes = self.gave_way_bytes.load(Ordering::Relaxed);
        (bytes > 0).then_some(bytes)
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

/// Takes the session away that has been without a connection for longest, of those that `may` go.
fn forget_oldest(
    known: &mut HashMap<SessionId, Known>,
    may: impl Fn(&Known) -> bool,
) -> Option<Known> {
    let kept = known.iter().filter(|(_, known)| may(known));
    let kept = kept.filter_map(|(id, known)| Some((known.kept_since()?, *id)));
    let (_, oldest) = kept.min_by_key(|(since, _)| *since)?;
    known.remove(&oldest)
}

impl Known {
    /// Returns since when the session has been without a connection, if it is.
    fn kept_since(&self) -> Option<Instant> {
        match &self.whereabouts {
            Whereabouts::Attached(_) => None,
            Whereabouts::Kept(kept) => Some(kept.since),
        }
    }
}

impl Hosted {
    /// Sets the memory aside that so much work may take.
    pub(super) fn reserve(&mut self, work: usize, sessions: &Sessions) -> Result<(), Lack> {
        if !self.session.has_files() {
            return Ok(());
        }
        let growth = self.session.growth_bytes_max(work) as u64;
        let needed = self.held_bytes().saturating_add(growth);
        let more = needed.saturating_sub(self.share.bytes());
        sessions.grow(&mut self.share, more)
    }

    /// Gives back what was set aside and not needed.
    pub(super) fn settle(&mut self) {
        self.share.set(self.held_bytes());
    }

    /// Returns how much memory replies may take, one to a text included if that is given.
    pub(super) fn reply_bytes_max(&self, text: Option<&str>) -> u64 {
        match self.session.has_files() {
            true => self.session.reply_bytes_max(text) as u64,
            false => 0,
        }
    }

    /// Returns what the upload holds.
    pub(super) fn held(&self) -> &Held {
        self.share.held()
    }

    fn held_bytes(&self) -> u64 {
        self.session.memory_bytes() as u64 / 8 * ALLOCATED_FOR_8
    }
}

#[cfg(test)]
mod tests;
