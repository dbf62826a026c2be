//! What is known about channels and users.

use std::{collections::BTreeSet, sync::Arc};

use futures_util::{StreamExt, TryStreamExt, stream};
use linerate_hub::ChannelName;
use serde_json::{Map, Value, json};

use super::PusherError;
use crate::{
    config::{PusherAccess, PusherKind},
    node::Node,
};

/// The maximum number of channels whose users are counted concurrently.
const AT_ONCE: usize = 16;

/// What a request wants to know about a channel.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wanted {
    subscriptions: bool,
    users: bool,
}

impl Wanted {
    /// Reads a list that is separated by commas. Unknown items are ignored.
    pub(super) fn of(list: &str) -> Self {
        let has = |name: &str| list.split(',').any(|item| item.trim() == name);
        Self {
            subscriptions: has("subscription_count"),
            users: has("user_count"),
        }
    }

    /// Returns whether nothing is wanted.
    pub(super) const fn is_empty(self) -> bool {
        !self.subscriptions && !self.users
    }
}

/// Checks the name of a channel.
pub(super) fn name(node: &Node, name: &str) -> Result<ChannelName, PusherError> {
    let channel = ChannelName::new(name)?;
    match node.broker.is_pattern(&channel) {
        true => Err(PusherError::Pattern),
        false => Ok(channel),
    }
}

/// Returns what is wanted about a channel. Other than presence channels have no users.
pub(super) async fn info(
    node: &Arc<Node>,
    channel: &ChannelName,
    wanted: Wanted,
) -> Result<Map<String, Value>, PusherError> {
    let count = match wanted.subscriptions {
        true => subscribers(node, channel).await,
        false => 0,
    };
    info_with(node, channel, wanted, count).await
}

/// Like [`info`], for a channel whose number of subscribers is known.
async fn info_with(
    node: &Arc<Node>,
    channel: &ChannelName,
    wanted: Wanted,
    subscribers: u64,
) -> Result<Map<String, Value>, PusherError> {
    let mut info = Map::new();
    if wanted.subscriptions {
        info.insert("subscription_count".to_owned(), subscribers.into());
    }
    if wanted.users && has_users(channel.as_str()) {
        let counts = node.all_nodes.presence_stats(channel).await?;
        info.insert("user_count".to_owned(), counts.users.into());
    }
    Ok(info)
}

/// Lists the channels with subscribers.
pub(super) async fn list(node: &Arc<Node>, query: &str) -> Result<Value, PusherError> {
    let mut prefix = String::new();
    let mut wanted = Wanted::default();
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "filter_by_prefix" => prefix = value.into_owned(),
            "info" => wanted = Wanted::of(&value),
            _ => {}
        }
    }
    if wanted.users && !has_users(&prefix) {
        return Err(PusherError::NoPresence);
    }
    let pattern = match prefix.as_str() {
        "" => String::new(),
        prefix => format!("{prefix}*"),
    };
    let channels = node.all_nodes.channels(&pattern).await.into_iter();
    let channels = channels.filter_map(|(channel, count)| {
        let channel = name(node, &channel).ok()?;
        channel
            .as_str()
            .starts_with(&prefix)
            .then_some((channel, count))
    });
    let infos = stream::iter(channels).map(|(channel, count)| async move {
        let info = info_with(node, &channel, wanted, count).await?;
        Ok::<_, PusherError>((channel.to_string(), Value::from(info)))
    });
    let infos: Map<String, Value> = infos.buffered(AT_ONCE).try_collect().await?;
    Ok(json!({ "channels": infos }))
}

/// Describes a channel.
pub(super) async fn one(
    node: &Arc<Node>,
    channel: &str,
    query: &str,
) -> Result<Value, PusherError> {
    let channel = name(node, channel)?;
    let parameters = url::form_urlencoded::parse(query.as_bytes());
    let mut parameters = parameters.filter(|(name, _)| name == "info");
    let wanted = parameters
        .next()
        .map_or_else(Wanted::default, |(_, list)| Wanted::of(&list));
    if wanted.users && !has_users(channel.as_str()) {
        return Err(PusherError::NoPresence);
    }
    let count = subscribers(node, &channel).await;
    let mut info = info_with(node, &channel, wanted, count).await?;
    info.insert("occupied".to_owned(), (count > 0).into());
    Ok(info.into())
}

/// Lists the users in a presence channel.
pub(super) async fn users(node: &Arc<Node>, channel: &str) -> Result<Value, PusherError> {
    let channel = name(node, channel)?;
    if !has_users(channel.as_str()) {
        return Err(PusherError::NoPresence);
    }
    let clients = node.all_nodes.presence(&channel).await?;
    let users = clients.iter().map(|client| &*client.user);
    let users: BTreeSet<&str> = users.filter(|user| !user.is_empty()).collect();
    let users: Vec<Value> = users
        .into_iter()
        .map(|user| json!({ "id": user }))
        .collect();
    Ok(json!({ "users": users }))
}

async fn subscribers(node: &Node, channel: &ChannelName) -> u64 {
    let channels = node.all_nodes.channels(channel.as_str()).await.into_iter();
    channels
        .filter(|(name, _)| name == channel.as_str())
        .map(|(_, count)| count)
        .sum()
}

fn has_users(channel: &str) -> bool {
    PusherKind::of(channel).access == PusherAccess::Presence
}
