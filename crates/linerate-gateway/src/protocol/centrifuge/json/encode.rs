//! Encodes replies and pushes as JSON.

use std::{io::Write, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use linerate_hub::{Batch, ClientInfo, Payloads, Publication, Unencodable};

use super::write::{Object, scalar};
use crate::protocol::{
    centrifuge::compact_id,
    codes::{ClientError, Unsubscribe},
    reply::{
        Answer, Connected, HistoryPage, Push, Reply, ServerMessage, Subscribed, whole_seconds,
    },
};

/// How to handle a payload that is not JSON.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::protocol) enum Binary {
    /// Write it as `b64data`.
    Base64,
    /// Return [`Unencodable`].
    Refuse,
}

/// How the payload of a publication is written.
#[derive(Clone, Copy, Debug)]
enum Data<'a> {
    /// As a string with the delta, or with the payload if there is none. Once deltas are agreed on,
    /// clients parse all payloads themselves.
    Text(Option<&'a Bytes>),
    /// As a value.
    Value(Binary),
}

impl<'a> Data<'a> {
    const fn of(payloads: Payloads<'_>, delta: Option<&'a Bytes>, binary: Binary) -> Self {
        match payloads {
            Payloads::Deltas { .. } => Self::Text(delta),
            Payloads::Full => Self::Value(binary),
        }
    }
}

type Result = std::result::Result<(), Unencodable>;

/// Appends `message` as a JSON object, without a line end.
pub(in crate::protocol) fn message(
    message: &ServerMessage,
    binary: Binary,
    out: &mut Vec<u8>,
) -> Result {
    let mut object = Object::open(out);
    match message {
        ServerMessage::Ping => {}
        ServerMessage::Phoenix(_) | ServerMessage::Pusher(_) | ServerMessage::SocketIo(_) => {
            return Err(Unencodable);
        }
        ServerMessage::Push(push) => push_members(push, binary, object.object("push"))?,
        ServerMessage::Reply(Reply { id, result }) => {
            object.scalar("id", *id);
            match result {
                Ok(answer) => answer_member(answer, binary, &mut object)?,
                Err(error) => error_members(error, object.object("error")),
            }
        }
    }
    object.close();
    Ok(())
}

/// Returns the member of pushes that names the channel of a batch.
pub(in crate::protocol) fn channel_member(batch: &Batch<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    match batch.with_channel_id {
        true => _ = write!(out, "\"id\":{}", compact_id(batch.channel_id)),
        false => {
            out.extend_from_slice(b"\"channel\":");
            scalar(&mut out, batch.channel.as_str());
        }
    }
    out
}

/// Appends the push of a publication, without a line end. `channel` is from [`channel_member`]. The
/// delta, if there is one, replaces the payload.
pub(in crate::protocol) fn publication_push(
    channel: &[u8],
    publication: &Publication,
    (payloads, delta): (Payloads<'_>, Option<&Bytes>),
    out: &mut Vec<u8>,
) -> Result {
    out.extend_from_slice(b"{\"push\":{");
    out.extend_from_slice(channel);
    out.extend_from_slice(b",\"pub\":");
    let data = Data::of(payloads, delta, Binary::Refuse);
    publication_object(publication, data, out)?;
    out.extend_from_slice(b"}}");
    Ok(())
}

/// Returns the publisher and the tags as a JSON object. Returns no bytes if there is neither, or if
/// the publisher's information is not JSON.
pub(in crate::protocol) fn extras(publication: &Publication) -> Vec<u8> {
    let mut out = Vec::new();
    if publication.info().is_none() && publication.tags().is_empty() {
        return out;
    }
    let mut object = Object::open(&mut out);
    let result = extra_members(publication, &mut object);
    object.close();
    match result {
        Ok(()) => out,
        Err(Unencodable) => Vec::new(),
    }
}

fn publication_object(publication: &Publication, data: Data<'_>, out: &mut Vec<u8>) -> Result {
    let mut object = Object::open(out);
    match (publication.line(), data) {
        (Some(_), Data::Text(delta)) => {
            let text = delta.unwrap_or(publication.payload());
            let text = std::str::from_utf8(text).map_err(|_| Unencodable)?;
            scalar(object.member("data"), text);
            object.scalar("delta", delta.is_some());
        }
        (Some(line), Data::Value(_)) => object.member("data").extend_from_slice(line),
        (None, Data::Value(Binary::Base64)) => {
            object.scalar("b64data", STANDARD.encode(publication.payload()));
        }
        (None, Data::Text(_) | Data::Value(Binary::Refuse)) => return Err(Unencodable),
    }
    object.scalar("offset", publication.offset());
    extra_members(publication, &mut object)?;
    if let Some(source) = publication.source() {
        object.scalar("channel", source.as_str());
    }
    object.close();
    Ok(())
}

fn extra_members(publication: &Publication, object: &mut Object<'_>) -> Result {
    if let Some(info) = publication.info() {
        info_members(info, object.object("info"))?;
    }
    if !publication.tags().is_empty() {
        let mut tags = object.object("tags");
        for (key, value) in publication.tags() {
            scalar(tags.member_escaped(key), value);
        }
        tags.close();
    }
    Ok(())
}

fn push_members(push: &Push, binary: Binary, mut object: Object<'_>) -> Result {
    match push {
        // Always write the reason: some SDKs require it.
        Push::Disconnect(disconnect) => {
            let mut member = object.object("disconnect");
            member.scalar("code", disconnect.code);
            scalar(member.member("reason"), &disconnect.reason);
            member.scalar("reconnect", disconnect.is_reconnect());
            member.close();
        }
        Push::Join { channel, info } | Push::Leave { channel, info } => {
            object.scalar("channel", channel.as_str());
            let name = if matches!(push, Push::Join { .. }) {
                "join"
            } else {
                "leave"
            };
            let mut member = object.object(name);
            info_members(info, member.object("info"))?;
            member.close();
        }
        Push::Subscribe {
            channel,
            subscribed,
        } => {
            object.scalar("channel", channel.as_str());
            subscribed_members(subscribed, binary, object.object("subscribe"))?;
        }
        Push::Unsubscribe {
            channel,
            unsubscribe: Unsubscribe { code, reason },
        } => {
            object.scalar("channel", channel.as_str());
            let mut member = object.object("unsubscribe");
            member.scalar("code", *code);
            scalar(member.member("reason"), reason);
            member.close();
        }
    }
    object.close();
    Ok(())
}

fn answer_member(answer: &Answer, binary: Binary, object: &mut Object<'_>) -> Result {
    match answer {
        Answer::Connect(connected) => {
            connected_members(connected, binary, object.object("connect"))?;
        }
        Answer::History(page) => history_members(page, binary, object.object("history"))?,
        Answer::Ping => object.object("ping").close(),
        Answer::Presence(clients) => {
            let mut member = object.object("presence");
            let mut presence = member.object("presence");
            for info in clients {
                info_members(info, Object::open(presence.member_escaped(&info.client)))?;
            }
            presence.close();
            member.close();
        }
        // Always write both numbers: SDKs show them as they are, and do not treat a missing one as
        // 0.
        Answer::PresenceStats { clients, users } => {
            let mut member = object.object("presence_stats");
            scalar(member.member("num_clients"), clients);
            scalar(member.member("num_users"), users);
            member.close();
        }
        Answer::Publish => object.object("publish").close(),
        Answer::Refresh(refreshed) => {
            let mut member = object.object("refresh");
            member.scalar("client", &*refreshed.client);
            member.scalar("version", &*refreshed.version);
            expiry_members(refreshed.ttl, &mut member);
            member.close();
        }
        Answer::Rpc { data } => {
            let mut member = object.object("rpc");
            if !data.is_empty() {
                payload(data, binary, &mut member)?;
            }
            member.close();
        }
        Answer::SubRefresh { ttl } => {
            let mut member = object.object("sub_refresh");
            expiry_members(*ttl, &mut member);
            member.close();
        }
        Answer::Subscribe(subscribed) => {
            subscribed_members(subscribed, binary, object.object("subscribe"))?;
        }
        Answer::Unsubscribe => object.object("unsubscribe").close(),
    }
    Ok(())
}

fn connected_members(connected: &Connected, binary: Binary, mut object: Object<'_>) -> Result {
    object.scalar("client", &*connected.client);
    object.scalar("version", &*connected.version);
    expiry_members(connected.ttl, &mut object);
    if let Some(data) = &connected.data {
        json(data, object.member("data"))?;
    }
    if !connected.subscriptions.is_empty() {
        let mut member = object.object("subs");
        for (channel, subscribed) in &connected.subscriptions {
            let member = Object::open(member.member_escaped(channel.as_str()));
            subscribed_members(subscribed, binary, member)?;
        }
        member.close();
    }
    object.scalar("ping", connected.ping_interval.map_or(0, whole_seconds));
    object.scalar("pong", connected.wants_pong);
    object.scalar("session", &*connected.session);
    object.scalar("node", &*connected.node);
    object.close();
    Ok(())
}

fn subscribed_members(subscribed: &Subscribed, binary: Binary, mut object: Object<'_>) -> Result {
    expiry_members(subscribed.ttl, &mut object);
    object.scalar("recoverable", subscribed.is_recoverable);
    object.scalar("positioned", subscribed.is_positioned);
    if let Some(position) = &subscribed.position {
        object.scalar("epoch", position.epoch.as_str());
        object.scalar("offset", position.offset);
    }
    if let Some(recovery) = &subscribed.recovery {
        object.scalar("was_recovering", true);
        object.scalar("recovered", recovery.is_recovered);
        let payloads = subscribed.payloads();
        publications(&recovery.publications, (payloads, binary), &mut object)?;
    }
    object.scalar("delta", subscribed.with_deltas);
    if let Some(data) = &subscribed.data {
        json(data, object.member("data"))?;
    }
    if let Some(id) = subscribed.channel_id {
        // Always write the ID: 0 is a valid one.
        scalar(object.member("id"), id);
    }
    object.close();
    Ok(())
}

fn history_members(page: &HistoryPage, binary: Binary, mut object: Object<'_>) -> Result {
    let payloads = Payloads::Full;
    publications(&page.publications, (payloads, binary), &mut object)?;
    object.scalar("epoch", page.newest.epoch.as_str());
    object.scalar("offset", page.newest.offset);
    object.close();
    Ok(())
}

fn publications(
    publications: &[Publication],
    (payloads, binary): (Payloads<'_>, Binary),
    object: &mut Object<'_>,
) -> Result {
    if publications.is_empty() {
        return Ok(());
    }
    let out = object.member("publications");
    out.push(b'[');
    for (index, (publication, delta)) in payloads.of(publications).enumerate() {
        if index > 0 {
            out.push(b',');
        }
        let data = Data::of(payloads, delta.as_ref(), binary);
        publication_object(publication, data, out)?;
    }
    out.push(b']');
    Ok(())
}

fn info_members(info: &ClientInfo, mut object: Object<'_>) -> Result {
    object.scalar("user", &*info.user);
    object.scalar("client", &*info.client);
    let claims = [
        ("conn_info", &info.connection),
        ("chan_info", &info.channel),
    ];
    for (name, claim) in claims {
        if let Some(claim) = claim {
            json(&Bytes::copy_from_slice(claim), object.member(name))?;
        }
    }
    object.close();
    Ok(())
}

fn error_members(error: &ClientError, mut object: Object<'_>) {
    object.scalar("code", error.code);
    object.scalar("message", &*error.message);
    object.scalar("temporary", error.is_temporary);
    object.close();
}

fn expiry_members(ttl: Option<Duration>, object: &mut Object<'_>) {
    if let Some(ttl) = ttl {
        object.scalar("expires", true);
        object.scalar("ttl", whole_seconds(ttl));
    }
}

/// Appends a payload: as it is if it is JSON, on one line.
fn payload(payload: &Bytes, binary: Binary, object: &mut Object<'_>) -> Result {
    let value = Publication::new(payload.clone());
    match (value.line(), binary) {
        (Some(line), _) => object.member("data").extend_from_slice(line),
        (None, Binary::Base64) => object.scalar("b64data", STANDARD.encode(payload)),
        (None, Binary::Refuse) => return Err(Unencodable),
    }
    Ok(())
}

/// Appends a value that is already JSON, on one line.
fn json(value: &Bytes, out: &mut Vec<u8>) -> Result {
    let value = Publication::new(value.clone());
    out.extend_from_slice(value.line().ok_or(Unencodable)?);
    Ok(())
}
