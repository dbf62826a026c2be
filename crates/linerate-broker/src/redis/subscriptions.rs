//! The subscriptions of a link: what it wants to receive, which commands were sent for that, and
//! how Redis has answered them.
//!
//! Redis answers commands in order, with one reply for each name. The commands that were sent
//! therefore wait in a queue. If a channel is subscribed, unsubscribed and subscribed again, it is
//! ready only with the answer to the last command, not with any earlier answer that has the same
//! name.

use std::{collections::VecDeque, mem, sync::Arc};

use foldhash::HashMap;
use linerate_hub::{ChannelName, StreamPosition};
use tokio::sync::oneshot;

use super::{
    cluster::slot,
    dial::{shortened, write_command},
    resp::{Reply, RespError},
};
use crate::{broker::BrokerError, request::StreamOptions};

/// The maximum number of names in a command.
const NAMES_MAX: usize = 512;

/// A name of a channel or pattern in Redis.
pub(super) type Name = Arc<[u8]>;

/// Receives the result of a subscription.
pub(super) type Waiter = oneshot::Sender<Result<(), BrokerError>>;

/// One of the three ways to subscribe.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum SubscriptionKind {
    Channel,
    Pattern,
    Shard,
}

/// The recipient of the publications under a name.
#[derive(Clone, Debug)]
pub(super) enum Target {
    Channel {
        channel: ChannelName,
        options: StreamOptions,
        /// The newest position received, in a durable channel.
        newest: Option<StreamPosition>,
        /// Publications up to this offset were read from the stream after the link was lost. Redis
        /// may deliver them a second time.
        recovered: u64,
    },
    Control,
    Pattern {
        pattern: ChannelName,
        options: StreamOptions,
    },
    Probe,
}

impl Target {
    /// Returns the channel or pattern of an application.
    pub(super) fn channel(&self) -> Option<&ChannelName> {
        match self {
            Self::Channel { channel, .. } => Some(channel),
            Self::Pattern { pattern, .. } => Some(pattern),
            Self::Control | Self::Probe => None,
        }
    }
}

/// A subscription of this node.
#[derive(Debug)]
pub(super) struct Subscription {
    pub(super) kind: SubscriptionKind,
    pub(super) target: Target,
    pub(super) waiters: Vec<Waiter>,
}

/// The outcome of a reply.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum ReplyOutcome {
    /// The names whose slot is now served by another node of the cluster.
    Moved(Vec<Name>),
    Nothing,
    /// The connection is not authenticated and may not do anything.
    Unauthenticated(String),
}

/// The subscriptions of a link.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    entries: HashMap<Name, Entry>,
    /// The names for which a command must be sent.
    dirty: VecDeque<Name>,
    sent: VecDeque<SentCommand>,
    serial: u64,
}

#[derive(Debug)]
struct Entry {
    subscription: Subscription,
    is_wanted: bool,
    is_dirty: bool,
    /// True if the name must be sent in its own command, because a command with several names was
    /// refused.
    is_alone: bool,
    /// The serial number of the command whose answer counts; 0 before the first command.
    awaited: u64,
}

#[derive(Debug)]
struct SentCommand {
    serial: u64,
    what: CommandKind,
    names: VecDeque<Name>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum CommandKind {
    Ping,
    Subscribe(SubscriptionKind),
    Unsubscribe(SubscriptionKind),
}

impl Subscriptions {
    /// Adds a subscription to `name`.
    pub(super) fn subscribe(&mut self, name: Name, subscription: Subscription) {
        match self.entries.get_mut(&name) {
            Some(entry) => {
                let waiters = mem::take(&mut entry.subscription.waiters);
                entry.subscription = subscription;
                entry.subscription.waiters.extend(waiters);
                entry.is_wanted = true;
            }
            None => {
                let entry = Entry {
                    subscription,
                    is_wanted: true,
                    is_dirty: false,
                    is_alone: false,
                    awaited: 0,
                };
                self.entries.insert(Arc::clone(&name), entry);
            }
        }
        self.mark_dirty(name);
    }

    /// Ends the subscription to `name`.
    pub(super) fn unsubscribe(&mut self, name: &[u8]) {
        if let Some((name, entry)) = self.entries.get_key_value(name)
            && entry.is_wanted
        {
            let name = Arc::clone(name);
            if let Some(entry) = self.entries.get_mut(&name) {
                entry.is_wanted = false;
                entry.subscription.waiters.clear();
            }
            self.mark_dirty(name);
        }
    }

    /// Removes a subscription that Redis has already ended, without sending a command.
    pub(super) fn take(&mut self, name: &[u8]) -> Option<Subscription> {
        let entry = self.entries.remove(name)?;
        entry.is_wanted.then_some(entry.subscription)
    }

    /// Prepares to subscribe to everything again on a new connection.
    pub(super) fn restart(&mut self) {
        self.sent.clear();
        self.dirty.clear();
        self.entries.retain(|_, entry| entry.is_wanted);
        for (name, entry) in &mut self.entries {
            entry.is_dirty = true;
            entry.is_alone = false;
            self.dirty.push_back(Arc::clone(name));
        }
    }

    /// Appends the commands for all changes. Returns the serial number of the last command sent.
    pub(super) fn flush(&mut self, out: &mut Vec<u8>) -> u64 {
        while let Some((what, names)) = self.next_command() {
            self.write(what, names, out);
        }
        self.serial
    }

    /// Appends a `PING`.
    pub(super) fn ping(&mut self, out: &mut Vec<u8>) {
        self.write(CommandKind::Ping, VecDeque::new(), out);
    }

    /// Handles a reply that is not a message.
    pub(super) fn handle_reply(&mut self, reply: Reply<'_>) -> Result<ReplyOutcome, RespError> {
        match reply {
            Reply::Error(reason) => self.handle_error(reason),
            Reply::Message(_) => Ok(ReplyOutcome::Nothing),
            Reply::Pong | Reply::Simple(_) => match self.sent.pop_front() {
                Some(sent) if sent.what == CommandKind::Ping => Ok(ReplyOutcome::Nothing),
                _ => Err(RespError::Reply),
            },
            Reply::Subscribed(name) => {
                let serial =
                    self.acknowledged(name, |what| matches!(what, CommandKind::Subscribe(_)));
                self.settle(name, serial.ok_or(RespError::Reply)?);
                Ok(ReplyOutcome::Nothing)
            }
            Reply::Unsubscribed(name) => {
                match self.acknowledged(name, |what| matches!(what, CommandKind::Unsubscribe(_))) {
                    Some(serial) => self.settle(name, serial),
                    None => return Ok(ReplyOutcome::Moved(self.current_names(&[name.into()]))),
                }
                Ok(ReplyOutcome::Nothing)
            }
        }
    }

    /// Returns whether all commands are sent and answered.
    pub(super) fn is_settled(&self) -> bool {
        self.sent.is_empty() && self.dirty.is_empty()
    }

    /// Returns whether the command with this serial number, and all before it, have been answered.
    pub(super) fn is_answered(&self, serial: u64) -> bool {
        self.sent.front().is_none_or(|sent| sent.serial > serial) && self.dirty.is_empty()
    }

    /// Returns the recipient of the publications under `name`, if it is still subscribed.
    pub(super) fn target(&mut self, name: &[u8]) -> Option<&mut Target> {
        let entry = self.entries.get_mut(name)?;
        entry.is_wanted.then_some(&mut entry.subscription.target)
    }

    /// Returns the recipients of all current subscriptions.
    pub(super) fn targets(&mut self) -> impl Iterator<Item = &mut Target> {
        let wanted = self.entries.values_mut().filter(|entry| entry.is_wanted);
        wanted.map(|entry| &mut entry.subscription.target)
    }

    fn mark_dirty(&mut self, name: Name) {
        if let Some(entry) = self.entries.get_mut(&name)
            && !mem::replace(&mut entry.is_dirty, true)
        {
            self.dirty.push_back(name);
        }
    }

    fn next_command(&mut self) -> Option<(CommandKind, VecDeque<Name>)> {
        let mut names: VecDeque<Name> = VecDeque::new();
        let mut command = None;
        while let Some(name) = self.dirty.front() {
            let Some(entry) = self.entries.get_mut(name) else {
                self.dirty.pop_front();
                continue;
            };
            let what = entry.command();
            let fits = names.front().is_none_or(|first| {
                command == Some(what)
                    && !entry.is_alone
                    && names.len() < NAMES_MAX
                    && (entry.subscription.kind != SubscriptionKind::Shard
                        || slot(first) == slot(name))
            });
            if !fits {
                break;
            }
            entry.is_dirty = false;
            entry.awaited = self.serial + 1;
            command = Some(what);
            let is_alone = entry.is_alone;
            names.extend(self.dirty.pop_front());
            if is_alone {
                break;
            }
        }
        command.map(|what| (what, names))
    }

    fn write(&mut self, what: CommandKind, names: VecDeque<Name>, out: &mut Vec<u8>) {
        self.serial += 1;
        let mut words = vec![what.word()];
        words.extend(names.iter().map(|name| &name[..]));
        write_command(&words, out);
        let serial = self.serial;
        self.sent.push_back(SentCommand {
            serial,
            what,
            names,
        });
    }

    /// Returns the serial number of the command that this reply answers, or `None` if no such
    /// command was sent.
    fn acknowledged(&mut self, name: &[u8], is_kind: impl Fn(CommandKind) -> bool) -> Option<u64> {
        let sent = self.sent.front_mut()?;
        let is_answer = is_kind(sent.what) && sent.names.front().is_some_and(|own| **own == *name);
        if !is_answer {
            return None;
        }
        let serial = sent.serial;
        sent.names.pop_front();
        if sent.names.is_empty() {
            self.sent.pop_front();
        }
        Some(serial)
    }

    fn settle(&mut self, name: &[u8], serial: u64) {
        let Some(entry) = self.entries.get_mut(name) else {
            return;
        };
        if entry.awaited != serial || entry.is_dirty {
            return;
        }
        if !entry.is_wanted {
            self.entries.remove(name);
            return;
        }
        let waiters = mem::take(&mut entry.subscription.waiters);
        let is_awaited = !waiters.is_empty();
        let heard = waiters
            .into_iter()
            .filter_map(|waiter| waiter.send(Ok(())).ok());
        // The subscriber gave up without unsubscribing, so nothing else would ever unsubscribe.
        if is_awaited && heard.count() == 0 {
            self.unsubscribe(name);
        }
    }

    fn handle_error(&mut self, reason: &[u8]) -> Result<ReplyOutcome, RespError> {
        let text = shortened(reason).to_string();
        if reason.starts_with(b"NOAUTH") {
            return Ok(ReplyOutcome::Unauthenticated(text));
        }
        let sent = self.sent.pop_front().ok_or(RespError::Reply)?;
        if sent.what == CommandKind::Ping {
            return Ok(ReplyOutcome::Nothing);
        }
        if reason.starts_with(b"MOVED") || reason.starts_with(b"CLUSTERDOWN") {
            let names: Vec<Name> = sent.names.into();
            return Ok(ReplyOutcome::Moved(self.current_names(&names)));
        }
        let is_single = sent.names.len() == 1;
        for name in sent.names {
            match is_single {
                true => self.refuse(&name, &text),
                false => self.retry_alone(name),
            }
        }
        Ok(ReplyOutcome::Nothing)
    }

    fn refuse(&mut self, name: &[u8], reason: &str) {
        let Some(entry) = self.entries.get_mut(name) else {
            return;
        };
        let waiters = mem::take(&mut entry.subscription.waiters);
        let is_new = !waiters.is_empty();
        for waiter in waiters {
            let _ = waiter.send(Err(BrokerError::refused(reason)));
        }
        // An older subscription is tried again on the next connection.
        match is_new || !entry.is_wanted {
            true => _ = self.entries.remove(name),
            false => tracing::warn!(reason, "Redis refuses a channel that it accepted before"),
        }
    }

    fn retry_alone(&mut self, name: Name) {
        if let Some(entry) = self.entries.get_mut(&name) {
            entry.is_alone = true;
        }
        self.mark_dirty(name);
    }

    /// Returns the names that are still subscribed.
    fn current_names(&self, names: &[Name]) -> Vec<Name> {
        let wanted = names.iter().filter(|name| {
            let entry = self.entries.get(&name[..]);
            entry.is_some_and(|entry| entry.is_wanted)
        });
        wanted.cloned().collect()
    }
}

impl Entry {
    fn command(&self) -> CommandKind {
        match self.is_wanted {
            true => CommandKind::Subscribe(self.subscription.kind),
            false => CommandKind::Unsubscribe(self.subscription.kind),
        }
    }
}

impl CommandKind {
    fn word(self) -> &'static [u8] {
        match self {
            Self::Ping => b"PING",
            Self::Subscribe(SubscriptionKind::Channel) => b"SUBSCRIBE",
            Self::Subscribe(SubscriptionKind::Pattern) => b"PSUBSCRIBE",
            Self::Subscribe(SubscriptionKind::Shard) => b"SSUBSCRIBE",
            Self::Unsubscribe(SubscriptionKind::Channel) => b"UNSUBSCRIBE",
            Self::Unsubscribe(SubscriptionKind::Pattern) => b"PUNSUBSCRIBE",
            Self::Unsubscribe(SubscriptionKind::Shard) => b"SUNSUBSCRIBE",
        }
    }
}

#[cfg(test)]
mod tests;
