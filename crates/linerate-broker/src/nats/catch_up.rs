//! Restores the order of a durable channel: from live messages, and from its stream where those
//! have holes.

use std::collections::VecDeque;

use bytes::Bytes;
use linerate_hub::{Epoch, Publication, StreamPosition};

use crate::event::GapReason;

/// The maximum number of publications that wait while the stream is read. Beyond it, the oldest are
/// dropped and read again later.
const HELD_MAX: usize = 4_096;

/// Merges live messages with the contents of the stream, so that each publication is delivered once
/// and in order.
///
/// It performs no I/O: when it returns [`Action::ReadStream`], the caller reads the stream and
/// passes the result to [`handle_read`](Self::handle_read).
#[derive(Debug)]
pub(super) struct CatchUp {
    /// The position delivered last, or where the subscription began.
    delivered: Option<Progress>,
    /// The newest offset that arrived live on this link.
    arrived: u64,
    is_reading: bool,
    /// What arrived live while the stream was read.
    held: VecDeque<Live>,
}

/// How far a channel has been delivered.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    /// The position in the stream.
    pub(super) position: StreamPosition,
    /// The payload at that position, if it was delivered. A stream that went back in time has a
    /// different one there.
    pub(super) payload: Option<Bytes>,
}

/// A position that arrived live, and its publication. Messages without one begin an epoch, or
/// repeat a position.
type Live = (StreamPosition, Option<Publication>);

/// What is stored for a channel after the delivered position.
#[derive(Debug)]
pub(super) struct StreamContents {
    /// The epoch of the channel.
    pub(super) epoch: Epoch,
    /// The newest offset at the time of reading.
    pub(super) newest: u64,
    /// The publications after the delivered position that the stream still holds.
    pub(super) publications: Vec<Publication>,
}

/// Something to report to the node.
#[derive(Clone, Debug)]
pub(super) enum ChannelEvent {
    Gap(GapReason),
    Publication(Publication),
}

/// What the caller must do next: nothing, or read the stream from the delivered position on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use]
pub(super) enum Action {
    Nothing,
    ReadStream,
}

impl CatchUp {
    /// Starts on a new link. The stream must be read from the position that the previous link has
    /// `delivered`.
    pub(super) fn new(delivered: Option<Progress>) -> Self {
        Self {
            delivered,
            arrived: 0,
            is_reading: true,
            held: VecDeque::new(),
        }
    }

    /// Handles a publication that arrived live.
    pub(super) fn handle_live(
        &mut self,
        publication: Publication,
        out: &mut Vec<ChannelEvent>,
    ) -> Action {
        let Some(position) = publication.position().cloned() else {
            return Action::Nothing;
        };
        // Republished messages arrive once and in order. If one does not, the channel went back in
        // time, or has moved to another stream.
        let is_in_order = position.offset > self.arrived;
        self.arrived = position.offset;
        self.handle((position, Some(publication)), is_in_order, out)
    }

    /// Handles a position without a publication that arrived live.
    pub(super) fn handle_position(
        &mut self,
        position: StreamPosition,
        out: &mut Vec<ChannelEvent>,
    ) -> Action {
        self.handle((position, None), true, out)
    }

    fn handle(&mut self, live: Live, is_in_order: bool, out: &mut Vec<ChannelEvent>) -> Action {
        if self.is_reading {
            self.hold(live);
            return Action::Nothing;
        }
        if is_in_order && self.deliver(live, out) {
            return Action::Nothing;
        }
        self.is_reading = true;
        Action::ReadStream
    }

    /// Handles the contents of the stream, and then the publications that arrived live in the
    /// meantime.
    pub(super) fn handle_read(
        &mut self,
        read: StreamContents,
        out: &mut Vec<ChannelEvent>,
    ) -> Action {
        self.is_reading = false;
        let position = StreamPosition {
            epoch: read.epoch.clone(),
            offset: read.newest,
        };
        let before = self.delivered.take();
        match before {
            Some(before) if before.position.epoch == read.epoch => {
                self.delivered = Some(before);
                self.deliver_read(read, out);
            }
            Some(_) => {
                out.push(ChannelEvent::Gap(GapReason::StreamReset));
                self.begin_at(position);
            }
            None => self.begin_at(position),
        }
        self.deliver_held(out)
    }

    /// Records that a message in the stream is not to be delivered.
    pub(super) fn skip(&mut self, offset: u64) {
        if let Some(delivered) = &mut self.delivered
            && delivered.position.offset < offset
        {
            delivered.position.offset = offset;
            delivered.payload = None;
        }
    }

    /// Returns how far the channel has been delivered, or `None` before its stream was read for the
    /// first time.
    pub(super) fn delivered(&self) -> Option<&Progress> {
        self.delivered.as_ref()
    }

    /// Returns whether the stream must be read, or is being read.
    pub(super) fn is_reading(&self) -> bool {
        self.is_reading
    }

    fn begin_at(&mut self, position: StreamPosition) {
        let payload = None;
        self.delivered = Some(Progress { position, payload });
    }

    fn hold(&mut self, live: Live) {
        if self.held.len() == HELD_MAX {
            self.held.pop_front();
        }
        self.held.push_back(live);
    }

    fn deliver_read(&mut self, read: StreamContents, out: &mut Vec<ChannelEvent>) {
        let Some(delivered) = &mut self.delivered else {
            return;
        };
        let before = delivered.position.offset;
        let first = read.publications.first().map(Publication::offset);
        if first.unwrap_or(read.newest + 1) > before + 1 {
            out.push(ChannelEvent::Gap(GapReason::LinkLost));
        }
        if let Some(last) = read.publications.last() {
            delivered.payload = Some(last.payload().clone());
        } else if read.newest > before {
            delivered.payload = None;
        }
        delivered.position.offset = before.max(read.newest);
        out.extend(read.publications.into_iter().map(ChannelEvent::Publication));
    }

    fn deliver_held(&mut self, out: &mut Vec<ChannelEvent>) -> Action {
        // What cannot be delivered belongs to an epoch that has ended, or to a newer one than was
        // read, or follows what was dropped. Reading once more shows it.
        while let Some(live) = self.held.pop_front() {
            self.is_reading |= !self.deliver(live, out);
        }
        match self.is_reading {
            true => Action::ReadStream,
            false => Action::Nothing,
        }
    }

    /// Delivers a publication. Returns false if an earlier one is missing, or if its epoch is not
    /// the one that was read last.
    fn deliver(&mut self, (position, publication): Live, out: &mut Vec<ChannelEvent>) -> bool {
        let Some(delivered) = &mut self.delivered else {
            return false;
        };
        if position.epoch != delivered.position.epoch {
            return false;
        }
        let Some(publication) = publication else {
            return true;
        };
        let (offset, next) = (position.offset, delivered.position.offset + 1);
        if offset == next {
            let payload = Some(publication.payload().clone());
            *delivered = Progress { position, payload };
            out.push(ChannelEvent::Publication(publication));
        }
        offset <= next
    }
}

#[cfg(test)]
mod tests;
