//! Streams that many want to know of at the same time are read once.
//!
//! The clients of a node that ends come to the others within seconds, and most want the same few publications of the
//! same channels.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use foldhash::fast::RandomState;
use hashbrown::{HashMap, hash_map::Entry};
use linerate_broker::{BrokerError, History, HistoryRequest, StreamOptions};
use linerate_hub::{ChannelName, Publication, StreamPosition};
use tokio::{runtime::Handle, sync::watch};

/// How many publications those who share a read may be apart: who is further behind reads alone, so that nobody makes
/// the others wait for a long history.
const SPREAD_MAX: u64 = 256;

/// Reads a part of a channel's stream.
type Read = dyn Fn(ChannelName, StreamOptions, HistoryRequest) -> Reading + Send + Sync;

type Reading = Pin<Box<dyn Future<Output = Result<History, BrokerError>> + Send>>;

/// What came of a read, for all who share it.
type Answer = Result<Arc<History>, BrokerError>;

/// The reads of a node.
pub(super) struct Reads {
    read: Box<Read>,
    runtime: Handle,
    /// The channels of which something is read now, and who waits for the read after that.
    table: Mutex<HashMap<ChannelName, Option<Batch>, RandomState>>,
}

/// What a subscriber wants of a stream.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    pub(super) stream: StreamOptions,
    /// What follows this position; `None` for the newest position only.
    pub(super) since: Option<StreamPosition>,
    /// At most so many publications.
    pub(super) limit: usize,
}

/// Wishes that one read fulfils.
struct Batch {
    /// From the lowest position on that one of them begins at, and as many as one of them wants.
    wish: Wish,
    /// The highest such position.
    offset_max: u64,
    answers: watch::Sender<Option<Answer>>,
}

impl Reads {
    /// Starts with none. Reads are made on `runtime`, so that they outlive who asks for them.
    pub(super) fn new(
        runtime: Handle,
        read: impl Fn(ChannelName, StreamOptions, HistoryRequest) -> Reading + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            read: Box::new(read),
            runtime,
            table: Mutex::default(),
        })
    }

    /// Reads what is wished for, by a read that begins after this call: who asks while another read is under way
    /// shares the next one with all who do.
    ///
    /// # Errors
    /// The broker is away, or the channel keeps no stream.
    pub(super) async fn read(
        self: &Arc<Self>,
        channel: &ChannelName,
        wish: Wish,
    ) -> Result<History, BrokerError> {
        // What is in our own memory is there at once.
        let joined = match wish.stream.is_durable {
            true => self.join(channel, &wish),
            false => None,
        };
        let Some(mut answer) = joined else {
            return (self.read)(channel.clone(), wish.stream, wish.request(0)).await;
        };
        let answer = answer.wait_for(Option::is_some).await;
        match answer.ok().and_then(|answer| answer.clone()) {
            Some(history) => Ok(wish.part_of(&*history?)),
            None => Err(BrokerError::Away {
                reason: "the node stops".to_owned(),
            }),
        }
    }

    /// Joins those who wait for the next read of a channel; `None` for who does not go together with them.
    fn join(
        self: &Arc<Self>,
        channel: &ChannelName,
        wish: &Wish,
    ) -> Option<watch::Receiver<Option<Answer>>> {
        let mut table = self.table();
        match table.entry(channel.clone()) {
            Entry::Vacant(vacant) => {
                let (batch, answer) = Batch::new(wish);
                vacant.insert(None);
                drop(table);
                let reading = self.clone().run(channel.clone(), batch);
                self.runtime.spawn(reading);
                Some(answer)
            }
            Entry::Occupied(mut occupied) => match occupied.get_mut() {
                Some(batch) => batch.join(wish),
                next @ None => {
                    let (batch, answer) = Batch::new(wish);
                    *next = Some(batch);
                    Some(answer)
                }
            },
        }
    }

    /// Reads for a batch, then for the one that has gathered meanwhile, until there is none.
    async fn run(self: Arc<Self>, channel: ChannelName, mut batch: Batch) {
        let mut turn = Turn {
            reads: &self,
            channel: &channel,
            is_over: false,
        };
        loop {
            // Those who waited for it may be gone.
            if !batch.answers.is_closed() {
                let request = batch.wish.request(batch.spread());
                let history = (self.read)(channel.clone(), batch.wish.stream, request).await;
                batch.answers.send_replace(Some(history.map(Arc::new)));
            }
            let mut table = self.table();
            match table.get_mut(&channel).and_then(Option::take) {
                Some(gathered) => batch = gathered,
                None => {
                    table.remove(&channel);
                    turn.is_over = true;
                    return;
                }
            }
        }
    }

    fn table(&self) -> MutexGuard<'_, HashMap<ChannelName, Option<Batch>, RandomState>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The reads of a channel that follow one another.
struct Turn<'a> {
    reads: &'a Reads,
    channel: &'a ChannelName,
    is_over: bool,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // A read has panicked, or the runtime ends: nobody is to wait for one that never comes.
        if !self.is_over {
            self.reads.table().remove(self.channel);
        }
    }
}

impl Batch {
    fn new(wish: &Wish) -> (Self, watch::Receiver<Option<Answer>>) {
        let (answers, answer) = watch::channel(None);
        let offset_max = wish.since.as_ref().map_or(0, |since| since.offset);
        let batch = Self {
            wish: wish.clone(),
            offset_max,
            answers,
        };
        (batch, answer)
    }

    /// Takes one more in, unless what it wants is too different.
    fn join(&mut self, wish: &Wish) -> Option<watch::Receiver<Option<Answer>>> {
        if wish.stream != self.wish.stream {
            return None;
        }
        match (&mut self.wish.since, &wish.since) {
            (_, None) => {}
            (since @ None, Some(wanted)) => {
                self.offset_max = wanted.offset;
                *since = Some(wanted.clone());
            }
            (Some(since), Some(wanted)) => {
                let offset_min = since.offset.min(wanted.offset);
                let offset_max = self.offset_max.max(wanted.offset);
                if since.epoch != wanted.epoch || offset_max - offset_min > SPREAD_MAX {
                    return None;
                }
                since.offset = offset_min;
                self.offset_max = offset_max;
            }
        }
        self.wish.limit = self.wish.limit.max(wish.limit);
        Some(self.answers.subscribe())
    }

    /// Returns how far those who share the read are apart.
    fn spread(&self) -> usize {
        let since = self.wish.since.as_ref();
        let spread = since.map_or(0, |since| self.offset_max - since.offset);
        usize::try_from(spread).unwrap_or(usize::MAX)
    }
}

impl Wish {
    /// Returns what to ask the broker for, so that who begins `spread` later gets as many.
    fn request(&self, spread: usize) -> HistoryRequest {
        HistoryRequest {
            since: self.since.clone(),
            limit: Some(match self.since {
                Some(_) => self.limit.saturating_add(spread),
                None => 0,
            }),
            is_reverse: false,
        }
    }

    /// Returns what the broker would have answered to this wish, of what it answered to all.
    fn part_of(&self, read: &History) -> History {
        let mut part = History {
            publications: Vec::new(),
            newest: read.newest.clone(),
            is_contiguous: true,
        };
        let Some(since) = &self.since else {
            return part;
        };
        part.is_contiguous = since.epoch == read.newest.epoch && since.offset <= read.newest.offset;
        if since.epoch != read.newest.epoch {
            // All who share a read are in the same epoch, and have the same of one that has followed: everything.
            let count = read.publications.len().min(self.limit);
            part.publications = read.publications[..count].to_vec();
        }
        if !part.is_contiguous {
            return part;
        }
        if !read.is_contiguous {
            // Then it begins with the oldest publication that is left.
            let oldest = read.publications.first().map(Publication::offset);
            let oldest = oldest.unwrap_or(read.newest.offset.saturating_add(1));
            part.is_contiguous = since.offset.saturating_add(1) >= oldest;
        }
        let is_known = |publication: &Publication| publication.offset() <= since.offset;
        let known = read.publications.partition_point(is_known);
        let missed = &read.publications[known..];
        part.publications = missed[..missed.len().min(self.limit)].to_vec();
        part
    }
}

impl fmt::Debug for Reads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reads")
            .field("channels", &self.table().len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
