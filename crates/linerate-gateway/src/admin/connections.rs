//! The clients of this node, by default those with the largest lag first.

use std::time::Instant;

use axum::{Json, extract::State};
use http::request::Parts;
use linerate_hub::ClientId;
use serde::Deserialize;

use super::{AdminState, Administrator, bad_request, query, view};
use crate::{api::Refusal, node::Shard};

/// Maximum number of clients in a reply.
const LIMIT_MAX: usize = 1_000;

/// Maximum number of channels listed for a client.
const CHANNELS_MAX: usize = 32;

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ConnectionQuery {
    sort: Sort,
    limit: usize,
    user: Option<String>,
    channel: Option<String>,
    client: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Sort {
    Age,
    Lag,
    Pending,
}

impl Default for ConnectionQuery {
    fn default() -> Self {
        Self {
            sort: Sort::Lag,
            limit: 50,
            user: None,
            channel: None,
            client: None,
        }
    }
}

pub(super) async fn list(
    _: Administrator,
    State(state): State<AdminState>,
    parts: Parts,
) -> Result<Json<view::Connections>, Refusal> {
    let asked: ConnectionQuery = query(&parts)?;
    if asked.limit > LIMIT_MAX {
        let limit = asked.limit;
        let message = format!("limit is {limit}; at most {LIMIT_MAX} is allowed");
        return Err(bad_request(message));
    }
    let (sort, limit) = (asked.sort, asked.limit);
    let node = &state.admin.node;
    let found = node
        .inboxes
        .run(move |shard| connections(shard, &asked))
        .await;
    let total = found.iter().map(|found| found.total).sum();
    let found = found.into_iter().flat_map(|found| found.connections);
    let mut connections: Vec<_> = found.collect();
    connections.sort_by_key(|connection| std::cmp::Reverse(sort.key_of(connection)));
    connections.truncate(limit);
    Ok(Json(view::Connections { total, connections }))
}

fn connections(shard: &Shard, asked: &ConnectionQuery) -> view::Connections {
    let now = Instant::now();
    let is_asked_for = |text: &Option<String>, is: &str| text.as_deref().is_none_or(|t| t == is);
    let mut found: Vec<(u64, ClientId)> = Vec::new();
    for (id, client) in shard.clients.iter() {
        let connection = &client.connection;
        let channel = asked.channel.as_deref();
        if is_asked_for(&asked.user, connection.user())
            && is_asked_for(&asked.client, connection.client())
            && channel.is_none_or(|channel| client.channels.contains_key(channel))
        {
            let lag = shard.hub.lag(now, id).unwrap_or_default();
            let key = match asked.sort {
                Sort::Age => u64::MAX - connection.since_ms,
                Sort::Lag => lag.oldest.map_or(0, |oldest| oldest.as_millis() as u64),
                Sort::Pending => lag.bytes + client.outlet.pending_bytes() as u64,
            };
            found.push((key, id));
        }
    }
    let total = found.len();
    found.sort_unstable_by_key(|(key, _)| std::cmp::Reverse(*key));
    found.truncate(asked.limit);
    let shown = found
        .into_iter()
        .filter_map(|(_, id)| connection(shard, now, id));
    view::Connections {
        total,
        connections: shown.collect(),
    }
}

fn connection(shard: &Shard, now: Instant, id: ClientId) -> Option<view::Connection> {
    let client = shard.clients.get(&id)?;
    let lag = shard.hub.lag(now, id).unwrap_or_default();
    let connection = &client.connection;
    let (protocol, transport) = *connection.dialect;
    let channels = client.channels.keys().take(CHANNELS_MAX);
    Some(view::Connection {
        client: connection.client().to_owned(),
        user: connection.user().to_owned(),
        protocol: protocol.to_owned(),
        transport: transport.to_owned(),
        peer: connection.peer.map(|peer| peer.to_string()),
        agent: connection.agent.to_string(),
        connected_at_ms: connection.since_ms,
        lag_ms: lag.oldest.map_or(0, |oldest| oldest.as_millis() as u64),
        pending_bytes: lag.bytes + client.outlet.pending_bytes() as u64,
        channels: channels.map(ToString::to_string).collect(),
        subscriptions: client.channels.len(),
        worker: shard.index,
    })
}

impl Sort {
    fn key_of(self, connection: &view::Connection) -> u64 {
        match self {
            Self::Age => u64::MAX - connection.connected_at_ms,
            Self::Lag => connection.lag_ms,
            Self::Pending => connection.pending_bytes,
        }
    }
}
