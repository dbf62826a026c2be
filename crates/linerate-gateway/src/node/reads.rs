//! Combines concurrent reads of the same stream into one.
//!
//! When a node ends, its clients move to other nodes within seconds, and most of them want the same
//! few publications of the same channels.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use foldhash::fast::RandomState;
use hashbrown::{HashMap, hash_map::Entry};
use linerate_broker::{BrokerError, History, HistoryRequest, StreamOptions};
use linerate_hub::{ChannelName, Publication, StreamPosition};
use parking_lot::Mutex;
use tokio::{runtime::Handle, sync::oneshot};

/// The maximum distance, in publications, between the start positions of requests that share a
/// read. A client that is further behind reads alone, so that it does not make the others wait for
/// a long history.
const SPREAD_MAX: u64 = 256;

/// Reads a part of a channel's stream.
type Read = dyn Fn(ChannelName, StreamOptions, HistoryRequest) -> Reading + Send + Sync;

type Reading = Pin<Box<dyn Future<Output = Result<History, BrokerError>> + Send>>;

/// The result of a read, for all who share it.
type Answer = Result<Arc<History>, BrokerError>;

/// The reads of a node.
pub(super) struct Reads {
    read: Box<Read>,
    runtime: Handle,
    /// The channels that are being read, each with the batch that waits for the next read.
    table: Mutex<HashMap<ChannelName, Option<Batch>, RandomState>>,
}

/// What a subscriber wants to read from a stream.
#[derive(Clone, Debug)]
pub(super) struct ReadRequest {
    pub(super) stream: StreamOptions,
    /// Read what follows this position; `None` to read the newest publications, in reverse order.
    pub(super) since: Option<StreamPosition>,
    /// The maximum number of publications; 0 to read only the newest position.
    pub(super) limit: usize,
}

/// Requests that one read fulfils.
struct Batch {
    /// The combined request: the lowest start position and the highest limit of all of them.
    request: ReadRequest,
    /// The highest start position.
    offset_max: u64,
    /// The callers, in order.
    callers: Vec<oneshot::Sender<Answer>>,
}

impl Reads {
    /// Creates an empty table. Reads are made on `runtime`, so that they outlive their caller.
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

    /// Reads what `request` asks for. The read starts after this call: a caller that arrives during
    /// another read shares the next one with all others that do.
    ///
    /// # Errors
    /// The broker is unavailable, or the channel has no history.
    pub(super) async fn read(
        self: &Arc<Self>,
        channel: &ChannelName,
        request: ReadRequest,
    ) -> Result<History, BrokerError> {
        // A stream in the node's own memory can be read at once.
        let joined = match request.stream.is_durable {
            true => self.join(channel, &request),
            false => None,
        };
        let Some(answer) = joined else {
            return (self.read)(channel.clone(), request.stream, request.history_request(0)).await;
        };
        match answer.await {
            Ok(history) => Ok(request.part_of(&*history?)),
            Err(_) => Err(BrokerError::Away {
                reason: "the node is shutting down".to_owned(),
            }),
        }
    }

    /// Joins the batch that waits for the next read of a channel. Returns `None` if the request
    /// does not fit into it.
    fn join(
        self: &Arc<Self>,
        channel: &ChannelName,
        request: &ReadRequest,
    ) -> Option<oneshot::Receiver<Answer>> {
        let mut table = self.table.lock();
        match table.entry(channel.clone()) {
            Entry::Vacant(vacant) => {
                let (batch, answer) = Batch::new(request);
                vacant.insert(None);
                drop(table);
                let reading = self.clone().run(channel.clone(), batch);
                self.runtime.spawn(reading);
                Some(answer)
            }
            Entry::Occupied(mut occupied) => match occupied.get_mut() {
                Some(batch) => batch.join(request),
                next @ None => {
                    let (batch, answer) = Batch::new(request);
                    *next = Some(batch);
                    Some(answer)
                }
            },
        }
    }

    /// Reads for a batch, then for the batch that has gathered in the meantime, until there is
    /// none.
    async fn run(self: Arc<Self>, channel: ChannelName, mut batch: Batch) {
        let mut series = ReadSeries {
            reads: &self,
            channel: &channel,
            is_over: false,
        };
        loop {
            // All who waited for it may have gone.
            if batch.callers.iter().any(|caller| !caller.is_closed()) {
                let request = batch.request.history_request(batch.spread());
                let history = (self.read)(channel.clone(), batch.request.stream, request).await;
                let answer = history.map(Arc::new);
                for caller in batch.callers {
                    // An error means that the caller no longer waits.
                    _ = caller.send(answer.clone());
                }
            }
            let mut table = self.table.lock();
            match table.get_mut(&channel).and_then(Option::take) {
                Some(gathered) => batch = gathered,
                None => {
                    table.remove(&channel);
                    series.is_over = true;
                    return;
                }
            }
        }
    }
}

/// The consecutive reads of a channel.
struct ReadSeries<'a> {
    reads: &'a Reads,
    channel: &'a ChannelName,
    is_over: bool,
}

impl Drop for ReadSeries<'_> {
    fn drop(&mut self) {
        // A read has panicked, or the runtime is shutting down: no client must wait for an answer
        // that never comes.
        if !self.is_over {
            self.reads.table.lock().remove(self.channel);
        }
    }
}

impl Batch {
    fn new(request: &ReadRequest) -> (Self, oneshot::Receiver<Answer>) {
        let (caller, answer) = oneshot::channel();
        let offset_max = request.since.as_ref().map_or(0, |since| since.offset);
        let batch = Self {
            request: request.clone(),
            offset_max,
            callers: vec![caller],
        };
        (batch, answer)
    }

    /// Adds a request, unless it differs too much.
    fn join(&mut self, request: &ReadRequest) -> Option<oneshot::Receiver<Answer>> {
        if request.stream != self.request.stream {
            return None;
        }
        match (&mut self.request.since, &request.since) {
            // The order differs.
            (Some(_), None) if request.limit > 0 => return None,
            (None, Some(_)) if self.request.limit > 0 => return None,
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
        self.request.limit = self.request.limit.max(request.limit);
        let (caller, answer) = oneshot::channel();
        self.callers.push(caller);
        Some(answer)
    }

    /// Returns the distance between the lowest and the highest start position.
    fn spread(&self) -> usize {
        let since = self.request.since.as_ref();
        let spread = since.map_or(0, |since| self.offset_max - since.offset);
        usize::try_from(spread).unwrap_or(usize::MAX)
    }
}

impl ReadRequest {
    /// Returns the request for the broker. The limit is raised by `spread`, so that a request that
    /// starts that much later still gets enough publications.
    fn history_request(&self, spread: usize) -> HistoryRequest {
        HistoryRequest {
            since: self.since.clone(),
            limit: Some(self.limit.saturating_add(spread)),
            is_reverse: self.since.is_none() && self.limit > 0,
        }
    }

    /// Returns what the broker would have answered to this request alone, taken from its answer
    /// to the batch.
    fn part_of(&self, read: &History) -> History {
        let mut part = History {
            publications: Vec::new(),
            newest: read.newest.clone(),
            is_contiguous: true,
        };
        let Some(since) = &self.since else {
            let count = read.publications.len().min(self.limit);
            part.publications = read.publications[..count].to_vec();
            return part;
        };
        part.is_contiguous = since.epoch == read.newest.epoch && since.offset <= read.newest.offset;
        if since.epoch != read.newest.epoch {
            // All requests of a batch have the same epoch, so they all get the same from an epoch
            // that has replaced it: everything.
            let count = read.publications.len().min(self.limit);
            part.publications = read.publications[..count].to_vec();
        }
        if !part.is_contiguous {
            return part;
        }
        if !read.is_contiguous {
            // In this case the answer begins with the oldest publication that is left.
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
            .field("channels", &self.table.lock().len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
