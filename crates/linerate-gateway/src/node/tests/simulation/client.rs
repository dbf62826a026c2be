//! A client: what it was given and told, and what that must be.

use std::sync::Arc;

use linerate_hub::{ClientId, Epoch, StreamPosition, Transmit};
use tokio::task::JoinHandle;

use super::play::Seen;
use crate::node::{SubscribeError, Subscribed, Worker, tests::Memo};

/// Where a client is connected.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) worker: Arc<Worker>,
    pub(super) id: ClientId,
    pub(super) memo: Arc<Memo>,
    pub(super) joining: Option<JoinHandle<Result<Subscribed, SubscribeError>>>,
    pub(super) is_subscribed: bool,
}

/// A client of one channel, which remembers over all its connections what it has seen.
#[derive(Debug, Default)]
pub(super) struct Client {
    pub(super) channel: usize,
    pub(super) seat: Option<Seat>,
    /// The newest that it has seen, or from where it begins.
    pub(super) newest: Option<StreamPosition>,
    /// What it was told to be missing since then.
    pub(super) told: Option<Missing>,
}

/// What gaps said.
#[derive(Clone, Copy, Debug)]
pub(super) enum Missing {
    Count(u64),
    Unknown,
}

impl Client {
    /// Takes the answer to its subscription if that has come.
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
            // The link is cut; it may try again.
            Err(SubscribeError::Broker(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }

    /// Forgets what it was told, since it asks again from where it was.
    pub(super) fn forget_gaps(&mut self) {
        self.told = None;
    }

    fn begin(&mut self, subscribed: Subscribed, seen: &mut Seen) {
        let position = subscribed.position.expect("it was asked for");
        let is_first = self.newest.is_none();
        if !subscribed.is_recovered {
            assert!(subscribed.publications.is_empty());
            seen.unrecovered += u64::from(!is_first);
            self.newest = Some(position);
            self.told = None;
            return;
        }
        seen.recovered += 1;
        for publication in &subscribed.publications {
            let payload = std::str::from_utf8(publication.payload()).unwrap();
            self.see(payload, seen);
        }
        // What does not stand in the reply is streamed behind it.
        let newest = self.newest.as_ref().expect("it came back");
        assert_eq!(newest.epoch, position.epoch);
        assert!(newest.offset <= position.offset);
    }

    /// Takes what has come, if the subscription stands.
    pub(super) fn read(&mut self, seen: &mut Seen) {
        let Some(seat) = &self.seat else { return };
        if !seat.is_subscribed {
            return;
        }
        let given: Vec<Transmit> = seat.memo.given.lock().unwrap().drain(..).collect();
        for transmit in given {
            match transmit {
                Transmit::Block { bytes, .. } => {
                    for payload in std::str::from_utf8(&bytes).unwrap().lines() {
                        self.see(payload, seen);
                    }
                }
                Transmit::Gap { gap, .. } => {
                    seen.gaps += 1;
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

    /// Sees a publication, whose payload is its position.
    fn see(&mut self, payload: &str, seen: &mut Seen) {
        seen.publications += 1;
        let (epoch, offset) = payload.split_once(':').unwrap();
        let at = StreamPosition {
            epoch: Epoch::new(epoch),
            offset: offset.parse().unwrap(),
        };
        let newest = self.newest.replace(at.clone()).expect("it has begun");
        let told = self.told.take();
        if newest.epoch != at.epoch {
            assert!(told.is_some(), "another epoch, {newest:?} {at:?}, untold");
            return;
        }
        assert!(at.offset > newest.offset, "{at:?} comes behind {newest:?}");
        let missing = at.offset - newest.offset - 1;
        match told {
            None => assert_eq!(missing, 0, "{newest:?} to {at:?}, untold"),
            Some(Missing::Count(count)) => assert_eq!(missing, count, "{newest:?} to {at:?}"),
            Some(Missing::Unknown) => {}
        }
    }
}
