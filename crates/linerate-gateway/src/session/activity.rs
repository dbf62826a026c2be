//! What a session is doing: the commands that wait, and the output that is not taken yet.

use std::{collections::VecDeque, time::Instant};

use bytes::Bytes;
use linerate_hub::ChannelName;

use linerate_budget::{Account, Share};

use super::identity::Authenticated;
use crate::protocol::{command::Command, reply::ServerMessage};

/// The maximum number of subscriptions that a client makes concurrently.
pub(super) const SUBSCRIBES_AT_ONCE: usize = 64;

/// Commands that may wait for earlier ones to complete. At this limit, the session reads no further
/// input.
pub(crate) const WAITING_MAX: usize = 64;

/// The memory at which no further input is read, whatever the number of commands.
pub(crate) const WAITING_BYTES_MAX: u64 = 256 << 10;

/// Commands that take less memory do not count when a client is chosen to be closed.
const NOTED_BYTES_MIN: u64 = 16 << 10;

/// What a session is doing. It takes no memory while the session does nothing, as most sessions do
/// most of the time.
#[derive(Debug, Default)]
pub(super) struct Activity(Option<Box<Tasks>>);

#[derive(Debug, Default)]
struct Tasks {
    waiting: VecDeque<Job>,
    /// What each outstanding operation is for, in the order in which the operations were started.
    pending: VecDeque<Pending>,
    output: Vec<ServerMessage>,
    /// The part of the account that commands use until they are answered.
    commands: Share,
    /// The part of the account that a command uses of which more has to arrive.
    incoming: Share,
    /// The bytes of them that the outlet was told last.
    told_bytes: u64,
}

/// A job that waits for its turn.
#[derive(Debug)]
pub(super) enum Job {
    /// Connecting a client that has been authenticated, and when it arrived.
    Authenticated(Box<Authenticated>, Instant),
    /// A command, and when it arrived.
    Command(Box<Command>, Instant),
    /// Asking a backend to renew the subscription to a channel, or the connection.
    Renew(Option<ChannelName>),
    /// A subscription that the application requests for the client.
    Subscribe {
        channel: ChannelName,
        info: Option<Bytes>,
    },
}

/// What an outstanding operation is for, with the channel if it is a subscription.
#[derive(Clone, Debug)]
pub(super) enum Pending {
    Command(OpenCommand, Option<ChannelName>),
    /// A subscription that the server initiated.
    Push(ChannelName),
    /// The renewal of the connection or of a subscription.
    Renewal,
}

impl Job {
    pub(super) fn is_subscribe(&self) -> bool {
        match self {
            Self::Command(command, _) => command.request.subscribed_channel().is_some(),
            Self::Authenticated(..) | Self::Renew(_) => false,
            Self::Subscribe { .. } => true,
        }
    }
}

impl Pending {
    pub(super) fn channel(&self) -> Option<&ChannelName> {
        match self {
            Self::Command(_, channel) => channel.as_ref(),
            Self::Push(channel) => Some(channel),
            Self::Renewal => None,
        }
    }
}

/// A command that has not been answered yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenCommand {
    pub(super) id: u32,
    pub(super) method: &'static str,
    pub(super) since: Instant,
    /// The memory that the command takes until it is answered.
    pub(super) bytes: u64,
}

impl Activity {
    /// Returns whether the session does nothing.
    pub(super) fn is_none(&self) -> bool {
        self.0.as_ref().is_none_or(|tasks| tasks.are_none())
    }

    /// Adds a job after those that wait.
    pub(super) fn add(&mut self, job: Job) {
        self.tasks().waiting.push_back(job);
    }

    /// Charges a command to `account` until it is [released](Self::release).
    pub(super) fn charge(&mut self, bytes: u64, account: &Account) {
        let share = &mut self.tasks().commands;
        match share.bytes() {
            0 => *share = account.share(bytes),
            held => share.set(held + bytes),
        }
    }

    /// Gives back what a command that has been answered took.
    pub(super) fn release(&mut self, bytes: u64) {
        if let Some(tasks) = &mut self.0 {
            let held = tasks.commands.bytes();
            tasks.commands.set(held.saturating_sub(bytes));
        }
    }

    /// Charges a command to `account` of which more has to arrive. Unlike other commands, it does
    /// not keep the session from reading.
    pub(super) fn keep_incoming(&mut self, bytes: u64, account: &Account) {
        self.tasks().incoming = account.share(bytes);
    }

    /// Gives back what a command took of which more had to arrive.
    pub(super) fn release_incoming(&mut self) {
        if let Some(tasks) = &mut self.0 {
            tasks.incoming = Share::default();
        }
    }

    /// Returns the memory of the commands that are kept, if it differs so much from what this
    /// method returned before that the outlet has to know.
    pub(super) fn changed_bytes(&mut self) -> Option<u64> {
        let tasks = self.0.as_mut()?;
        let bytes = tasks.commands.bytes() + tasks.incoming.bytes();
        let noted = if bytes < NOTED_BYTES_MIN { 0 } else { bytes };
        (std::mem::replace(&mut tasks.told_bytes, noted) != noted).then_some(noted)
    }

    /// Returns whether there is room for further commands.
    pub(super) fn has_room(&self) -> bool {
        self.0.as_ref().is_none_or(|tasks| {
            tasks.waiting.len() < WAITING_MAX && tasks.commands.bytes() < WAITING_BYTES_MAX
        })
    }

    /// Removes and returns the next job, if it may begin. Several subscriptions are made
    /// concurrently; every other job waits until all earlier ones have completed.
    pub(super) fn next(&mut self) -> Option<Job> {
        let Tasks {
            waiting, pending, ..
        } = &mut **self.0.as_mut()?;
        let subscribes = pending.iter().all(|one| one.channel().is_some());
        let is_subscribe = waiting.front().is_some_and(Job::is_subscribe);
        let is_among = pending.len() < SUBSCRIBES_AT_ONCE && subscribes && is_subscribe;
        if !pending.is_empty() && !is_among {
            return None;
        }
        waiting.pop_front()
    }

    /// Records an operation that has been started.
    pub(super) fn begin(&mut self, pending: Pending) {
        self.tasks().pending.push_back(pending);
    }

    /// Removes the oldest operation, which has completed.
    pub(super) fn complete(&mut self) -> Option<Pending> {
        self.0.as_mut()?.pending.pop_front()
    }

    /// Returns the operations that have been started.
    pub(super) fn pending(&self) -> impl Iterator<Item = &Pending> {
        self.0.iter().flat_map(|tasks| &tasks.pending)
    }

    /// Adds output.
    pub(super) fn say(&mut self, message: ServerMessage) {
        self.tasks().output.push(message);
    }

    /// Removes and returns the output, and frees the memory if there is nothing else.
    pub(super) fn take_output(&mut self) -> Vec<ServerMessage> {
        let Some(tasks) = &mut self.0 else {
            return Vec::new();
        };
        let output = std::mem::take(&mut tasks.output);
        if tasks.are_none() {
            self.0 = None;
        }
        output
    }

    fn tasks(&mut self) -> &mut Tasks {
        self.0.get_or_insert_default()
    }
}

impl Tasks {
    fn are_none(&self) -> bool {
        self.waiting.is_empty()
            && self.pending.is_empty()
            && self.output.is_empty()
            && self.incoming.bytes() == 0
            && self.told_bytes == 0
    }
}

#[cfg(test)]
mod tests {
    use linerate_budget::{Budget, Consumer};

    use super::*;

    fn job() -> Job {
        Job::Renew(None)
    }

    #[test]
    fn commands_are_charged_until_they_are_answered() {
        let account = Budget::new(1 << 30).account(Consumer::Messages);
        let mut activity = Activity::default();
        activity.charge(10_000, &account);
        assert_eq!(activity.changed_bytes(), None, "little is not worth a note");
        activity.charge(20_000, &account);
        assert_eq!(
            (account.bytes(), activity.changed_bytes()),
            (30_000, Some(30_000))
        );
        activity.release(10_000);
        assert_eq!(
            (account.bytes(), activity.changed_bytes()),
            (20_000, Some(20_000))
        );
        activity.release(20_000);
        assert_eq!((account.bytes(), activity.changed_bytes()), (0, Some(0)));
        activity.take_output();
        assert!(activity.0.is_none(), "an idle session takes no memory");
        activity.charge(7, &account);
        drop(activity);
        assert_eq!(account.bytes(), 0);
    }

    #[test]
    fn what_has_not_arrived_completely_is_charged_but_does_not_keep_the_session_from_reading() {
        let account = Budget::new(1 << 30).account(Consumer::Messages);
        let mut activity = Activity::default();
        activity.keep_incoming(2 * WAITING_BYTES_MAX, &account);
        assert!(activity.has_room());
        assert_eq!(activity.changed_bytes(), Some(2 * WAITING_BYTES_MAX));
        activity.take_output();
        assert_eq!(account.bytes(), 2 * WAITING_BYTES_MAX);
        activity.release_incoming();
        assert_eq!((account.bytes(), activity.changed_bytes()), (0, Some(0)));
    }

    #[test]
    fn commands_that_wait_are_limited_in_number_and_size() {
        let account = Account::default();
        let mut activity = Activity::default();
        for _ in 0..WAITING_MAX {
            assert!(activity.has_room());
            activity.add(job());
        }
        assert!(!activity.has_room());
        let mut activity = Activity::default();
        activity.charge(WAITING_BYTES_MAX - 1, &account);
        assert!(activity.has_room());
        activity.charge(1, &account);
        assert!(!activity.has_room());
        activity.release(1);
        assert!(activity.has_room());
    }
}
