//! The order of a durable channel: what arrives live, and what is read from its stream where that has holes.

use std::{collections::VecDeque, mem};

use bytes::Bytes;
use linerate_hub::{Epoch, Publication, StreamPosition, publication::PublicationBuilder};

use crate::event::GapReason;

/// The most publications that wait while the stream is read. More are dropped, and read again later.
const HELD_MAX: usize = 4_096;

/// Puts what arrives live in order with what the stream holds, so that each publication is delivered once.
///
/// It knows no I/O: when it says that the stream is to be read, somebody does, and hands in what was found.
#[derive(Debug)]
pub(super) struct CatchUp {
    /// What was delivered last, or where the subscription began.
    delivered: Option<Delivered>,
    /// The newest offset that arrived live on this link.
    arrived: u64,
    is_reading: bool,
    /// What arrived live while the stream was read.
    held: VecDeque<(u64, PublicationBuilder)>,
    was_held_dropped: bool,
}

/// How far a channel was delivered.
#[derive(Clone, Debug)]
pub(super) struct Delivered {
    /// Where that is in the stream.
    pub(super) position: StreamPosition,
    /// What stands there, if it was delivered: a stream that went back in time has something else there.
    pub(super) payload: Option<Bytes>,
}

/// What a stream holds behind what was delivered.
#[derive(Debug)]
pub(super) struct Read {
    /// Its incarnation.
    pub(super) epoch: Epoch,
    /// The newest offset when it was read.
    pub(super) newest: u64,
    /// What follows on what was delivered, as far as it is still there.
    pub(super) publications: Vec<Publication>,
}

/// What is to be told to the node.
#[derive(Clone, Debug)]
pub(super) enum Item {
    Gap(GapReason),
    Publication(Publication),
}

/// Whether the stream must be read from what was delivered on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use]
pub(super) enum Next {
    Nothing,
    ReadStream,
}

impl CatchUp {
    /// Begins with a new link. The stream must be read from what was `delivered` by another one.
    pub(super) fn new(delivered: Option<Delivered>) -> Self {
        Self {
            delivered,
            arrived: 0,
            is_reading: true,
            held: VecDeque::new(),
            was_held_dropped: false,
        }
    }

    /// Takes what arrived live.
    pub(super) fn handle_live(
        &mut self,
        offset: u64,
        publication: PublicationBuilder,
        out: &mut Vec<Item>,
    ) -> Next {
        // Republished messages come once and in order: if one does not, the stream is another.
        let is_in_order = offset > self.arrived;
        self.arrived = offset;
        if self.is_reading {
            self.hold(offset, publication);
            return Next::Nothing;
        }
        if is_in_order && self.deliver(offset, publication, out).is_none() {
            return Next::Nothing;
        }
        self.is_reading = true;
        Next::ReadStream
    }

    /// Takes what the stream held, and then what arrived live meanwhile.
    pub(super) fn handle_read(&mut self, read: Read, out: &mut Vec<Item>) -> Next {
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
                out.push(Item::Gap(GapReason::StreamReset));
                self.begin_at(position);
            }
            None => self.begin_at(position),
        }
        self.deliver_held(out)
    }

    /// Takes note that something in the stream is not to be delivered.
    pub(super) fn skip(&mut self, offset: u64) {
        if let Some(delivered) = &mut self.delivered
            && delivered.position.offset < offset
        {
            delivered.position.offset = offset;
            delivered.payload = None;
        }
    }

    /// Returns how far the channel was delivered; `None` before its stream was read for the first time.
    pub(super) fn delivered(&self) -> Option<&Delivered> {
        self.delivered.as_ref()
    }

    /// Says whether the stream is to be read, or is read at the moment.
    pub(super) fn is_reading(&self) -> bool {
        self.is_reading
    }

    fn begin_at(&mut self, position: StreamPosition) {
        let payload = None;
        self.delivered = Some(Delivered { position, payload });
    }

    fn hold(&mut self, offset: u64, publication: PublicationBuilder) {
        if self.held.len() == HELD_MAX {
            self.held.pop_front();
            self.was_held_dropped = true;
        }
        self.held.push_back((offset, publication));
    }

    fn deliver_read(&mut self, read: Read, out: &mut Vec<Item>) {
        let Some(delivered) = &mut self.delivered else {
            return;
        };
        let before = delivered.position.offset;
        let first = read.publications.first().map(Publication::offset);
        if first.unwrap_or(read.newest + 1) > before + 1 {
            out.push(Item::Gap(GapReason::LinkLost));
        }
        if let Some(last) = read.publications.last() {
            delivered.payload = Some(last.payload().clone());
        } else if read.newest > before {
            delivered.payload = None;
        }
        delivered.position.offset = before.max(read.newest);
        out.extend(read.publications.into_iter().map(Item::Publication));
    }

    fn deliver_held(&mut self, out: &mut Vec<Item>) -> Next {
        let was_dropped = mem::take(&mut self.was_held_dropped);
        while let Some((offset, publication)) = self.held.pop_front() {
            if self.deliver(offset, publication, out).is_some() && was_dropped {
                self.is_reading = true;
                return Next::ReadStream;
            }
            // Otherwise it is of an incarnation that has ended: what arrived while the stream was read follows
            // on what was read, or was in it already.
        }
        Next::Nothing
    }

    /// Returns the publication if something before it is missing.
    fn deliver(
        &mut self,
        offset: u64,
        publication: PublicationBuilder,
        out: &mut Vec<Item>,
    ) -> Option<PublicationBuilder> {
        let Some(delivered) = &mut self.delivered else {
            return Some(publication);
        };
        let before = delivered.position.offset;
        if offset > before + 1 {
            return Some(publication);
        }
        if offset == before + 1 {
            delivered.position.offset = offset;
            let position = delivered.position.clone();
            let publication = publication.with_position(position).finish();
            delivered.payload = Some(publication.payload().clone());
            out.push(Item::Publication(publication));
        }
        None
    }
}

#[cfg(test)]
mod tests;
