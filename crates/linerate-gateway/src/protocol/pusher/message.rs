//! Messages to Pusher clients, except for publications.

use std::collections::BTreeMap;

use linerate_hub::{ChannelName, Unencodable};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{
    event,
    wire::{frame, frame_of},
};
use crate::protocol::reply::{
    Answer, Connected, Push, PusherMember, PusherMessage, PusherSubscribeError, Reply,
    ServerMessage,
};

/// The time without messages after which a client sends a ping, in seconds. The server sends its
/// own pings more often.
const ACTIVITY_TIMEOUT_S: u32 = 120;

/// Appends messages, each in its own text frame.
pub(super) fn write(messages: &[ServerMessage], out: &mut Vec<u8>) -> Result<(), Unencodable> {
    messages.iter().try_for_each(|message| append(message, out))
}

fn append(message: &ServerMessage, out: &mut Vec<u8>) -> Result<(), Unencodable> {
    match message {
        ServerMessage::Ping => frame("pusher:ping", None, "{}", out),
        ServerMessage::Push(push) => append_push(push, out),
        ServerMessage::Pusher(message) => return append_message(message, out),
        ServerMessage::Phoenix(_) | ServerMessage::SocketIo(_) => return Err(Unencodable),
        ServerMessage::Reply(Reply { result, .. }) => match result {
            Ok(Answer::Connect(connected)) => append_connected(connected, out),
            Ok(Answer::Ping) => frame("pusher:pong", None, "{}", out),
            // Other commands have no reply.
            Ok(_) => {}
            Err(error) => append_error(None, &error.message, out),
        },
    }
    Ok(())
}

fn append_connected(connected: &Connected, out: &mut Vec<u8>) {
    let data = json(&ConnectionEstablished {
        socket_id: &connected.client,
        activity_timeout: ACTIVITY_TIMEOUT_S,
    });
    frame("pusher:connection_established", None, &data, out);
}

fn append_push(push: &Push, out: &mut Vec<u8>) {
    match push {
        Push::Disconnect(disconnect) => {
            append_error(Some(disconnect.code), &disconnect.reason, out);
        }
        Push::Join { channel, info } => {
            let member = PusherMember::from(info);
            let data = json(&MemberAdded {
                user_id: &member.user,
                user_info: member.info.as_deref(),
            });
            let event = "pusher_internal:member_added";
            frame(event, Some(channel.as_str()), &data, out);
        }
        Push::Leave { channel, info } => {
            let data = json(&MemberRemoved {
                user_id: &info.user,
            });
            let event = "pusher_internal:member_removed";
            frame(event, Some(channel.as_str()), &data, out);
        }
        Push::Subscribe { channel, .. } => append_subscribed(channel, None, out),
        Push::Unsubscribe {
            channel,
            unsubscribe,
        } => append_subscribe_error(
            &PusherSubscribeError {
                channel: channel.to_string(),
                kind: "Unsubscribed",
                error: unsubscribe.reason.to_string(),
                status: 410,
            },
            out,
        ),
    }
}

fn append_message(message: &PusherMessage, out: &mut Vec<u8>) -> Result<(), Unencodable> {
    match message {
        PusherMessage::CacheMiss(channel) => {
            frame("pusher:cache_miss", Some(channel.as_str()), "{}", out);
        }
        PusherMessage::Error { code, message } => append_error(*code, message, out),
        PusherMessage::Event {
            channel,
            publication,
        } => return event::append(channel, publication, out),
        PusherMessage::SignedIn { user_data } => {
            let data = json(&SigninSuccess { user_data });
            frame("pusher:signin_success", None, &data, out);
        }
        PusherMessage::SubscribeError(error) => append_subscribe_error(error, out),
        PusherMessage::Subscribed { channel, members } => {
            append_subscribed(channel, members.as_deref(), out);
        }
        PusherMessage::SubscriptionCount { channel, count } => {
            let data = json(&SubscriptionCount {
                subscription_count: *count,
            });
            let event = "pusher_internal:subscription_count";
            frame(event, Some(channel.as_str()), &data, out);
        }
    }
    Ok(())
}

fn append_subscribed(channel: &ChannelName, members: Option<&[PusherMember]>, out: &mut Vec<u8>) {
    let presence = members.map(|members| PresenceData {
        ids: members.iter().map(|member| &*member.user).collect(),
        hash: members.iter().map(entry).collect(),
        count: members.len(),
    });
    let data = json(&SubscriptionSucceeded { presence });
    let event = "pusher_internal:subscription_succeeded";
    frame(event, Some(channel.as_str()), &data, out);
}

fn entry(member: &PusherMember) -> (&str, Option<&RawValue>) {
    (&member.user, member.info.as_deref())
}

/// Appends an error. Its data is an object and not a string.
fn append_error(code: Option<u16>, message: &str, out: &mut Vec<u8>) {
    let data = json(&ErrorData { code, message });
    frame_of("pusher:error", None, &data, out);
}

/// Appends the error of a subscription. Its data is an object and not a string.
fn append_subscribe_error(error: &PusherSubscribeError, out: &mut Vec<u8>) {
    let data = json(&SubscriptionError {
        kind: error.kind,
        error: &error.error,
        status: error.status,
    });
    let channel = Some(&*error.channel);
    frame_of("pusher:subscription_error", channel, &data, out);
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("serializing structs to memory cannot fail")
}

#[derive(Serialize)]
struct ConnectionEstablished<'a> {
    socket_id: &'a str,
    activity_timeout: u32,
}

#[derive(Serialize)]
struct ErrorData<'a> {
    code: Option<u16>,
    message: &'a str,
}

#[derive(Serialize)]
struct MemberAdded<'a> {
    user_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_info: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct MemberRemoved<'a> {
    user_id: &'a str,
}

#[derive(Serialize)]
struct PresenceData<'a> {
    ids: Vec<&'a str>,
    hash: BTreeMap<&'a str, Option<&'a RawValue>>,
    count: usize,
}

#[derive(Serialize)]
struct SigninSuccess<'a> {
    user_data: &'a str,
}

#[derive(Serialize)]
struct SubscriptionCount {
    subscription_count: u64,
}

#[derive(Serialize)]
struct SubscriptionError<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    error: &'a str,
    status: u16,
}

#[derive(Serialize)]
struct SubscriptionSucceeded<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    presence: Option<PresenceData<'a>>,
}
