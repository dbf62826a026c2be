use bytes::Bytes;
use linerate_hub::{Epoch, Publication, StreamPosition};

use super::{Action, CatchUp, ChannelEvent, HELD_MAX, StreamContents};
use crate::event::GapReason;

fn message(epoch: &str, offset: u64) -> Publication {
    Publication::build(Bytes::from(offset.to_string()))
        .with_position(position(epoch, offset))
        .finish()
}

fn position(epoch: &str, offset: u64) -> StreamPosition {
    let epoch = Epoch::new(epoch);
    StreamPosition { epoch, offset }
}

fn read(epoch: &str, offsets: std::ops::RangeInclusive<u64>) -> StreamContents {
    let newest = *offsets.end();
    let publications = offsets.map(|offset| message(epoch, offset)).collect();
    StreamContents {
        epoch: Epoch::new(epoch),
        newest,
        publications,
    }
}

fn nothing_new(epoch: &str, newest: u64) -> StreamContents {
    let epoch = Epoch::new(epoch);
    let publications = Vec::new();
    StreamContents {
        epoch,
        newest,
        publications,
    }
}

/// Returns a channel that was delivered up to `offset`.
fn delivered(offset: u64) -> CatchUp {
    let mut channel = CatchUp::new(None);
    let next = channel.handle_read(nothing_new("e", offset), &mut Vec::new());
    assert_eq!(next, Action::Nothing);
    channel
}

/// Returns the same channel on another link.
fn relinked(channel: &CatchUp) -> CatchUp {
    let channel = CatchUp::new(channel.delivered().cloned());
    assert!(channel.is_reading());
    channel
}

/// Returns the offsets of publications, and 0 for each gap.
fn told(out: &[ChannelEvent]) -> Vec<u64> {
    let offset = |item: &ChannelEvent| match item {
        ChannelEvent::Gap(_) => 0,
        ChannelEvent::Publication(publication) => publication.offset(),
    };
    out.iter().map(offset).collect()
}

fn is_reset(item: &ChannelEvent) -> bool {
    matches!(item, ChannelEvent::Gap(GapReason::StreamReset))
}

#[test]
fn a_subscription_begins_where_the_stream_ends() {
    let (mut channel, mut out) = (CatchUp::new(None), Vec::new());
    for offset in 4..=7 {
        assert_eq!(
            channel.handle_live(message("e", offset), &mut out),
            Action::Nothing
        );
    }
    assert!(out.is_empty());
    assert_eq!(
        channel.handle_read(nothing_new("e", 5), &mut out),
        Action::Nothing
    );
    assert_eq!(told(&out), [6, 7]);
}

#[test]
fn a_hole_is_filled_from_the_stream() {
    let (mut channel, mut out) = (delivered(2), Vec::new());
    assert_eq!(
        channel.handle_live(message("e", 3), &mut out),
        Action::Nothing
    );
    assert_eq!(
        channel.handle_live(message("e", 6), &mut out),
        Action::ReadStream
    );
    assert_eq!(
        channel.handle_live(message("e", 7), &mut out),
        Action::Nothing
    );
    assert_eq!(
        channel.handle_live(message("e", 8), &mut out),
        Action::Nothing
    );
    assert_eq!(
        channel.handle_read(read("e", 4..=7), &mut out),
        Action::Nothing
    );
    assert_eq!(told(&out), [3, 4, 5, 6, 7, 8]);
}

#[test]
fn nothing_is_lost_or_repeated_after_a_reconnection() {
    let (mut channel, mut out) = (delivered(2), Vec::new());
    channel = relinked(&channel);
    assert_eq!(
        channel.handle_live(message("e", 5), &mut out),
        Action::Nothing
    );
    assert_eq!(
        channel.handle_read(read("e", 3..=5), &mut out),
        Action::Nothing
    );
    assert_eq!(
        channel.handle_live(message("e", 6), &mut out),
        Action::Nothing
    );
    assert_eq!(told(&out), [3, 4, 5, 6]);
}

#[test]
fn a_quiet_time_without_a_link_is_not_a_gap() {
    let (mut channel, mut out) = (delivered(2), Vec::new());
    channel = relinked(&channel);
    assert_eq!(
        channel.handle_read(nothing_new("e", 2), &mut out),
        Action::Nothing
    );
    assert!(out.is_empty());
}

#[test]
fn publications_that_the_stream_no_longer_holds_are_a_gap() {
    let (mut channel, mut out) = (delivered(2), Vec::new());
    channel = relinked(&channel);
    assert_eq!(
        channel.handle_read(read("e", 7..=8), &mut out),
        Action::Nothing
    );
    assert_eq!(told(&out), [0, 7, 8]);
    // All of the history is gone.
    channel = relinked(&channel);
    assert_eq!(
        channel.handle_read(nothing_new("e", 10), &mut out),
        Action::Nothing
    );
    assert_eq!(
        channel.handle_live(message("e", 11), &mut out),
        Action::Nothing
    );
    assert_eq!(told(&out), [0, 7, 8, 0, 11]);
}

#[test]
fn another_incarnation_is_reported() {
    let (mut channel, mut out) = (delivered(9), Vec::new());
    channel = relinked(&channel);
    assert_eq!(
        channel.handle_live(message("f", 2), &mut out),
        Action::Nothing
    );
    assert_eq!(
        channel.handle_live(message("f", 3), &mut out),
        Action::Nothing
    );
    assert_eq!(
        channel.handle_read(nothing_new("f", 2), &mut out),
        Action::Nothing
    );
    assert_eq!(told(&out), [0, 3]);
    assert!(is_reset(&out[0]));
    let position = &channel.delivered().unwrap().position;
    assert_eq!((position.epoch.as_str(), position.offset), ("f", 3));
}

#[test]
fn a_stream_reset_during_a_connection_is_detected() {
    let (mut channel, mut out) = (delivered(2), Vec::new());
    assert_eq!(
        channel.handle_live(message("e", 3), &mut out),
        Action::Nothing
    );
    assert_eq!(
        channel.handle_live(message("f", 1), &mut out),
        Action::ReadStream
    );
    assert_eq!(
        channel.handle_read(nothing_new("f", 1), &mut out),
        Action::Nothing
    );
    assert_eq!(
        channel.handle_live(message("f", 2), &mut out),
        Action::Nothing
    );
    assert_eq!(told(&out), [3, 0, 2]);
}

#[test]
fn publications_of_an_ended_incarnation_are_not_awaited() {
    let (mut channel, mut out) = (delivered(9), Vec::new());
    channel = relinked(&channel);
    assert_eq!(
        channel.handle_live(message("e", 50), &mut out),
        Action::Nothing
    );
    assert_eq!(
        channel.handle_read(nothing_new("f", 0), &mut out),
        Action::ReadStream
    );
    assert_eq!(
        channel.handle_read(nothing_new("f", 0), &mut out),
        Action::Nothing
    );
    assert_eq!(
        channel.handle_live(message("f", 1), &mut out),
        Action::ReadStream
    );
    assert_eq!(
        channel.handle_read(read("f", 1..=1), &mut out),
        Action::Nothing
    );
    assert_eq!(told(&out), [0, 1]);
}

#[test]
fn publications_that_do_not_fit_during_catch_up_are_read_later() {
    let (mut channel, mut out) = (delivered(0), Vec::new());
    channel = relinked(&channel);
    let newest = HELD_MAX as u64 + 5;
    for offset in 1..=newest {
        assert_eq!(
            channel.handle_live(message("e", offset), &mut out),
            Action::Nothing
        );
    }
    assert_eq!(
        channel.handle_read(nothing_new("e", 0), &mut out),
        Action::ReadStream
    );
    assert_eq!(
        channel.handle_read(read("e", 1..=newest), &mut out),
        Action::Nothing
    );
    assert_eq!(told(&out), (1..=newest).collect::<Vec<_>>());
}

#[test]
fn skipped_publications_are_not_a_hole() {
    let (mut channel, mut out) = (delivered(2), Vec::new());
    channel.skip(3);
    assert_eq!(
        channel.handle_live(message("e", 4), &mut out),
        Action::Nothing
    );
    assert_eq!(told(&out), [4]);
}

#[test]
fn an_epoch_that_another_node_begins_is_read() {
    let (mut channel, mut out) = (delivered(2), Vec::new());
    let same = channel.handle_position(position("e", 2), &mut out);
    assert_eq!(same, Action::Nothing);
    let other = channel.handle_position(position("f", 0), &mut out);
    assert_eq!(other, Action::ReadStream);
    let next = channel.handle_read(nothing_new("f", 0), &mut out);
    assert_eq!(next, Action::Nothing);
    let next = channel.handle_live(message("f", 1), &mut out);
    assert_eq!(next, Action::Nothing);
    assert_eq!(told(&out), [0, 1]);
    assert!(is_reset(&out[0]));
}

#[test]
fn an_epoch_that_begins_during_catch_up_is_read_afterwards() {
    let (mut channel, mut out) = (delivered(2), Vec::new());
    channel = relinked(&channel);
    let next = channel.handle_position(position("f", 0), &mut out);
    assert_eq!(next, Action::Nothing);
    let next = channel.handle_read(nothing_new("e", 2), &mut out);
    assert_eq!(next, Action::ReadStream);
    assert!(out.is_empty());
}
