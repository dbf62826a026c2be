//! The methods of the server API.

use std::{collections::BTreeMap, sync::Arc, time::SystemTime};

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use linerate_broker::{self as broker, HistoryRequest};
use linerate_hub::{ChannelName, Epoch, StreamPosition};
use serde::de::DeserializeOwned;

use super::{
    reply::{
        ApiError, ClientReply, NodeReply, Outcome, PublicationReply, Reply, RevocationReply,
        Subscribers,
    },
    request,
};
use crate::{
    auth::{Revocation, Target},
    node::{ConnectionSelector, Node, Trail, seconds_now},
    producer::Author,
    protocol::codes::{Disconnect, Unsubscribe},
};

/// Maximum number of channels in a broadcast.
const CHANNELS_MAX: usize = 10_000;

/// Maximum number of commands in a batch.
const COMMANDS_MAX: usize = 1_000;

/// Maximum number of concurrent publications of a broadcast, or of concurrent commands of a
/// parallel batch.
const AT_ONCE: usize = 64;

/// Maximum number of publications in a reply.
const PUBLICATIONS_MAX: usize = 10_000;

type Answer = Result<Outcome, ApiError>;

/// Executes `method` with the parameters in `body`; returns `None` if the method is unknown.
pub(super) async fn perform(node: &Arc<Node>, method: &str, body: &[u8]) -> Option<Answer> {
    Some(match method {
        "broadcast" => with(body, |request| broadcast(node, request)).await,
        "channels" => with(body, |request| channels(node, request)).await,
        "disconnect" => with(body, |request| disconnect(node, request)).await,
        "history" => with(body, |request| history(node, request)).await,
        "history_remove" => with(body, |request| history_remove(node, request)).await,
        "info" => info(node).await,
        "invalidate_tokens" => with(body, |request| invalidate_tokens(node, request)).await,
        "invalidate_user_tokens" => {
            with(body, |request| invalidate_user_tokens(node, request)).await
        }
        "presence" => with(body, |request| presence(node, request)).await,
        "presence_stats" => with(body, |request| presence_stats(node, request)).await,
        "publish" => with(body, |request| publish(node, request)).await,
        "refresh" => with(body, |request| refresh(node, request)).await,
        "revocations" => Ok(revocations(node)),
        "revoke_token" => with(body, |request| revoke_token(node, request)).await,
        "subscribe" => with(body, |request| subscribe(node, request)).await,
        "unsubscribe" => with(body, |request| unsubscribe(node, request)).await,
        _ => return None,
    })
}

/// Executes the commands of a batch. Each reply has the name of its command as its key.
pub(super) async fn batch(
    node: &Arc<Node>,
    batch: request::Batch,
) -> Result<Vec<BTreeMap<String, serde_json::Value>>, ApiError> {
    let count = batch.commands.len();
    if count > COMMANDS_MAX {
        let message = format!("batch has {count} commands; at most {COMMANDS_MAX} are allowed");
        return Err(ApiError::bad_request(message));
    }
    let at_once = if batch.parallel { AT_ONCE } else { 1 };
    let replies = stream::iter(batch.commands)
        .map(|command| perform_command(node, command))
        .buffered(at_once);
    Ok(replies.collect().await)
}

async fn perform_command(
    node: &Arc<Node>,
    command: BTreeMap<String, Box<serde_json::value::RawValue>>,
) -> BTreeMap<String, serde_json::Value> {
    let (name, answer) = match command.into_iter().next() {
        None => (String::new(), None),
        Some((name, body)) => {
            let answer = Box::pin(perform(node, &name, body.get().as_bytes())).await;
            (name, answer)
        }
    };
    let unknown = || Err(ApiError::bad_request("unknown command"));
    let (key, value) = match answer.unwrap_or_else(unknown) {
        Ok(outcome) => (name, serde_json::to_value(outcome)),
        Err(error) => ("error".to_owned(), serde_json::to_value(error)),
    };
    BTreeMap::from([(key, value.unwrap_or_default())])
}

/// Parses a body and passes the request to `go_on`.
async fn with<R, F>(body: &[u8], go_on: impl FnOnce(R) -> F) -> Answer
where
    R: DeserializeOwned,
    F: Future<Output = Answer>,
{
    match serde_json::from_slice(body) {
        Ok(request) => go_on(request).await,
        Err(error) => Err(ApiError::malformed(&error)),
    }
}

async fn publish(node: &Arc<Node>, request: request::Publish) -> Answer {
    let channel = ChannelName::new(&request.channel)?;
    if node.broker.is_pattern(&channel) {
        return Err(ApiError::bad_request("cannot publish to a pattern"));
    }
    if request.version > 0 {
        return Err(ApiError::not_available(
            "versions of publications are not supported",
        ));
    }
    let payload = payload(request.data.as_deref(), &request.b64data)?;
    let mut options = node.namespaces.current().options(&channel).stream();
    if request.skip_history {
        options.size_max = 0;
    }
    let key = request.idempotency_key;
    let publish = broker::Publish {
        payload,
        info: None,
        tags: request.tags.into_iter().collect(),
        idempotency_key: (!key.is_empty()).then_some(key),
        options,
    };
    let published = node.publish(&channel, publish, Author::Application).await?;
    Ok(published.into())
}

async fn broadcast(node: &Arc<Node>, request: request::Broadcast) -> Answer {
    let count = request.channels.len();
    if count == 0 || count > CHANNELS_MAX {
        let message = format!("broadcast has {count} channels; 1 to {CHANNELS_MAX} are allowed");
        return Err(ApiError::bad_request(message));
    }
    let (channels, request) = (request.channels.clone(), &request);
    let responses = stream::iter(channels)
        .map(|channel| async move { Reply::from(publish(node, request.publish(channel)).await) })
        .buffered(AT_ONCE);
    let responses = responses.collect().await;
    Ok(Outcome::Broadcast { responses })
}

async fn presence(node: &Arc<Node>, request: request::Channel) -> Answer {
    let channel = present(node, &request.channel)?;
    let people = node.all_nodes.presence(&channel).await?;
    let people = people.iter();
    let presence = people.map(|info| (info.client.to_string(), ClientReply::from(info)));
    Ok(Outcome::Presence {
        presence: presence.collect(),
    })
}

async fn presence_stats(node: &Arc<Node>, request: request::Channel) -> Answer {
    let channel = present(node, &request.channel)?;
    let stats = node.all_nodes.presence_stats(&channel).await?;
    Ok(Outcome::PresenceStats {
        num_clients: stats.clients as u64,
        num_users: stats.users as u64,
    })
}

async fn history(node: &Arc<Node>, request: request::History) -> Answer {
    let channel = ChannelName::new(&request.channel)?;
    let stream = node.namespaces.current().options(&channel).stream();
    let limit = usize::try_from(request.limit).unwrap_or(PUBLICATIONS_MAX);
    let since = request.since.map(|since| {
        let epoch = Epoch::new(&since.epoch);
        let offset = since.offset;
        Trail::split(&StreamPosition { epoch, offset }).0
    });
    let asked = HistoryRequest {
        since: since.clone(),
        limit: Some(limit.min(PUBLICATIONS_MAX)),
        is_reverse: request.reverse,
    };
    let history = node.histories.read(&channel, stream, asked).await?;
    if since.is_some_and(|since| since.epoch != history.newest.epoch) {
        return Err(ApiError::unrecoverable("epoch has changed"));
    }
    Ok(Outcome::History {
        publications: history
            .publications
            .iter()
            .map(PublicationReply::from)
            .collect(),
        offset: history.newest.offset,
        epoch: history.newest.epoch.to_string(),
    })
}

async fn history_remove(node: &Arc<Node>, request: request::Channel) -> Answer {
    let channel = ChannelName::new(&request.channel)?;
    let stream = node.namespaces.current().options(&channel).stream();
    node.broker.remove_history(&channel, stream).await?;
    Ok(Outcome::Empty {})
}

async fn channels(node: &Arc<Node>, request: request::Channels) -> Answer {
    let channels = node.all_nodes.channels(&request.pattern).await;
    let channels = channels.into_iter();
    let channels = channels.map(|(channel, num_clients)| (channel, Subscribers { num_clients }));
    Ok(Outcome::Channels {
        channels: channels.collect(),
    })
}

async fn info(node: &Arc<Node>) -> Answer {
    let nodes = node.cluster.nodes().await;
    Ok(Outcome::Info {
        nodes: nodes.into_iter().map(NodeReply::from).collect(),
    })
}

async fn disconnect(node: &Arc<Node>, request: request::Disconnect) -> Answer {
    let why = match request.disconnect {
        None => Disconnect::FORCE_NO_RECONNECT,
        Some(given) if (3_000..5_000).contains(&given.code) => Disconnect {
            code: given.code,
            reason: "".into(),
        }
        .with_reason(given.reason),
        Some(given) => {
            let code = given.code;
            let message = format!("disconnect code is {code}; 3000 to 4999 are allowed");
            return Err(ApiError::bad_request(message));
        }
    };
    let whom = whom(request.whom, request.whitelist)?;
    node.all_nodes.disconnect(whom, why).await;
    Ok(Outcome::Empty {})
}

async fn unsubscribe(node: &Arc<Node>, request: request::Unsubscribe) -> Answer {
    // Without a channel, all subscriptions end.
    let channel = match request.channel.as_str() {
        "" => None,
        name => Some(ChannelName::new(name)?),
    };
    let whom = whom(request.whom, Vec::new())?;
    node.all_nodes
        .unsubscribe(whom, channel.as_ref(), Unsubscribe::SERVER)
        .await;
    Ok(Outcome::Empty {})
}

async fn subscribe(node: &Arc<Node>, request: request::Subscribe) -> Answer {
    let channel = ChannelName::new(&request.channel)?;
    let asked = request::ConnectionSelector {
        user: request.user,
        client: request.client,
    };
    let whom = whom(asked, Vec::new())?;
    let info = request.info.map(|info| info.get().to_owned());
    node.all_nodes.subscribe(whom, &channel, info).await;
    Ok(Outcome::Empty {})
}

async fn refresh(node: &Arc<Node>, request: request::Refresh) -> Answer {
    let whom = whom(request.whom, Vec::new())?;
    let expires = match request.expire_at {
        0 => None,
        seconds => {
            let after = std::time::Duration::from_secs(seconds);
            let expires = SystemTime::UNIX_EPOCH.checked_add(after);
            Some(expires.ok_or_else(|| ApiError::bad_request("expire_at is out of range"))?)
        }
    };
    node.all_nodes.refresh(whom, expires, request.expired).await;
    Ok(Outcome::Empty {})
}

async fn revoke_token(node: &Arc<Node>, request: request::RevokeToken) -> Answer {
    let target = Target::Token(request.uid);
    revoke(node, target, 0, request.expire_at).await
}

async fn invalidate_user_tokens(node: &Arc<Node>, request: request::InvalidateTokens) -> Answer {
    let target = Target::User(request.user);
    revoke(node, target, request.issued_before, request.expire_at).await
}

async fn invalidate_tokens(node: &Arc<Node>, request: request::InvalidateTokens) -> Answer {
    if !request.user.is_empty() {
        let message =
            "invalidate_tokens applies to all users; use invalidate_user_tokens for one user";
        return Err(ApiError::bad_request(message));
    }
    revoke(node, Target::All, request.issued_before, request.expire_at).await
}

/// Revokes tokens. An `expire_at` of 0 means never; an `issued_before` of 0 means all tokens issued
/// up to now.
async fn revoke(node: &Arc<Node>, target: Target, issued_before: u64, expire_at: u64) -> Answer {
    let now = seconds_now();
    if (1..=now).contains(&expire_at) {
        return Err(ApiError::bad_request(format!(
            "expire_at is {expire_at}, which is in the past; the current time is {now}"
        )));
    }
    let issued_before = match issued_before {
        0 => now + 1,
        before => before,
    };
    let expires_at = (expire_at > 0).then_some(expire_at);
    let revocation = Revocation::new(target, issued_before, expires_at);
    node.revocations.revoke(revocation).await?;
    Ok(Outcome::Empty {})
}

fn revocations(node: &Arc<Node>) -> Outcome {
    let all = node.revocations.in_force().list(seconds_now()).into_iter();
    Outcome::Revocations {
        revocations: all.map(RevocationReply::from).collect(),
    }
}

/// Parses the name of a channel that tracks presence.
fn present(node: &Node, channel: &str) -> Result<ChannelName, ApiError> {
    let channel = ChannelName::new(channel)?;
    match node.namespaces.current().options(&channel).presence {
        true => Ok(channel),
        false => Err(ApiError::not_available(
            "presence is not enabled for this channel",
        )),
    }
}

fn whom(
    asked: request::ConnectionSelector,
    except: Vec<String>,
) -> Result<ConnectionSelector, ApiError> {
    if asked.user.is_empty() && asked.client.is_empty() {
        return Err(ApiError::bad_request("user or client is required"));
    }
    Ok(ConnectionSelector {
        user: asked.user,
        client: asked.client,
        except,
    })
}

fn payload(data: Option<&serde_json::value::RawValue>, b64data: &str) -> Result<Bytes, ApiError> {
    match data {
        _ if !b64data.is_empty() => match BASE64_STANDARD.decode(b64data) {
            Ok(data) => Ok(data.into()),
            Err(_) => Err(ApiError::bad_request("b64data is not valid base64")),
        },
        Some(data) => Ok(data.get().to_owned().into()),
        None => Err(ApiError::bad_request("data is missing")),
    }
}
