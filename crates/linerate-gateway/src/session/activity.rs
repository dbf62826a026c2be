//! What a session is doing: the commands that wait, and the output that is not taken yet.

use std::{collections::VecDeque, time::Instant};

use bytes::Bytes;
use linerate_hub::ChannelName;

use super::work::SUBSCRIBES_AT_ONCE;
use crate::protocol::{
    command::{Command, Request},
    reply::ServerMessage,
};

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
}

/// A job that waits for its turn.
#[derive(Debug)]
pub(super) enum Job {
    /// A command, and when it arrived.
    Command(Box<Command>, Instant),
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
}

impl Job {
    pub(super) fn is_subscribe(&self) -> bool {
        match self {
            Self::Command(command, _) => match &command.request {
                Request::Pusher(request) => request.subscribed_channel().is_some(),
                request => matches!(request, Request::Subscribe(_)),
            },
            Self::Subscribe { .. } => true,
        }
    }
}

impl Pending {
    pub(super) fn channel(&self) -> Option<&ChannelName> {
        match self {
            Self::Command(_, channel) => channel.as_ref(),
            Self::Push(channel) => Some(channel),
        }
    }
}

/// A command that has not been answered yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenCommand {
    pub(super) id: u32,
    pub(super) method: &'static str,
    pub(super) since: Instant,
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

    /// Returns the number of jobs that wait.
    pub(super) fn waiting_count(&self) -> usize {
        self.0.as_ref().map_or(0, |tasks| tasks.waiting.len())
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
        self.waiting.is_empty() && self.pending.is_empty() && self.output.is_empty()
    }
}
