//! A simulated client: it records what it receives, and checks it.

use std::sync::Arc;

use linerate_hub::{ChannelName, ClientId, Epoch, Publication, StreamPosition};
use tokio::task::JoinHandle;

use super::play::Seen;
use crate::{
    node::{SubscribeError, Worker, subscribe::Subscribed, tests::Memo},
    protocol::Transmit,
};

/// A client's connection.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) worker: Arc<Worker>,
    pub(super) id: ClientId,
    pub(super) memo: Arc<Memo>,
    pub(super) joining: Option<JoinHandle<Result<Subscribed, SubscribeError>>>,
    pub(super) is_subscribed: bool,
    /// True if missed publications follow the reply instead of being part of it.
    pub(super) is_streamed: bool,
    /// True if a gap ends the subscription.
    pub(super) ends_with_gap: bool,
}

/// A client of one channel, which remembers what it has seen across its connections.
#[derive(Debug, Default)]
pub(super) struct Client {
    pub(super) channel: usize,
    /// The channel, if it has no stream. In that case the client acts like an SDK, which knows only
    /// what is published and that its subscription has ended.
    pub(super) live: Option<ChannelName>,
    pub(super) seat: Option<Seat>,
    /// The newest position that the client has seen, or the position where it begins.
    pub(super) newest: Option<StreamPosition>,
    /// What was reported as missing since then.
    pub(super) told: Option<Missing>,
}

/// The number of missing publications according to gaps.
#[derive(Clone, Copy, Debug)]
pub(super) enum Missing {
    Count(u64),
    Unknown,
}

impl Client {
    /// Handles the answer to the client's subscription if it has arrived.
    pub(super) async fn settle_joining(&mut self, seen: &mut Seen) {
        let Some(seat) = &mut self.seat else { return };
        let is_done = seat.joining.as_ref().is_some_and(JoinHandle::is_finished);
        let Some(joining) = seat.joining.take_if(|_| is_done) else {
            return;
        };
        match joining.await.expect("subscribing does not panic") {
            Ok(subscribed) => {
                seat.is_subscribed = true;
                self.begin(subscribed, seen);
            }
            // The link is cut; the client may try again.
            Err(SubscribeError::Broker(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }

    /// Forgets reported gaps, because the client asks again from its last position.
    pub(super) fn forget_gaps(&mut self) {
        self.told = None;
    }

    fn begin(&mut self, subscribed: Subscribed, seen: &mut Seen) {
        if self.live.is_some() {
            // An application is told that the subscription has begun.
            self.told = Some(Missing::Unknown);
            return;
        }
        let position = subscribed.position.expect("a position was requested");
        let is_first = self.newest.is_none();
        if !subscribed.is_recovered {
            seen.unrecovered += u64::from(!is_first);
            seen.record(&position);
            return self.begin_anew(position, &subscribed.publications, seen);
        }
        seen.recovered += 1;
        for publication in &subscribed.publications {
            let payload = std::str::from_utf8(publication.payload()).unwrap();
            self.see(payload, seen);
        }
        // What is not in the reply is streamed after it.
        let newest = self
            .newest
            .as_ref()
            .expect("a returning client has a position");
        assert_eq!(newest.epoch, position.epoch);
        assert!(newest.offset <= position.offset);
    }

    /// Handles an answer that not everything could be recovered, possibly with publications of an
    /// epoch that has replaced the old one.
    fn begin_anew(&mut self, position: StreamPosition, missed: &[Publication], seen: &mut Seen) {
        let is_streamed = self.seat.as_ref().is_some_and(|seat| seat.is_streamed);
        let is_next = self
            .newest
            .as_ref()
            .is_some_and(|newest| newest.epoch != position.epoch);
        if is_next && is_streamed {
            // The publications follow the reply.
            self.told = Some(Missing::Unknown);
            return;
        }
        assert!(is_next || missed.is_empty());
        self.newest = Some(StreamPosition {
            offset: position.offset - missed.len() as u64,
            ..position.clone()
        });
        self.told = None;
        seen.followed += missed.len() as u64;
        for publication in missed {
            self.see(std::str::from_utf8(publication.payload()).unwrap(), seen);
        }
        assert_eq!(self.newest, Some(position));
    }

    /// Reads everything received, if the subscription is active.
    pub(super) fn read(&mut self, seen: &mut Seen) {
        let Some(seat) = &mut self.seat else { return };
        if !seat.is_subscribed {
            return;
        }
        let given: Vec<Transmit> = seat.memo.given.lock().drain(..).collect();
        for transmit in given {
            match transmit {
                Transmit::Block { block, .. } => {
                    for payload in std::str::from_utf8(block.bytes()).unwrap().lines() {
                        self.see(payload, seen);
                    }
                }
                Transmit::Gap { .. } if self.live.is_some() => self.leave_if_it_ended(seen),
                Transmit::Gap { gap, .. } => {
                    seen.gaps += 1;
                    seen.record(gap.missed);
                    self.told = Some(match (self.told, gap.missed) {
                        (None, Some(missed)) => Missing::Count(missed),
                        (Some(Missing::Count(before)), Some(missed)) => {
                            Missing::Count(before + missed)
                        }
                        (_, None) | (Some(Missing::Unknown), _) => Missing::Unknown,
                    });
                }
                other => panic!("unexpected {other:?}"),
            }
        }
    }

    /// Handles a gap as a session does: if it ends the subscription, the client is told; otherwise
    /// nothing happens.
    fn leave_if_it_ended(&mut self, seen: &mut Seen) {
        if let (Some(seat), Some(channel)) = (&mut self.seat, &self.live)
            && seat.ends_with_gap
        {
            seen.ended += 1;
            seat.is_subscribed = false;
            seat.worker.unsubscribe(seat.id, channel);
        }
    }

    /// Checks a publication, whose payload is its position.
    fn see(&mut self, payload: &str, seen: &mut Seen) {
        seen.publications += 1;
        seen.record(payload);
        let (epoch, offset) = payload.split_once(':').unwrap();
        let at = StreamPosition {
            epoch: Epoch::new(epoch),
            offset: offset.parse().unwrap(),
        };
        let newest = self.newest.replace(at.clone());
        let told = self.told.take();
        let Some(newest) = newest else {
            assert!(self.live.is_some(), "a client with a stream has a position");
            return;
        };
        if newest.epoch != at.epoch {
            assert!(
                told.is_some(),
                "epoch changed without notice: {newest:?} to {at:?}"
            );
            return;
        }
        assert!(
            at.offset > newest.offset,
            "out of order: {at:?} after {newest:?}"
        );
        let missing = at.offset - newest.offset - 1;
        match told {
            None => assert_eq!(missing, 0, "{newest:?} to {at:?} without a gap"),
            Some(Missing::Count(count)) => assert_eq!(missing, count, "{newest:?} to {at:?}"),
            Some(Missing::Unknown) => {}
        }
    }
}
