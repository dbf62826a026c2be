//! The turns of a worker: it takes bursts from its inbox, lets the hub freeze blocks, and delivers
//! them.

use std::{
    collections::VecDeque,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use futures_util::FutureExt;
use linerate_broker::{Gap, GapReason};
use linerate_filter::Evaluated;
use linerate_hub::{ChannelName, ClientId, GapCause, Publication};
use tokio::{task::yield_now, time::sleep};

use super::{
    Hub, Notice, Worker,
    inbox::{ARRIVALS_A_TURN, Arrival, BYTES_A_TURN, Inbox},
};
use crate::{clock::now, protocol::Transmit};

/// How long a turn may take before sockets are served again.
const TURN: Duration = Duration::from_millis(2);

/// The number of clients that are served between two checks of the clock.
const CLIENTS_A_LOOK: usize = 16;

/// The maximum number of bytes that filters search in the publications of a turn before sockets are
/// served again. A publication that needs more is evaluated in slices.
const SEARCHED_A_TURN: usize = 512 * 1024;

/// How long filters are evaluated before sockets are served again.
const SLICE: Duration = Duration::from_micros(50);

/// A worker that has been delivering for this long pauses if that lets publications gather: a write
/// costs the same for one publication as for many.
const LONG: Duration = Duration::from_millis(1);

/// The length of this pause.
const REST: Duration = Duration::from_millis(2);

/// The number of jobs run before sockets are served again.
const JOBS_A_TURN: usize = 64;

impl Worker {
    /// Runs the worker. Never returns. Spawn it on the worker's thread: a task is woken without a
    /// system call there, unlike the future that the runtime blocks on.
    pub(crate) async fn run(&self) {
        let _close = CloseOnDrop(&self.inbox);
        let mut arrivals = VecDeque::new();
        let mut revocations = 0;
        loop {
            self.tell_of_revocations(&mut revocations);
            self.do_jobs().await;
            if arrivals.is_empty() {
                self.inbox.take(&mut arrivals);
            }
            let known = self.evaluate(arrivals.front()).await;
            self.absorb(&mut arrivals, &known);
            let handed = self.transmit().await;
            if !arrivals.is_empty() {
                yield_now().await;
                continue;
            }
            if handed.is_worth_a_rest() {
                sleep(REST).await;
            }
            self.wait().await;
        }
    }

    /// Notifies the clients that revocations since `seen` may affect, and updates `seen`.
    fn tell_of_revocations(&self, seen: &mut u64) {
        let revocations = self.node.revocations.in_force();
        if revocations.changes() == *seen {
            return;
        }
        let (concerned, changes) = revocations.concerned_since(*seen);
        let clients = &self.shard().clients;
        let meant = clients.values();
        for client in meant.filter(|client| concerned.has(client.connection.user())) {
            client.outlet.notify(Notice::Revoked);
        }
        *seen = changes;
    }

    async fn do_jobs(&self) {
        let mut done = 0;
        while let Some(job) = self.inbox.take_job() {
            job(&self.shard());
            done += 1;
            if done % JOBS_A_TURN == 0 {
                yield_now().await;
            }
        }
    }

    /// If evaluating filters for the next arrival would take long, evaluates them in slices and
    /// serves sockets in between. Later arrivals wait, because publications stay in order.
    async fn evaluate(&self, next: Option<&Arrival>) -> Evaluated {
        let mut known = Evaluated::default();
        let is_dear = |next: &&Arrival| searched_bytes(&self.shard().hub, next) > SEARCHED_A_TURN;
        if let Some(Arrival::Publication(channel, publication, _)) = next.filter(is_dear) {
            while !self.evaluate_slice(channel, publication, &mut known) {
                self.transmit().await;
                yield_now().await;
            }
        }
        known
    }

    /// Evaluates filters for one slice of time. Returns whether all filters have been evaluated.
    fn evaluate_slice(
        &self,
        channel: &ChannelName,
        publication: &Publication,
        known: &mut Evaluated,
    ) -> bool {
        let begun = now();
        let is_over = || now() - begun >= SLICE;
        self.shard()
            .hub
            .evaluate(channel, publication, known, is_over)
    }

    /// Passes arrivals to the hub, as many as fit into a turn, and advances its clock. `known`
    /// holds the filter results already computed for the first arrival.
    fn absorb(&self, arrivals: &mut VecDeque<Arrival>, known: &Evaluated) {
        let mut shard = self.shard();
        let now = now();
        let hub = &mut shard.hub;
        let (mut taken, mut bytes, mut searched) = (0, 0, 0);
        let mut has_published = false;
        let nothing = Evaluated::default();
        while taken < ARRIVALS_A_TURN && bytes < BYTES_A_TURN {
            let next = arrivals.pop_front_if(|next| {
                if has_published && matches!(next, Arrival::Barrier(_)) {
                    return false;
                }
                searched += searched_bytes(hub, next);
                taken == 0 || searched <= SEARCHED_A_TURN
            });
            let known = if taken == 0 { known } else { &nothing };
            taken += 1;
            match next {
                None => break,
                Some(Arrival::Barrier(reached)) => drop(reached),
                Some(Arrival::Gap(gap)) => tell_gap(hub, now, &gap),
                Some(Arrival::Publication(channel, publication, since)) => {
                    bytes += publication.payload().len();
                    has_published = true;
                    if hub.publish_evaluated(now, since, &channel, publication, known) {
                        break;
                    }
                }
            }
        }
        if hub.poll_timeout().is_some_and(|due| due <= now) {
            hub.handle_timeout(now);
        }
    }

    /// Delivers ready blocks in slices, serving sockets in between.
    async fn transmit(&self) -> TurnDeliveries {
        let mut handed = TurnDeliveries::default();
        loop {
            let begun = now();
            let is_done = self.transmit_slice(begun, &mut handed);
            handed.busy += now() - begun;
            if is_done {
                return handed;
            }
            yield_now().await;
        }
    }

    /// Delivers blocks until none are ready or the turn is over. Returns whether none are ready.
    fn transmit_slice(&self, now: Instant, handed: &mut TurnDeliveries) -> bool {
        let mut shard = self.shard();
        let shard = &mut *shard;
        let mut served = 0;
        while let Some(client) = shard.hub.poll_ready() {
            let Some(known) = shard.clients.get(&client) else {
                continue;
            };
            while known.outlet.has_room() || shard.hub.is_slow(client) {
                match shard.hub.poll_transmit(now, client) {
                    Some(transmit) => {
                        handed.count(&transmit);
                        known.transmit(transmit);
                    }
                    None => break,
                }
            }
            known.outlet.flush();
            served += 1;
            if served % CLIENTS_A_LOOK == 0 && now.elapsed() >= TURN {
                return false;
            }
        }
        true
    }

    /// Returns whether everything that has arrived from the broker has been passed to the hub, and
    /// all jobs are done.
    pub(crate) fn has_absorbed_all(&self) -> bool {
        self.is_idle.load(Ordering::Relaxed) && self.inbox.is_empty()
    }

    /// Hands a client everything that it has not been given yet, even
    /// if its outlet has no room, up to about `bytes_max` bytes. Returns whether that was
    /// everything.
    pub(crate) fn hand_all(&self, client: ClientId, bytes_max: usize) -> bool {
        let now = now();
        let mut shard = self.shard();
        let shard = &mut *shard;
        let Some(known) = shard.clients.get(&client) else {
            return false;
        };
        let mut is_done = false;
        while known.outlet.pending_bytes() < bytes_max {
            let Some(transmit) = shard.hub.poll_transmit(now, client) else {
                is_done = true;
                break;
            };
            known.transmit(transmit);
        }
        known.outlet.flush();
        is_done
    }

    /// Releases all batches before they are due.
    pub(crate) fn release_all(&self) {
        self.shard().hub.release_all(now());
    }

    /// Waits until something has arrived, or a tick is due. Sockets are served in any case: a yield
    /// is a system call, which an empty inbox makes unnecessary.
    async fn wait(&self) {
        self.is_idle.store(true, Ordering::Relaxed);
        self.wait_for_more().await;
        self.is_idle.store(false, Ordering::Relaxed);
    }

    async fn wait_for_more(&self) {
        if self.inbox.arrived().now_or_never().is_some() {
            return yield_now().await;
        }
        let due = self.shard().hub.poll_timeout();
        match due {
            None => self.inbox.arrived().await,
            Some(due) => {
                // An error means that the tick is due.
                _ = tokio::time::timeout_at(due.into(), self.inbox.arrived()).await;
            }
        }
    }
}

/// What was delivered in a turn.
#[derive(Clone, Copy, Debug, Default)]
struct TurnDeliveries {
    busy: Duration,
    blocks: u64,
    messages: u64,
}

impl TurnDeliveries {
    fn count(&mut self, transmit: &Transmit) {
        if let Transmit::Block { messages, .. } = transmit {
            self.blocks += 1;
            self.messages += u64::from(*messages);
        }
    }

    /// Returns whether a pause is worthwhile: when clients already get several publications per
    /// write, a short wait increases that number. Otherwise it would only add delay.
    fn is_worth_a_rest(self) -> bool {
        self.busy >= LONG && self.messages >= 2 * self.blocks
    }
}

/// Returns how many bytes filters would search.
fn searched_bytes(hub: &Hub, arrival: &Arrival) -> usize {
    match arrival {
        Arrival::Barrier(_) | Arrival::Gap(_) => 0,
        Arrival::Publication(channel, publication, _) => hub.searched_bytes(channel, publication),
    }
}

fn tell_gap(hub: &mut Hub, now: Instant, gap: &Gap) {
    let cause = match gap.reason {
        GapReason::StreamReset => GapCause::StreamReset,
        GapReason::Overflow | GapReason::Oversized => GapCause::Overflow,
        _ => GapCause::LinkLost,
    };
    match &gap.channels {
        None => hub.handle_gap(now, None, cause),
        Some(channels) => {
            for channel in channels {
                hub.handle_gap(now, Some(channel), cause);
            }
        }
    }
}

/// Closes the inbox when the worker ends, so that the broker's reader does not wait for it.
struct CloseOnDrop<'a>(&'a Inbox);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}
