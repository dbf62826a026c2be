use std::time::Duration;

use bytes::Bytes;
use linerate_hub::{ChannelName, Epoch, Publication, StreamPosition};
use tokio::time::Instant;

use super::{Sequencer, SequencerLimits};
use crate::request::{HistoryRequest, StreamOptions};

const OPTIONS: StreamOptions = StreamOptions {
    is_durable: false,
    size_max: 10,
    ttl: Duration::from_secs(60),
};

fn sequencer() -> Sequencer {
    Sequencer::new(SequencerLimits::default(), "node")
}

fn name(text: &str) -> ChannelName {
    ChannelName::new(text).unwrap()
}

fn publish(sequencer: &mut Sequencer, now: Instant, channel: &str, bytes: usize) -> Publication {
    let payload = Bytes::from(vec![b'x'; bytes]);
    sequencer.publish(now, &name(channel), OPTIONS, Publication::build(payload))
}

fn offsets(sequencer: &mut Sequencer, now: Instant, request: HistoryRequest) -> (Vec<u64>, bool) {
    let history = sequencer.history(now, "a", &request);
    let offsets = history.publications.iter().map(Publication::offset);
    (offsets.collect(), history.is_contiguous)
}

fn since(sequencer: &mut Sequencer, now: Instant, offset: u64) -> HistoryRequest {
    let newest = sequencer.history(now, "a", &HistoryRequest::default());
    let epoch = newest.newest.epoch;
    HistoryRequest {
        since: Some(StreamPosition { epoch, offset }),
        ..HistoryRequest::default()
    }
}

#[test]
fn offsets_count_up_from_one_in_one_epoch() {
    let (mut sequencer, now) = (sequencer(), Instant::now());
    let first = publish(&mut sequencer, now, "a", 1);
    let second = publish(&mut sequencer, now, "a", 1);
    let other = publish(&mut sequencer, now, "b", 1);
    assert_eq!((first.offset(), second.offset(), other.offset()), (1, 2, 1));
    let epoch = |publication: &Publication| publication.position().unwrap().epoch.clone();
    assert_eq!(epoch(&first), epoch(&second));
    assert_ne!(epoch(&first), epoch(&other));
}

#[test]
fn a_channel_that_keeps_nothing_has_no_positions() {
    let (mut sequencer, now) = (sequencer(), Instant::now());
    let options = StreamOptions {
        size_max: 0,
        ..OPTIONS
    };
    let publication = Publication::build(Bytes::from_static(b"x"));
    let publication = sequencer.publish(now, &name("a"), options, publication);
    assert_eq!(publication.position(), None);
    assert_eq!(sequencer.channels(), 0);
}

#[test]
fn history_begins_after_the_given_position() {
    let (mut sequencer, now) = (sequencer(), Instant::now());
    for _ in 0..12 {
        publish(&mut sequencer, now, "a", 1);
    }
    // The ring holds 3 to 12.
    for (offset, expected) in [
        (12, (vec![], true)),
        (10, (vec![11, 12], true)),
        (2, ((3..=12).collect(), true)),
        (1, ((3..=12).collect(), false)),
        (13, (vec![], false)),
        (u64::MAX, (vec![], false)),
    ] {
        let request = since(&mut sequencer, now, offset);
        assert_eq!(offsets(&mut sequencer, now, request), expected, "{offset}");
    }
}

#[test]
fn history_is_limited_and_reversed_as_requested() {
    let (mut sequencer, now) = (sequencer(), Instant::now());
    for _ in 0..5 {
        publish(&mut sequencer, now, "a", 1);
    }
    let mut request = since(&mut sequencer, now, 1);
    request.limit = Some(2);
    assert_eq!(
        offsets(&mut sequencer, now, request.clone()),
        (vec![2, 3], true)
    );
    request.is_reverse = true;
    assert_eq!(
        offsets(&mut sequencer, now, request.clone()),
        (vec![5, 4], true)
    );
    request.limit = Some(0);
    assert_eq!(offsets(&mut sequencer, now, request), (vec![], true));
}

#[test]
fn a_position_of_another_epoch_recovers_nothing() {
    let (mut sequencer, now) = (sequencer(), Instant::now());
    publish(&mut sequencer, now, "a", 1);
    let mut request = since(&mut sequencer, now, 0);
    sequencer.reset();
    publish(&mut sequencer, now, "a", 1);
    assert_eq!(
        offsets(&mut sequencer, now, request.clone()),
        (vec![], false)
    );
    request.since.as_mut().unwrap().epoch = Epoch::new("");
    assert_eq!(offsets(&mut sequencer, now, request), (vec![], false));
    let all = HistoryRequest::default();
    assert_eq!(offsets(&mut sequencer, now, all), (vec![1], true));
}

#[test]
fn a_reopened_channel_has_another_epoch() {
    let (mut sequencer, now) = (sequencer(), Instant::now());
    let before = publish(&mut sequencer, now, "a", 1);
    sequencer.close("a");
    let unknown = sequencer.history(now, "a", &HistoryRequest::default());
    let after = publish(&mut sequencer, now, "a", 1);
    let epoch = |publication: &Publication| publication.position().unwrap().epoch.clone();
    assert_ne!(epoch(&before), epoch(&after));
    assert_ne!(unknown.newest.epoch, epoch(&after));
    assert_eq!(sequencer.bytes(), 1);
}

#[test]
fn expired_publications_are_removed_but_the_position_is_kept() {
    let (mut sequencer, now) = (sequencer(), Instant::now());
    publish(&mut sequencer, now, "a", 1);
    publish(&mut sequencer, now + OPTIONS.ttl / 2, "a", 1);
    let later = now + OPTIONS.ttl + Duration::from_millis(1);
    let request = since(&mut sequencer, later, 0);
    assert_eq!(offsets(&mut sequencer, later, request), (vec![2], false));
    let request = since(&mut sequencer, later, 2);
    assert_eq!(offsets(&mut sequencer, later, request), (vec![], true));
}

#[test]
fn removing_history_does_not_reset_offsets() {
    let (mut sequencer, now) = (sequencer(), Instant::now());
    let before = publish(&mut sequencer, now, "a", 1);
    sequencer.remove_history("a");
    assert_eq!(sequencer.bytes(), 0);
    let request = since(&mut sequencer, now, 0);
    assert_eq!(offsets(&mut sequencer, now, request), (vec![], false));
    let after = publish(&mut sequencer, now, "a", 1);
    assert_eq!(after.offset(), 2);
    assert_eq!(
        before.position().unwrap().epoch,
        after.position().unwrap().epoch
    );
}

#[test]
fn the_bytes_of_a_channel_are_bounded() {
    let limits = SequencerLimits {
        channel_bytes_max: 100,
        ..SequencerLimits::default()
    };
    let (mut sequencer, now) = (Sequencer::new(limits, "node"), Instant::now());
    publish(&mut sequencer, now, "a", 60);
    publish(&mut sequencer, now, "a", 40);
    assert_eq!(sequencer.bytes(), 100);
    publish(&mut sequencer, now, "a", 1);
    assert_eq!(sequencer.bytes(), 41);
    publish(&mut sequencer, now, "a", 101);
    assert_eq!(sequencer.bytes(), 0);
    let request = since(&mut sequencer, now, 3);
    assert_eq!(offsets(&mut sequencer, now, request), (vec![], false));
}

#[test]
fn the_bytes_of_all_channels_are_bounded() {
    let limits = SequencerLimits {
        total_bytes_max: 1_000,
        ..SequencerLimits::default()
    };
    let (mut sequencer, now) = (Sequencer::new(limits, "node"), Instant::now());
    for number in 0..10_000 {
        publish(&mut sequencer, now, &format!("c{}", number % 37), 50);
        assert!(sequencer.bytes() <= 1_000);
    }
    assert!(sequencer.bytes() > 400);
}

#[test]
fn the_least_recently_used_channel_is_removed_unless_it_is_in_use() {
    let limits = SequencerLimits {
        channels_max: 2,
        ..SequencerLimits::default()
    };
    let (mut sequencer, now) = (Sequencer::new(limits, "node"), Instant::now());
    let at = |seconds| now + Duration::from_secs(seconds);
    sequencer.hold(at(0), &name("held"));
    publish(&mut sequencer, at(1), "a", 1);
    assert_eq!(publish(&mut sequencer, at(2), "b", 1).offset(), 1);
    assert_eq!(sequencer.channels(), 2);
    assert_eq!(publish(&mut sequencer, at(3), "held", 1).offset(), 1);
    sequencer.hold(at(4), &name("b"));
    assert_eq!(publish(&mut sequencer, at(5), "c", 1).position(), None);
}

#[test]
fn unused_channels_are_removed() {
    let (mut sequencer, now) = (sequencer(), Instant::now());
    for number in 0..100 {
        publish(&mut sequencer, now, &format!("c{number}"), 10);
    }
    let later = now + SequencerLimits::default().idle_max + Duration::from_secs(1);
    for _ in 0..100 {
        publish(&mut sequencer, later, "a", 1);
    }
    assert_eq!(sequencer.channels(), 1);
    assert_eq!(sequencer.bytes(), 10);
}
