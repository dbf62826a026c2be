//! Publications of this node that wait until the earlier ones in their channel are stored.
//!
//! Only one message of a node is on its way in a channel, because each must name the one before it.
//! Publications that arrive in the meantime share the next message, so that the rate does not
//! depend on the time to the server.

use std::{
    collections::VecDeque,
    mem,
    sync::{Arc, Mutex},
};

use foldhash::HashMap;
use linerate_hub::{ChannelName, StreamPosition};
use tokio::{sync::oneshot, time::Instant};

use super::{
    home::{DurableChannel, Home},
    wire,
};
use crate::{
    broker::BrokerError,
    lock::lock,
    request::{Publish, Published},
};

/// The maximum number of channels whose positions are remembered. Beyond it, all of those in which
/// nothing is on its way are forgotten.
const CHANNELS_MAX: usize = 100_000;

/// The maximum size of the publications that share a message, in bytes.
const BATCH_BYTES_MAX: usize = 64 << 10;

/// The queues of channels in which this node has published.
#[derive(Debug, Default)]
pub(super) struct Queues {
    channels: Mutex<HashMap<ChannelName, Arc<Queue>>>,
}

/// The queue of a channel.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Waiting>,
    /// True while a task sends what is waiting.
    is_sending: bool,
    tip: Option<Tip>,
}

/// The end of a channel, as far as this node knows.
#[derive(Clone, Debug)]
pub(super) struct Tip {
    pub(super) position: StreamPosition,
    pub(super) home: Home,
    /// The number of the last message of the channel in the stream of its home.
    pub(super) sequence: u64,
    /// The number of the stored position.
    pub(super) position_sequence: u64,
    /// When it was known.
    pub(super) known: Instant,
}

/// A publication that waits.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) durable: DurableChannel,
    pub(super) publish: Publish,
    pub(super) done: oneshot::Sender<Result<Published, BrokerError>>,
}

impl Queues {
    /// Adds a publication. Returns the queue if the caller must send what is waiting in it.
    pub(super) fn push(&self, waiting: Waiting) -> Option<Arc<Queue>> {
        let mut channels = lock(&self.channels);
        let channel = &waiting.durable.channel;
        if channels.len() >= CHANNELS_MAX && !channels.contains_key(channel) {
            channels.retain(|_, queue| lock(&queue.state).is_sending);
        }
        let queue = Arc::clone(channels.entry(channel.clone()).or_default());
        let mut state = lock(&queue.state);
        state.waiting.push_back(waiting);
        let must_send = !mem::replace(&mut state.is_sending, true);
        drop(state);
        must_send.then_some(queue)
    }
}

impl Queue {
    /// Removes the publications to send next, all with the same options, and at most about
    /// `bytes_max` bytes if there are several. If nothing is waiting, the caller stops sending, and
    /// the queue remembers its `tip`.
    pub(super) fn next(&self, bytes_max: usize, tip: &mut Option<Tip>) -> Option<Vec<Waiting>> {
        let mut state = lock(&self.state);
        // Publishers that no longer wait have reached their deadline.
        state.waiting.retain(|waiting| !waiting.done.is_closed());
        let Some(first) = state.waiting.pop_front() else {
            state.is_sending = false;
            state.tip = tip.take();
            return None;
        };
        let mut bytes = wire::part_bytes(&first.publish);
        let mut batch = vec![first];
        while let Some(next) = state.waiting.front()
            && batch.len() < wire::PARTS_MAX
            && can_share(&batch[0], next)
        {
            bytes += wire::part_bytes(&next.publish);
            if bytes > bytes_max.min(BATCH_BYTES_MAX) {
                break;
            }
            batch.extend(state.waiting.pop_front());
        }
        Some(batch)
    }

    /// Removes the end of the channel that was known when sending ended.
    pub(super) fn take_tip(&self) -> Option<Tip> {
        lock(&self.state).tip.take()
    }
}

/// Returns whether two publications can be in the same message. The server remembers only one
/// idempotency key for each message.
fn can_share(one: &Waiting, other: &Waiting) -> bool {
    one.durable.options == other.durable.options
        && one.publish.idempotency_key.is_none()
        && other.publish.idempotency_key.is_none()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use linerate_hub::{ChannelName, Epoch, StreamPosition};
    use tokio::{sync::oneshot, time::Instant};

    use super::{BATCH_BYTES_MAX, CHANNELS_MAX, DurableChannel, Home, Queues, Tip, Waiting, wire};
    use crate::{
        broker::BrokerError,
        request::{Publish, Published, StreamOptions},
    };

    type Answer = oneshot::Receiver<Result<Published, BrokerError>>;

    const OPTIONS: StreamOptions = StreamOptions {
        is_durable: true,
        size_max: 10,
        ttl: Duration::from_secs(60),
    };

    fn waiting(
        channel: &str,
        bytes: usize,
        key: Option<&str>,
        size_max: usize,
    ) -> (Waiting, Answer) {
        let (done, answer) = oneshot::channel();
        let options = StreamOptions {
            size_max,
            ..OPTIONS
        };
        let durable = DurableChannel {
            channel: ChannelName::new(channel).unwrap(),
            subject: channel.to_owned(),
            options,
        };
        let publish = Publish {
            payload: vec![0; bytes].into(),
            info: None,
            tags: Vec::new(),
            idempotency_key: key.map(str::to_owned),
            options,
        };
        let waiting = Waiting {
            durable,
            publish,
            done,
        };
        (waiting, answer)
    }

    fn tip() -> Option<Tip> {
        let epoch = Epoch::new("e");
        Some(Tip {
            position: StreamPosition { epoch, offset: 1 },
            home: Home::of(OPTIONS),
            sequence: 1,
            position_sequence: 1,
            known: Instant::now(),
        })
    }

    #[test]
    fn publications_share_a_message_within_its_limits() {
        let queues = Queues::default();
        let large = BATCH_BYTES_MAX / 2;
        let mut publications = vec![(1, None, 10); wire::PARTS_MAX + 1];
        publications.extend([(1, Some("k"), 10), (1, None, 10), (1, None, 5)]);
        publications.extend([(large, None, 5), (large, None, 5), (2 * large, None, 5)]);
        let (mut queue, mut answers) = (None, Vec::new());
        for (bytes, key, size_max) in publications {
            let (waiting, answer) = waiting("a", bytes, key, size_max);
            queue = queues.push(waiting).or(queue);
            answers.push(answer);
        }
        let (queue, mut tip, mut sizes) = (queue.unwrap(), tip(), Vec::new());
        while let Some(batch) = queue.next(usize::MAX, &mut tip) {
            sizes.push(batch.len());
        }
        assert_eq!(sizes, [wire::PARTS_MAX, 1, 1, 1, 2, 1, 1]);
        assert!(tip.is_none() && queue.take_tip().is_some());
    }

    #[test]
    fn one_task_sends_and_skips_publishers_that_have_left() {
        let queues = Queues::default();
        let (first, _answer) = waiting("a", 1, None, 10);
        let queue = queues.push(first).unwrap();
        let (second, answer) = waiting("a", 1, None, 10);
        assert!(queues.push(second).is_none());
        drop(answer);
        assert_eq!(queue.next(usize::MAX, &mut None).unwrap().len(), 1);
        assert!(queue.next(usize::MAX, &mut None).is_none());
        let (third, _answer) = waiting("a", 1, None, 10);
        assert!(queues.push(third).is_some());
    }

    #[test]
    fn channels_are_forgotten_unless_they_are_in_use() {
        let queues = Queues::default();
        let (busy, _answer) = waiting("busy", 1, None, 10);
        assert!(queues.push(busy).is_some());
        for number in 0..CHANNELS_MAX {
            let (idle, _) = waiting(&number.to_string(), 1, None, 10);
            let queue = queues.push(idle).unwrap();
            assert!(queue.next(usize::MAX, &mut tip()).is_none());
        }
        assert_eq!(queues.channels.lock().unwrap().len(), 2);
        let (again, _answer) = waiting("busy", 1, None, 10);
        assert!(queues.push(again).is_none());
    }
}
