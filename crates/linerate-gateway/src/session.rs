//! Client sessions: commands in, replies out, independent of the transport.
//!
//! | module | responsibility |
//! | --- | --- |
//! | `activity` | commands that wait, and output
//! | `asking` | asks backends on behalf of a client |
//! | `budget` | limits the rate of commands |
//! | `commands` | handles each command |
//! | `deadlines` | pings, and the expiry of tokens |
//! | `events` | handles events from the node and the worker |
//! | `expiry` | what happens when a connection or subscription expires |
//! | `fixed` | sessions described by the URL of a request: raw WebSockets and event streams |
//! | `gate` | authenticates clients and authorizes subscriptions |
//! | `identity` | the identity of a client |
//! | `journal` | what was handed to a client that may return to its session |
//! | `outlet` | what a session does with the output side of its client |
//! | `phoenix` | what only Phoenix clients request |
//! | `plan` | checks a subscription request and decides how to serve it |
//! | `portable` | sessions that another process continues |
//! | `protocol_state` | the state that only sessions of one protocol have |
//! | `pusher` | what only Pusher clients request |
//! | `renewals` | the attempts to renew what has expired |
//! | `scope` | the channels whose publications reach a pattern subscriber |
//! | `shared` | the configuration in the form that sessions need |
//! | `socketio` | what only Socket.IO clients request |
//! | `tags` | filters on the tags of publications |
//! | `work` | asynchronous operations that a session waits for |
//!
//! A session never blocks or awaits: a transport drives it.

mod activity;
mod asking;
mod budget;
mod commands;
mod deadlines;
mod environment;
mod events;
mod expiry;
mod fixed;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod gate;
mod identity;
mod journal;
mod outlet;
mod phoenix;
mod plan;
mod portable;
mod protocol_state;
mod pusher;
mod renewals;
mod scope;
mod socketio;
mod tags;
mod work;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use linerate_hub::{ChannelName, ClientId};
use uuid::Uuid;

use crate::auth::TokenId;
use crate::channel_map::ChannelMap;
use crate::node::{Connection, Worker};
use crate::protocol::{
    codes::{ClientError, Disconnect, Refusal, Unsubscribe},
    command::{Command, Connect, Request},
    decode::Limits,
    dialect::{Commands, DialectName},
    polling::PolledName,
    reply::{Answer, Push, Reply, ServerMessage},
};
use activity::{Activity, Job, OpenCommand, Pending};
pub(crate) use activity::{WAITING_BYTES_MAX, WAITING_MAX};
pub(crate) use asking::Visitor;
use budget::{Budget, Verdict};
use deadlines::{Deadlines, Due};
pub use environment::SettingsError;
pub(crate) use environment::{SessionEnvironment, Settings};
pub(crate) use fixed::{AuthorizedRequest, FixedSession};
pub(crate) use gate::{Gate, Gates};
pub(crate) use identity::{Authenticated, Identity, Member};
pub(crate) use journal::Journal;
pub(crate) use outlet::{Event, SessionOutlet};
pub(crate) use portable::{PortableSession, RestoreError};
use protocol_state::ProtocolState;
use renewals::Renewals;
pub(crate) use work::{Completion, Context, Work};

/// The version string that the server reports to clients.
pub(crate) const VERSION: &str = concat!("linerate ", env!("CARGO_PKG_VERSION"));

/// A session of a client that sends commands.
#[derive(Debug)]
pub(crate) struct Session {
    context: Context,
    commands: &'static Commands,
    /// Identifies the session to other requests of its client; `None` if commands and replies share
    /// one connection.
    name: Option<Box<Uuid>>,
    stage: Stage,
    activity: Activity,
    subscriptions: ChannelMap<Subscription>,
    budget: Budget,
    deadlines: Deadlines,
    /// The part of the ping interval after which the first ping is sent.
    ping_part: f32,
    renewals: Renewals,
    end: Option<Box<Disconnect>>,
    protocol_state: ProtocolState,
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

/// The session's state for one subscription.
#[derive(Clone, Debug)]
pub(crate) struct Subscription {
    ends_with_gap: bool,
    /// True if the server made the subscription; the client can then renew it only by reconnecting.
    is_of_server: bool,
    /// What the token says; `None` if there was none.
    terms: Option<Box<Terms>>,
}

/// What the token of a subscription says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Terms {
    /// When the subscription expires unless its token is refreshed.
    expiry: Option<Instant>,
    /// Information about the token.
    token: Option<TokenId>,
    /// The information about this client that other subscribers of the channel see.
    info: Option<Bytes>,
    renewals: Renewals,
}

impl Terms {
    /// Returns the terms, or `None` if there are none.
    fn boxed(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }
}

impl Subscription {
    fn expiry(&self) -> Option<Instant> {
        self.terms.as_ref()?.expiry
    }

    fn token(&self) -> Option<&TokenId> {
        self.terms.as_ref()?.token.as_ref()
    }

    fn info(&self) -> Option<&Bytes> {
        self.terms.as_ref()?.info.as_ref()
    }
}

impl Session {
    /// Creates a session that waits for its first command. `ping_part` is a random number from 0 to
    /// 1, so that clients that connected together are not pinged together.
    pub(crate) fn new(
        context: Context,
        commands: &'static Commands,
        name: Option<Uuid>,
        now: Instant,
        ping_part: f32,
    ) -> Self {
        let settings = context.gate.shared.settings_full();
        let options = &settings.config.client;
        let heartbeat = commands.heartbeat.map(|timeout| timeout(&settings.config));
        context.outlet.hold();
        Self {
            commands,
            name: name.map(Box::new),
            stage: Stage::Fresh,
            activity: Activity::default(),
            subscriptions: ChannelMap::default(),
            budget: Budget::new(options.commands_per_second_max, now),
            deadlines: Deadlines::new(options, heartbeat, now),
            ping_part,
            renewals: Renewals::default(),
            end: None,
            protocol_state: ProtocolState::default(),
            context,
        }
    }

    /// Begins with the command that the request for the connection stands for, or ends the session
    /// for the reason why there is none.
    pub(crate) fn open(&mut self, now: Instant, connect: Result<Connect, Disconnect>) {
        match connect {
            Ok(connect) => {
                let request = Request::Connect(connect);
                let command = Box::new(Command { id: 0, request });
                self.activity.add(Job::Command(command, now));
            }
            Err(disconnect) => self.end(disconnect),
        }
    }

    /// Begins with a client that has been authenticated.
    pub(crate) fn open_authenticated(&mut self, now: Instant, client: Box<Authenticated>) {
        self.activity.add(Job::Authenticated(client, now));
    }

    /// Queues the message with which the server begins a connection, if the dialect has one.
    pub(crate) fn greet(&mut self) {
        if let Some(greeting) = self.commands.greeting {
            let settings = self.context.gate.shared.settings();
            let polled = self.name.as_deref().map(|&session| PolledName {
                node: self.worker().node().status.id().to_owned(),
                session,
            });
            let message = greeting(&settings.config.client, polled.as_ref());
            self.activity.say(message);
        }
    }

    /// Handles a binary WebSocket message: an attachment if the dialect has such messages,
    /// otherwise a frame of commands.
    pub(crate) fn handle_binary(&mut self, now: Instant, message: &[u8]) {
        match self.commands.read_binary {
            Some(read) => self.take(now, read(message)),
            None => self.handle_frame(now, message),
        }
    }

    /// Handles a frame of commands. Commands that cannot complete at once wait for
    /// [`poll_work`](Self::poll_work).
    pub(crate) fn handle_frame(&mut self, now: Instant, frame: &[u8]) {
        match self.commands.decode(frame, &Limits::default()) {
            Ok(commands) => {
                for command in commands {
                    self.take(now, command);
                }
            }
            Err(error) => self.end(Disconnect::BAD_REQUEST.with_reason(error.to_string())),
        }
    }

    /// Sets how long the client may be silent, if it is to send signs of life on its own. Call this
    /// before it has connected.
    pub(crate) fn limit_silence(&mut self, timeout: Duration) {
        if self.commands.heartbeat.is_some() {
            self.deadlines.limit_silence(timeout);
        }
    }

    /// Records that the client is there, if it is to send signs of life on its own.
    pub(crate) fn note_sign_of_life(&mut self) {
        if self.commands.heartbeat.is_some() {
            self.deadlines.pong();
        }
    }

    /// Handles the result of the oldest outstanding operation. The resulting output must be sent at
    /// once.
    pub(crate) fn handle_completion(&mut self, now: Instant, completion: Completion) {
        let Some(pending) = self.activity.complete() else {
            return;
        };
        if let Pending::Command(asked, _) = &pending {
            self.activity.release(asked.bytes);
        }
        self.finish(now, pending, completion);
    }

    /// Handles all deadlines that have passed.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        while let Some(due) = self.deadlines.poll(now) {
            match due {
                // A backend or the broker may take longer.
                Due::Connect if matches!(self.stage, Stage::Connecting) => {}
                Due::Connect => self.end(Disconnect::STALE),
                Due::Expiry => self.expire(now),
                Due::Ping if self.commands.heartbeat.is_some() => {}
                Due::Ping => self.activity.say(ServerMessage::Ping),
                Due::Pong => self.end(Disconnect::NO_PONG),
            }
        }
        let is_over =
            |subscription: &Subscription| subscription.expiry().is_some_and(|at| at <= now);
        let over = self.subscriptions.iter();
        let over = over.filter(|(_, subscription)| is_over(subscription));
        let over: Vec<ChannelName> = over.map(|(channel, _)| channel.clone()).collect();
        for channel in over {
            self.expire_subscription(now, &channel);
        }
    }

    /// Returns the next operation to run, concurrently with those already running. Hand their
    /// results to [`handle_completion`](Self::handle_completion) in the order in which
    /// this method returned the operations.
    pub(crate) fn poll_work(&mut self, now: Instant) -> Option<Work> {
        while self.end.is_none() {
            let (pending, work) = match self.activity.next()? {
                Job::Command(command, since) => {
                    let asked = OpenCommand {
                        id: command.id,
                        method: command.request.name(),
                        since,
                        bytes: command.memory_bytes() as u64,
                    };
                    let (channel, work) = self.begin(*command);
                    if work.is_none() {
                        self.activity.release(asked.bytes);
                        self.count(now, asked);
                    }
                    (Pending::Command(asked, channel), work)
                }
                Job::Authenticated(client, since) => {
                    let asked = OpenCommand {
                        id: 0,
                        method: "connect",
                        since,
                        bytes: 0,
                    };
                    let work = self.begin_authenticated(*client);
                    (Pending::Command(asked, None), Some(work))
                }
                Job::Renew(channel) => {
                    let work = self.begin_renewal(channel.clone());
                    (Pending::Renewal, work)
                }
                Job::Subscribe { channel, info } => {
                    let work = self.begin_server_subscribe(channel.clone(), info);
                    if work.is_none() {
                        self.end_entering(&channel);
                    }
                    (Pending::Push(channel), work)
                }
            };
            if let Some(work) = work {
                self.activity.begin(pending);
                return Some(work);
            }
        }
        None
    }

    /// Removes and returns the pending output.
    pub(crate) fn take_output(&mut self) -> Vec<ServerMessage> {
        self.note_memory();
        self.activity.take_output()
    }

    /// Ends the session. Only the first call has an effect.
    pub(crate) fn end(&mut self, disconnect: Disconnect) {
        if self.end.is_none() {
            let metrics = self.context.gate.shared.metrics();
            metrics.count_disconnect(disconnect.code.into());
            self.leave_namespaces(&disconnect);
            self.end = Some(Box::new(disconnect));
        }
    }

    /// Returns the reason why the session has ended, or `None` while it is running.
    pub(crate) fn ended(&self) -> Option<&Disconnect> {
        self.end.as_deref()
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let subscriptions = self.subscriptions.values();
        let expiries = subscriptions.filter_map(Subscription::expiry);
        expiries.chain(self.deadlines.next()).min()
    }

    /// Returns whether the session accepts another frame.
    pub(crate) fn wants_input(&self) -> bool {
        self.activity.has_room()
    }

    /// Returns the client's ID at the worker, once the client is connected.
    pub(crate) const fn client(&self) -> Option<ClientId> {
        match &self.stage {
            Stage::Connected { member, .. } => Some(member.id()),
            _ => None,
        }
    }

    /// Records that the client uses another transport from now on.
    pub(crate) fn set_transport(&mut self, dialect: &'static DialectName) {
        let connection = Arc::new(Connection {
            dialect,
            ..Connection::clone(&self.context.connection)
        });
        if let Some(client) = self.client() {
            self.worker().identify(client, connection.clone());
        }
        self.context.connection = connection;
    }

    /// Returns what authenticates and authorizes the client.
    pub(crate) fn gate(&self) -> &Arc<Gate> {
        &self.context.gate
    }

    /// Returns the worker of the client.
    pub(crate) fn worker(&self) -> &Arc<Worker> {
        &self.context.gate.worker
    }

    /// Returns the encoding of commands and replies.
    pub(crate) const fn commands(&self) -> &'static Commands {
        self.commands
    }

    /// Returns the description of the client.
    pub(crate) fn connection(&self) -> &Connection {
        &self.context.connection
    }

    /// Returns whether the client is subscribed to a channel, or is about to be.
    fn has(&self, channel: &ChannelName) -> bool {
        let mut pending = self.activity.pending();
        self.subscriptions.contains_key(channel)
            || pending.any(|one| one.channel() == Some(channel))
    }

    /// Returns the number of channels that the client is subscribed to, including pending
    /// subscriptions.
    fn channels(&self) -> usize {
        self.subscriptions.len() + self.activity.pending().filter_map(Pending::channel).count()
    }

    fn take(&mut self, now: Instant, command: Command) {
        self.note_sign_of_life();
        let Some(command) = self.assemble(command) else {
            return;
        };
        match self.budget.spend(now) {
            Verdict::Excessive => self.end(Disconnect::TOO_MANY_REQUESTS),
            Verdict::Refused => self.refuse_excess(&command),
            Verdict::Granted if matches!(command.request, Request::Pong) => self.deadlines.pong(),
            Verdict::Granted => self.enqueue(now, command),
        }
    }

    /// Adds a command to those that wait.
    fn enqueue(&mut self, now: Instant, command: Command) {
        let account = &self.context.gate.worker.accounts().messages;
        let bytes = command.memory_bytes() as u64;
        self.activity.charge(bytes, account);
        self.activity.add(Job::Command(Box::new(command), now));
    }

    /// Tells the outlet how much memory the commands take that wait or are executed.
    fn note_memory(&mut self) {
        if let Some(bytes) = self.activity.changed_bytes() {
            self.context.outlet.keep_commands(bytes as usize);
        }
    }

    /// Records the duration of a command that was answered or that ended the session.
    fn count(&self, now: Instant, asked: OpenCommand) {
        let metrics = self.context.gate.shared.metrics();
        metrics.count_command(asked.method, now.saturating_duration_since(asked.since));
    }

    fn reply(&mut self, id: u32, result: Result<Answer, ClientError>) {
        let reply = Reply { id, result };
        self.activity.say(ServerMessage::Reply(reply));
    }

    /// Ends a subscription, if it exists, and tells the client the reason.
    fn unsubscribe(&mut self, channel: &ChannelName, unsubscribe: Unsubscribe) {
        if self.protocol_state.phoenix().is_some() {
            return self.end_join(channel, &unsubscribe);
        }
        if self.leave(channel) {
            self.activity.say(ServerMessage::Push(Push::Unsubscribe {
                channel: channel.clone(),
                unsubscribe,
            }));
        }
    }

    /// Ends a subscription. Returns `false` if there was none.
    fn leave(&mut self, channel: &ChannelName) -> bool {
        let was_there = self.subscriptions.remove(channel).is_some();
        self.protocol_state.leave(channel);
        if let Some(journal) = self.context.outlet.journal() {
            journal.leave(channel);
        }
        if let Some(client) = self.client() {
            self.context.gate.worker.unsubscribe(client, channel);
        }
        was_there
    }
}
