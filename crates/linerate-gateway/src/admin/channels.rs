//! The channels with subscribers on this node.

use std::{cmp::Reverse, collections::HashMap};

use axum::{Json, extract::State};
use http::request::Parts;
use linerate_hub::ChannelName;
use serde::Deserialize;
use tokio::time::Instant;

use crate::api::Refusal;

use super::{Admin, AdminState, Administrator, bad_request, query, view};

/// Maximum number of channels in a reply.
const LIMIT_MAX: usize = 1_000;

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ChannelQuery {
    sort: Sort,
    limit: usize,
    contains: String,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Sort {
    Bytes,
    Rate,
    Subscribers,
}

impl Default for ChannelQuery {
    fn default() -> Self {
        Self {
            sort: Sort::Rate,
            limit: 50,
            contains: String::new(),
        }
    }
}

pub(super) async fn list(
    _: Administrator,
    State(state): State<AdminState>,
    parts: Parts,
) -> Result<Json<view::Channels>, Refusal> {
    let asked: ChannelQuery = query(&parts)?;
    if asked.limit > LIMIT_MAX {
        let limit = asked.limit;
        let message = format!("limit is {limit}; at most {LIMIT_MAX} is allowed");
        return Err(bad_request(message));
    }
    let admin = state.admin.clone();
    // This runs on another thread than the worker's, because there can be very many channels.
    let listing = state
        .admin
        .node
        .spawn_task(async move { admin.channels(&asked).await });
    let channels = listing
        .await
        .map_err(|_| bad_request("node is shutting down"))?;
    Ok(Json(channels))
}

impl Admin {
    async fn channels(&self, asked: &ChannelQuery) -> view::Channels {
        self.rates.refresh(&self.node, Instant::now());
        let subscribers = self.subscribers().await;
        let traffic = self.node.dispatcher.routes.traffic();
        let matching = traffic.into_iter();
        let matching = matching.filter(|(name, _)| name.as_str().contains(&asked.contains));
        let mut channels: Vec<_> = matching
            .map(|(channel, traffic)| {
                let rates = self.rates.channel(&channel);
                view::Channel {
                    subscribers: subscribers.get(&channel).copied().unwrap_or(0),
                    channel: channel.to_string(),
                    publications: traffic.publications,
                    bytes: traffic.bytes,
                    publications_per_s: rates.publications,
                    bytes_per_s: rates.bytes,
                }
            })
            .collect();
        let total = channels.len();
        channels.sort_by(|a, b| asked.sort.compare(a, b));
        channels.truncate(asked.limit);
        view::Channels { total, channels }
    }

    async fn subscribers(&self) -> HashMap<ChannelName, u64> {
        let mut subscribers = HashMap::new();
        for (channel, count) in self.node.responder.subscribers(String::new()).await {
            *subscribers.entry(channel).or_insert(0) += count;
        }
        subscribers
    }
}

impl Sort {
    /// Orders larger values first, and equal ones by name.
    fn compare(self, a: &view::Channel, b: &view::Channel) -> std::cmp::Ordering {
        let order = match self {
            Self::Bytes => b.bytes_per_s.total_cmp(&a.bytes_per_s),
            Self::Rate => b.publications_per_s.total_cmp(&a.publications_per_s),
            Self::Subscribers => Reverse(a.subscribers).cmp(&Reverse(b.subscribers)),
        };
        order.then_with(|| a.channel.cmp(&b.channel))
    }
}
