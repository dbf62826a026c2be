//! A client's session: commands in, replies out, whatever carries them.
//!
//! | room | what happens there |
//! | --- | --- |
//! | `budget` | how many commands a client may send |
//! | `commands` | what becomes of each command |
//! | `deadlines` | pings, and tokens that end |
//! | `events` | what the node and the worker want of a session |
//! | `fixed` | sessions that the address of a request describes: raw WebSockets and event streams |
//! | `gate` | who may come in, and what they may subscribe to |
//! | `identity` | who a client is |
//! | `plan` | how a client is subscribed, if it may |
//! | `scope` | from which channels a subscriber to a pattern gets publications |
//! | `shared` | the configuration as sessions need it |
//! | `tags` | filters by the tags of publications |
//! | `work` | what a session has to wait for |
//!
//! A session waits for nothing itself: [`transport`](crate::transport) drives it.

mod budget;
mod commands;
mod deadlines;
mod events;
mod fixed;
#[cfg(fuzzing)]
pub mod fuzzing;
mod gate;
mod identity;
mod plan;
mod scope;
mod shared;
mod tags;
mod work;

use std::{collections::VecDeque, mem, sync::Arc, time::Instant};

use bytes::Bytes;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use linerate_hub::{ChannelName, ClientId};

pub use crate::api::attempts::KeyRefusal;
use crate::auth::Shown;
use crate::protocol::centrifuge::{
    Answer, ClientError, Command, Disconnect, Format, Limits, Push, Reply, Request, ServerMessage,
    Unsubscribe, decode,
};
use budget::{Budget, Verdict};
use deadlines::{Deadlines, Due};
pub(crate) use fixed::{FixedSession, Granted, Wish};
pub(crate) use gate::{Gate, Refusal};
pub(crate) use identity::{Identity, Member};
#[cfg(test)]
pub(crate) use plan::Asker;
pub use shared::{LogsAccess, Settings, Shared};
use work::SUBSCRIBES_AT_ONCE;
pub(crate) use work::{Context, Done, Work};

/// Commands that may wait for those before them; while there are more, no further input is taken.
pub(crate) const WAITING_MAX: usize = 64;

/// What we call ourselves to clients.
pub(crate) const VERSION: &str = concat!("linerate ", env!("CARGO_PKG_VERSION"));

/// A session of a client that sends commands.
#[derive(Debug)]
pub(crate) struct Session {
    context: Context,
    format: Format,
    /// Names the session to `/emulation`; empty where commands come the same way as replies go.
    name: String,
    stage: Stage,
    waiting: VecDeque<Job>,
    /// For what the answers are that the session waits for, in the order in which they come.
    pending: VecDeque<Pending>,
    subscriptions: HashMap<ChannelName, Subscription, RandomState>,
    budget: Budget,
    deadlines: Deadlines,
    output: Vec<ServerMessage>,
    end: Option<Disconnect>,
}

#[derive(Debug)]
enum Stage {
    Connected {
        identity: Arc<Identity>,
        member: Member,
    },
    Connecting,
    Fresh,
}

/// Something to be done in its turn.
#[derive(Debug)]
enum Job {
    /// A command, and when it came.
    Command(Box<Command>, Instant),
    /// A subscription that the application wants for the client.
    Subscribe {
        channel: ChannelName,
        info: Option<Bytes>,
    },
}

/// What the session waits for, with the channel if that is to be subscribed.
#[derive(Clone, Debug)]
enum Pending {
    Command(Asked, Option<ChannelName>),
    /// A subscription that the server has begun.
    Push(ChannelName),
}

impl Job {
    fn is_subscribe(&self) -> bool {
        match self {
            Self::Command(command, _) => matches!(command.request, Request::Subscribe(_)),
            Self::Subscribe { .. } => true,
        }
    }
}

impl Pending {
    fn channel(&self) -> Option<&ChannelName> {
        match self {
            Self::Command(_, channel) => channel.as_ref(),
            Self::Push(channel) => Some(channel),
        }
    }
}

/// A command that waits for its answer.
#[derive(Clone, Copy, Debug)]
struct Asked {
    id: u32,
    method: &'static str,
    since: Instant,
}

/// What a session remembers of a subscription.
#[derive(Clone, Debug)]
pub(crate) struct Subscription {
    /// When it ends for want of a newer token.
    expiry: Option<Instant>,
    ends_with_gap: bool,
    /// Whether the server made it, so that the client can't make it again without connecting again.
    is_of_server: bool,
    /// What the token for it said of itself, if there was one.
    token: Option<Shown>,
    /// What others in the channel are told of the client.
    info: Option<Bytes>,
}

impl Session {
    /// Starts a session that waits for its first command.
    pub(crate) fn new(context: Context, format: Format, name: String, now: Instant) -> Self {
        let settings = context.gate.shared.settings_full();
        let options = &settings.config.client;
        context.outlet.hold();
        Self {
            format,
            name,
            stage: Stage::Fresh,
            waiting: VecDeque::new(),
            pending: VecDeque::new(),
            subscriptions: HashMap::default(),
            budget: Budget::new(options.commands_per_second_max, now),
            deadlines: Deadlines::new(options, now),
            output: Vec::new(),
            end: None,
            context,
        }
    }

    /// Takes a frame of commands. Those that can't be done at once wait for [`poll_work`](Self::poll_work).
    pub(crate) fn handle_frame(&mut self, now: Instant, frame: &[u8]) {
        match decode(self.format, frame, &Limits::default()) {
            Ok(commands) => {
                for command in commands {
                    self.take(now, command);
                }
            }
            Err(error) => self.end(Disconnect::BAD_REQUEST.with_reason(error.to_string())),
        }
    }

    /// Takes what came of the oldest thing that the session waits for. What is to be sent then goes out at once.
    pub(crate) fn handle_done(&mut self, now: Instant, done: Done) {
        let Some(pending) = self.pending.pop_front() else {
            return;
        };
        self.finish(now, pending, done);
    }

    /// Does what is due.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        while let Some(due) = self.deadlines.poll(now) {
            match due {
                Due::Connect => self.end(Disconnect::STALE),
                Due::Expiry => self.end(Disconnect::EXPIRED),
                Due::Ping => self.output.push(ServerMessage::Ping),
                Due::Pong => self.end(Disconnect::NO_PONG),
            }
        }
        let is_over = |subscription: &Subscription| subscription.expiry.is_some_and(|at| at <= now);
        let over = self.subscriptions.iter();
        let over = over.filter(|(_, subscription)| is_over(subscription));
        let over: Vec<ChannelName> = over.map(|(channel, _)| channel.clone()).collect();
        for channel in over {
            self.unsubscribe(&channel, Unsubscribe::EXPIRED);
        }
    }

    /// Returns the next thing to wait for, beside all others. What came of them is to be handed in in this order.
    pub(crate) fn poll_work(&mut self, now: Instant) -> Option<Work> {
        while self.may_begin() {
            let (pending, work) = match self.waiting.pop_front()? {
                Job::Command(command, since) => {
                    let asked = Asked {
                        id: command.id,
                        method: command.request.name(),
                        since,
                    };
                    let (channel, work) = self.begin(*command);
                    if work.is_none() {
                        self.count(now, asked);
                    }
                    (Pending::Command(asked, channel), work)
                }
                Job::Subscribe { channel, info } => {
                    let work = self.begin_server_subscribe(channel.clone(), info);
                    (Pending::Push(channel), work)
                }
            };
            if let Some(work) = work {
                self.pending.push_back(pending);
                return Some(work);
            }
        }
        None
    }

    /// Takes what is to be sent.
    pub(crate) fn take_output(&mut self) -> Vec<ServerMessage> {
        mem::take(&mut self.output)
    }

    /// Ends the session.
    pub(crate) fn end(&mut self, disconnect: Disconnect) {
        if self.end.is_none() {
            let metrics = self.context.gate.shared.metrics();
            metrics.count_disconnect(disconnect.code.into());
            self.end = Some(disconnect);
        }
    }

    /// Returns why the session has ended, once it has.
    pub(crate) const fn ended(&self) -> Option<&Disconnect> {
        self.end.as_ref()
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let subscriptions = self.subscriptions.values();
        let expiries = subscriptions.filter_map(|subscription| subscription.expiry);
        expiries.chain(self.deadlines.next()).min()
    }

    /// Returns whether more frames may come.
    pub(crate) fn wants_input(&self) -> bool {
        self.waiting.len() < WAITING_MAX
    }

    /// Returns the client's place at the worker, once it is connected.
    pub(crate) const fn client(&self) -> Option<ClientId> {
        match &self.stage {
            Stage::Connected { member, .. } => Some(member.id()),
            _ => None,
        }
    }

    /// Says whether the next job may begin: several subscriptions are made at the same time, everything else waits for
    /// what came before it.
    fn may_begin(&self) -> bool {
        if self.end.is_some() {
            return false;
        }
        let subscribes = self.pending.iter().all(|one| one.channel().is_some());
        let next = self.waiting.front();
        let is_subscribe = next.is_some_and(Job::is_subscribe);
        let is_among = self.pending.len() < SUBSCRIBES_AT_ONCE && subscribes && is_subscribe;
        self.pending.is_empty() || is_among
    }

    /// Says whether the client is subscribed to a channel, or soon will be.
    fn has(&self, channel: &ChannelName) -> bool {
        let mut pending = self.pending.iter();
        self.subscriptions.contains_key(channel)
            || pending.any(|one| one.channel() == Some(channel))
    }

    /// Returns how many channels the client is subscribed to, or soon will be.
    fn channels(&self) -> usize {
        self.subscriptions.len() + self.pending.iter().filter_map(Pending::channel).count()
    }

    fn take(&mut self, now: Instant, command: Command) {
        match self.budget.spend(now) {
            Verdict::Excessive => self.end(Disconnect::TOO_MANY_REQUESTS),
            Verdict::Refused => self.refuse_excess(&command),
            Verdict::Granted if matches!(command.request, Request::Pong) => self.deadlines.pong(),
            Verdict::Granted => {
                self.waiting.push_back(Job::Command(Box::new(command), now));
            }
        }
    }

    /// Counts a command that was answered, or ended the session.
    fn count(&self, now: Instant, asked: Asked) {
        let metrics = self.context.gate.shared.metrics();
        metrics.count_command(asked.method, now.saturating_duration_since(asked.since));
    }

    fn reply(&mut self, id: u32, result: Result<Answer, ClientError>) {
        self.output.push(ServerMessage::Reply(Reply { id, result }));
    }

    /// Ends a subscription and tells the client why, if there is one.
    fn unsubscribe(&mut self, channel: &ChannelName, unsubscribe: Unsubscribe) {
        if self.leave(channel) {
            self.output.push(ServerMessage::Push(Push::Unsubscribe {
                channel: channel.clone(),
                unsubscribe,
            }));
        }
    }

    /// Ends a subscription; `false` if there was none.
    fn leave(&mut self, channel: &ChannelName) -> bool {
        let was_there = self.subscriptions.remove(channel).is_some();
        self.context.outlet.forget_channel_id(channel);
        if let Some(client) = self.client() {
            self.context.gate.worker.unsubscribe(client, channel);
        }
        was_there
    }
}
