//! A simulated client: it follows channels across connections, and checks what it receives.

use std::{collections::BTreeMap, mem, sync::Arc};

use bytes::Bytes;
use linerate_hub::ChannelName;
use tokio::sync::mpsc;

use super::{
    pipe::Pipe,
    seen::Seen,
    server::recovers_on_all_nodes,
    wire::{Line, Native, Position, Publication, Subscribed, native, sdk},
};
use crate::protocol::{Dialect, centrifuge, native as native_protocol};

/// How long a client waits for an answer before it connects again, in milliseconds.
const ANSWER_MAX_MS: u64 = 10_000;

/// How long a client waits before it asks again after an error, in milliseconds.
const RETRY_MS: u64 = 200;

/// A client, which stands for `weight` equal ones.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) number: usize,
    pub(super) weight: u32,
    pub(super) follows: Vec<Follow>,
    pub(super) seat: Option<Seat>,
    /// When to connect again, in milliseconds.
    pub(super) retry_at: u64,
    pub(super) is_stalled: bool,
    is_native: bool,
    /// The number of connections so far.
    pub(super) connections: u64,
}

/// A client's connection.
#[derive(Debug)]
pub(super) struct Seat {
    /// The number of the node.
    pub(super) node: usize,
    pub(super) pipe: Arc<Pipe>,
    commands: mpsc::UnboundedSender<Bytes>,
    buffer: Vec<u8>,
    since: u64,
    is_connected: bool,
    asked: u32,
}

/// A channel that the client follows.
#[derive(Debug)]
pub(super) struct Follow {
    pub(super) channel: ChannelName,
    stage: Stage,
    /// The ID of the channel in blocks.
    id: u64,
    /// The position to recover from.
    position: Option<Position>,
    /// The newest publication that was seen: the run of its stream, and its number there.
    pub(super) newest: Option<(u64, u64)>,
    /// The newest number that was seen of each run.
    seen: BTreeMap<u64, u64>,
    /// What was reported as missing since then.
    told: Option<Missing>,
}

#[derive(Debug)]
enum Stage {
    Idle { retry_at: u64 },
    Joining { id: u32, since: u64 },
    Subscribed,
}

/// The number of missing publications according to gaps.
#[derive(Clone, Copy, Debug)]
enum Missing {
    Count(u64),
    Unknown,
}

impl Client {
    pub(super) fn new(number: usize, weight: u32, channels: Vec<ChannelName>) -> Self {
        let follows = channels.into_iter().map(|channel| Follow {
            channel,
            stage: Stage::Idle { retry_at: 0 },
            id: 0,
            position: None,
            newest: None,
            seen: BTreeMap::new(),
            told: None,
        });
        Self {
            number,
            weight,
            follows: follows.collect(),
            seat: None,
            retry_at: 0,
            is_stalled: false,
            is_native: number % 2 == 1,
            connections: 0,
        }
    }

    pub(super) fn dialect(&self) -> &'static Dialect {
        match self.is_native {
            true => &native_protocol::BLOCKS,
            false => &centrifuge::stream::JSON,
        }
    }

    /// Uses a new connection to a node.
    pub(super) fn sit(
        &mut self,
        now: u64,
        node: usize,
        pipe: Arc<Pipe>,
        commands: mpsc::UnboundedSender<Bytes>,
    ) {
        self.connections += 1;
        for follow in &mut self.follows {
            follow.stage = Stage::Idle { retry_at: now };
        }
        let mut seat = Seat {
            node,
            pipe,
            commands,
            buffer: Vec::new(),
            since: now,
            is_connected: false,
            asked: 0,
        };
        seat.ask("\"connect\":{}");
        self.seat = Some(seat);
    }

    /// Ends the connection, if there is one. What was not read is lost.
    pub(super) fn leave(&mut self, retry_at: u64) {
        if let Some(seat) = self.seat.take() {
            seat.pipe.leave();
            self.retry_at = retry_at;
        }
    }

    /// Reads what has arrived, and asks for what is missing. Returns whether the server has to do
    /// something.
    pub(super) fn act(&mut self, now: u64, seen: &mut Seen) -> bool {
        let Some(mut seat) = self.seat.take() else {
            return false;
        };
        let before = (seat.asked, seat.pipe.unread());
        let is_closed = match self.is_stalled {
            true => false,
            false => {
                let is_closed = seat.pipe.read(&mut seat.buffer);
                seen.record((self.number, now, seat.buffer.len()));
                self.read(now, &mut seat, seen);
                is_closed
            }
        };
        if is_closed || self.has_waited(now, &seat) {
            seat.pipe.leave();
            self.retry_at = now + RETRY_MS;
            return true;
        }
        if seat.is_connected {
            for follow in &mut self.follows {
                follow.subscribe(now, &mut seat);
            }
        }
        let has_changed = before != (seat.asked, seat.pipe.unread());
        self.seat = Some(seat);
        has_changed
    }

    /// Returns whether all channels are subscribed.
    pub(super) fn is_subscribed(&self) -> bool {
        let mut follows = self.follows.iter();
        self.seat.is_some() && follows.all(|follow| matches!(follow.stage, Stage::Subscribed))
    }

    fn has_waited(&self, now: u64, seat: &Seat) -> bool {
        let waits = |since: u64| now - since > ANSWER_MAX_MS;
        let mut follows = self.follows.iter();
        !seat.is_connected && waits(seat.since)
            || follows.any(|it| matches!(it.stage, Stage::Joining { since, .. } if waits(since)))
    }

    fn read(&mut self, now: u64, seat: &mut Seat, seen: &mut Seen) {
        let buffer = mem::take(&mut seat.buffer);
        let mut rest = &buffer[..];
        if self.is_native {
            while let Some(item) = native(&mut rest) {
                match item {
                    Native::Lines(lines) => {
                        for line in lines {
                            self.handle(now, seat, line, seen);
                        }
                    }
                    Native::Block(block) => {
                        let mut follows = self.follows.iter_mut();
                        let is_of = |it: &&mut Follow| {
                            it.id == block.channel && matches!(it.stage, Stage::Subscribed)
                        };
                        // The subscription may have ended while the block was on its way.
                        let Some(follow) = follows.find(is_of) else {
                            continue;
                        };
                        if let Some(missed) = block.missed {
                            follow.miss(missed, seen);
                        }
                        for publication in block.publications {
                            follow.see(publication, seen);
                        }
                    }
                }
            }
        } else {
            while let Some(line) = sdk(&mut rest) {
                self.handle(now, seat, line, seen);
            }
        }
        seat.buffer = rest.to_vec();
    }

    fn handle(&mut self, now: u64, seat: &mut Seat, line: Line, seen: &mut Seen) {
        if let Some(push) = line.push {
            let mut follows = self.follows.iter_mut();
            let Some(follow) = follows.find(|it| it.channel.as_str() == push.channel) else {
                return;
            };
            if let Some(publication) = push.publication {
                follow.see(publication, seen);
            }
            if push.unsubscribe.is_some() {
                seen.ended += 1;
                follow.stage = Stage::Idle { retry_at: now };
            }
        } else if line.connect.is_some() {
            seat.is_connected = true;
        } else if line.id == 0 {
            seat.send("{}");
        } else {
            let mut follows = self.follows.iter_mut();
            let is_asked =
                |it: &&mut Follow| matches!(it.stage, Stage::Joining { id, .. } if id == line.id);
            let Some(follow) = follows.find(is_asked) else {
                return;
            };
            match (line.subscribe, line.error) {
                (Some(subscribed), _) => follow.begin(subscribed, self.is_native, seen),
                (None, Some(error)) => {
                    assert!(error.temporary, "{error:?}");
                    let retry_at = now + RETRY_MS;
                    follow.stage = Stage::Idle { retry_at };
                }
                (None, None) => panic!("neither an answer nor an error"),
            }
        }
    }
}

impl Seat {
    fn ask(&mut self, request: &str) -> u32 {
        self.asked += 1;
        let id = self.asked;
        self.send(&format!("{{\"id\":{id},{request}}}"));
        id
    }

    fn send(&mut self, command: &str) {
        // An error means that the server has ended the session.
        _ = self
            .commands
            .send(Bytes::copy_from_slice(command.as_bytes()));
    }
}

impl Follow {
    fn subscribe(&mut self, now: u64, seat: &mut Seat) {
        if !matches!(self.stage, Stage::Idle { retry_at } if retry_at <= now) {
            return;
        }
        let recover = self.position.as_ref().map_or_else(String::new, |position| {
            let Position { epoch, offset } = position;
            format!(",\"recover\":true,\"epoch\":\"{epoch}\",\"offset\":{offset}")
        });
        let channel = self.channel.as_str();
        let request = format!("\"subscribe\":{{\"channel\":\"{channel}\"{recover}}}");
        let id = seat.ask(&request);
        self.stage = Stage::Joining { id, since: now };
    }

    /// Handles the answer to a subscription.
    fn begin(&mut self, subscribed: Subscribed, is_native: bool, seen: &mut Seen) {
        self.stage = Stage::Subscribed;
        self.id = subscribed.id;
        let is_recovered = subscribed.recovered;
        seen.record((self.channel.as_str(), is_recovered, subscribed.offset));
        if is_recovered {
            seen.recovered += 1;
        } else {
            seen.unrecovered += u64::from(subscribed.was_recovering);
            self.told = Some(Missing::Unknown);
            if !recovers_on_all_nodes(&self.channel) {
                // The link of this node may lag behind that of the previous one.
                self.seen.clear();
            }
        }
        let newest = Position {
            epoch: subscribed.epoch,
            offset: subscribed.offset,
        };
        seen.followed += u64::from(!is_recovered) * subscribed.publications.len() as u64;
        for publication in subscribed.publications {
            self.see(publication, seen);
        }
        // What a native client has missed follows the answer.
        if !(is_native && is_recovered) {
            self.position = (!newest.epoch.is_empty()).then_some(newest);
        }
    }

    fn miss(&mut self, missed: Option<u64>, seen: &mut Seen) {
        seen.gaps += 1;
        seen.record((self.channel.as_str(), missed));
        if self.position.is_some() {
            // The gap ends the subscription, and the client asks for what it missed.
            return;
        }
        self.told = Some(match (self.told, missed) {
            (None, Some(missed)) => Missing::Count(missed),
            (Some(Missing::Count(before)), Some(missed)) => Missing::Count(before + missed),
            (_, None) | (Some(Missing::Unknown), _) => Missing::Unknown,
        });
    }

    /// Checks a publication: it must be the next one, unless the client was told otherwise.
    fn see(&mut self, publication: Publication, seen: &mut Seen) {
        seen.publications += 1;
        let (run, number) = publication.data;
        seen.record((self.channel.as_str(), run, number));
        if let (Some(position), 1..) = (&mut self.position, publication.offset) {
            position.offset = publication.offset;
        }
        let highest = self.seen.insert(run, number);
        assert!(
            highest.is_none_or(|highest| highest < number),
            "{run}:{number} after {run}:{highest:?} of {}",
            self.channel
        );
        let told = self.told.take();
        let Some((before, newest)) = self.newest.replace((run, number)) else {
            return;
        };
        if before != run {
            assert!(
                told.is_some(),
                "{run}:{number} after {before}:{newest} without notice"
            );
            return;
        }
        let missing = match told {
            None => 0,
            Some(Missing::Count(count)) => count,
            Some(Missing::Unknown) => return,
        };
        let channel = &self.channel;
        assert_eq!(number, newest + 1 + missing, "{run}:{newest} of {channel}");
    }
}
