//! The state and recent history of the link to the broker.

use std::time::Duration;

use axum::{Json, extract::State};
use linerate_broker::{self as broker, GapReason};

use super::{AdminState, Administrator, view};
use crate::{
    clock::milliseconds,
    node::{Change, Entry},
};

pub(super) async fn show(
    _: Administrator,
    State(state): State<AdminState>,
) -> Json<view::BrokerLink> {
    let node = &state.admin.node;
    let timeline = &node.dispatcher.timeline;
    let (gaps, gap_time) = timeline.gaps();
    let link = node.broker.link();
    let round_trip = match link {
        broker::LinkState::Up { round_trip } => Some(round_trip.as_secs_f64() * 1_000.0),
        broker::LinkState::Deaf => None,
    };
    Json(view::BrokerLink {
        broker: node.broker.name().to_owned(),
        link: link.into(),
        round_trip_ms: round_trip,
        gaps,
        gap_time_ms: whole_ms(gap_time),
        timeline: timeline
            .entries()
            .iter()
            .rev()
            .map(view::Change::from)
            .collect(),
    })
}

impl From<broker::LinkState> for view::LinkState {
    fn from(state: broker::LinkState) -> Self {
        match state {
            broker::LinkState::Deaf => Self::Deaf,
            broker::LinkState::Up { .. } => Self::Up,
        }
    }
}

impl From<&Entry> for view::Change {
    fn from(entry: &Entry) -> Self {
        let change = match entry.change {
            Change::Deaf => view::ChangeKind::Deaf,
            Change::Gap {
                reason,
                lasted,
                channels,
            } => view::ChangeKind::Gap {
                reason: reason_name(reason),
                lasted_ms: whole_ms(lasted),
                channels,
            },
            Change::Up => view::ChangeKind::Up,
        };
        Self {
            at_ms: milliseconds(entry.at),
            change,
        }
    }
}

fn reason_name(reason: GapReason) -> &'static str {
    match reason {
        GapReason::LinkLost => "link_lost",
        GapReason::Overflow => "overflow",
        GapReason::Oversized => "oversized",
        GapReason::Source => "source",
        GapReason::StreamReset => "stream_reset",
        _ => "other",
    }
}

fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
