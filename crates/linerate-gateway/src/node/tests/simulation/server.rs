//! The server behind all links: streams of bounded length, which are lost when it restarts.

use std::collections::{BTreeMap, VecDeque};

use linerate_broker::{Event, History, HistoryRequest};
use linerate_hub::{ChannelName, Epoch, Publication, StreamPosition};

/// The channel without a stream.
pub(super) const LIVE: &str = "live";

/// The number of publications that a stream keeps.
pub(super) const KEPT: usize = 30;

/// A server with its streams.
#[derive(Debug)]
pub(super) struct Server {
    run: u64,
    streams: BTreeMap<ChannelName, Stream>,
}

#[derive(Debug, Default)]
struct Stream {
    newest: u64,
    kept: VecDeque<Publication>,
}

impl Server {
    pub(super) fn new() -> Self {
        Self {
            run: 1,
            streams: BTreeMap::new(),
        }
    }

    /// Restarts the server, which loses its streams.
    pub(super) fn restart(&mut self) {
        self.run += 1;
        self.streams.clear();
    }

    /// Returns whether a channel has a stream.
    pub(super) fn keeps(channel: &ChannelName) -> bool {
        channel.as_str() != LIVE
    }

    pub(super) fn publish(&mut self, channel: &ChannelName) -> Event {
        let epoch = self.epoch();
        let stream = self.streams.entry(channel.clone()).or_default();
        stream.newest += 1;
        let offset = stream.newest;
        let payload = format!("{}:{offset}", epoch.as_str());
        let publication = Publication::build(payload.into());
        let publication = match Self::keeps(channel) {
            true => publication
                .with_position(StreamPosition { epoch, offset })
                .finish(),
            false => publication.finish(),
        };
        stream.kept.push_back(publication.clone());
        if stream.kept.len() > KEPT {
            stream.kept.pop_front();
        }
        Event::Publication {
            channel: channel.clone(),
            publication,
        }
    }

    pub(super) fn newest(&self, channel: &ChannelName) -> StreamPosition {
        StreamPosition {
            epoch: self.epoch(),
            offset: self.streams.get(channel).map_or(0, |stream| stream.newest),
        }
    }

    /// Answers like a broker: returns what follows a position, and whether that is complete.
    pub(super) fn history(&self, channel: &ChannelName, request: &HistoryRequest) -> History {
        let newest = self.newest(channel);
        let kept = self.streams.get(channel).map(|stream| &stream.kept);
        let oldest = kept.and_then(|kept| kept.front()).map(Publication::offset);
        let (since, is_contiguous) = match &request.since {
            None => (0, true),
            Some(since) if since.epoch != newest.epoch => (0, false),
            Some(since) => {
                let is_covered = oldest.is_none_or(|oldest| since.offset + 1 >= oldest);
                (since.offset, is_covered && since.offset <= newest.offset)
            }
        };
        let kept = kept.into_iter().flatten();
        let behind = kept.filter(|publication| publication.offset() > since);
        History {
            publications: behind
                .take(request.limit.unwrap_or(usize::MAX))
                .cloned()
                .collect(),
            newest,
            is_contiguous,
        }
    }

    fn epoch(&self) -> Epoch {
        Epoch::new(&self.run.to_string())
    }
}
