//! The series of the node's figures: the last hour per second and the last day per minute.

mod point;
mod rings;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum::{Json, extract::State};
use http::request::Parts;
use linerate_broker::LinkState;
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::time::{MissedTickBehavior, interval};

use super::{AdminState, Administrator, query, view};
use crate::{
    api::Refusal,
    clock::{milliseconds, now},
    node::Node,
    operations::resident_bytes,
};
use point::{Counters, Levels, Point};
use rings::{Reading, Rings};

const INTERVAL: Duration = Duration::from_secs(1);

/// The series, which the node records whether or not anyone looks at them.
#[derive(Debug)]
pub(super) struct Series(Mutex<Rings>);

/// The rates of the node in the last second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct NodeRates {
    pub(super) publications: f32,
    pub(super) publication_bytes: f32,
    pub(super) deliveries: f32,
    pub(super) delivery_bytes: f32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SeriesQuery {
    step: Step,
    /// Only points that begin then or later are returned, in milliseconds since 1970.
    #[serde(default)]
    after: u64,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Step {
    Minute,
    Second,
}

impl Series {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Rings::new()))
    }

    /// Records the figures of `node` once a second.
    pub(super) async fn run(self: Arc<Self>, node: Arc<Node>) {
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.record(&node).await;
        }
    }

    /// Records the current figures of `node`.
    pub(super) async fn record(&self, node: &Node) {
        let reading = read(node).await;
        self.0.lock().take(reading);
    }

    /// Returns the rates in the last second.
    pub(super) fn rates(&self) -> NodeRates {
        let rings = self.0.lock();
        rings
            .latest()
            .map_or_else(NodeRates::default, |point| NodeRates {
                publications: point.publications_per_s,
                publication_bytes: point.publication_bytes_per_s,
                deliveries: point.deliveries_per_s,
                delivery_bytes: point.delivery_bytes_per_s,
            })
    }

    fn points(&self, asked: &SeriesQuery) -> Vec<Point> {
        let rings = self.0.lock();
        match asked.step {
            Step::Minute => rings.minutes(asked.after),
            Step::Second => rings.seconds(asked.after),
        }
    }
}

async fn read(node: &Node) -> Reading {
    let arrived = node.dispatcher.arrived();
    let mut counters = Counters {
        publications: arrived.publications,
        publication_bytes: arrived.bytes,
        gaps: node.dispatcher.timeline.gaps().0,
        ..Counters::default()
    };
    for tally in node.tallies.all().await {
        counters.dropped += tally.totals.dropped_evicted;
        for deliveries in &tally.deliveries {
            counters.add_deliveries(deliveries);
        }
    }
    Reading {
        at: now(),
        clock_ms: milliseconds(SystemTime::now()),
        counters,
        levels: Levels {
            clients: node.counts.clients(),
            memory_bytes: node.budget.used_total(),
            resident_bytes: resident_bytes().unwrap_or(0),
            is_deaf: node.broker.link() == LinkState::Deaf,
        },
    }
}

pub(super) async fn show(
    _: Administrator,
    State(state): State<AdminState>,
    parts: Parts,
) -> Result<Json<view::Series>, Refusal> {
    let asked: SeriesQuery = query(&parts)?;
    let points = state.admin.series.points(&asked);
    Ok(Json(view::Series::new(asked.step.seconds(), &points)))
}

impl Step {
    const fn seconds(self) -> u32 {
        match self {
            Self::Minute => 60,
            Self::Second => 1,
        }
    }
}
