//! What a worker does in its turns: takes bursts, lets the hub freeze blocks, hands them out.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use linerate_broker::{Gap, GapReason};
use linerate_filter::Evaluated;
use linerate_hub::{ChannelName, GapCause, Publication};
use tokio::{task::yield_now, time::sleep};

use super::{
    Hub, Worker,
    inbox::{Arrival, Inbox},
};
use crate::protocol::Transmit;

/// How long a turn may take until the sockets are served again.
const TURN: Duration = Duration::from_millis(2);

/// Clients that are handed their blocks between two looks at the clock.
const CLIENTS_A_LOOK: usize = 16;

/// Publications and gaps that go into the hub before its blocks are handed out, unless a ring is half full earlier:
/// a client that keeps up is never overtaken by its ring.
const ARRIVALS_A_TURN: usize = 512;

/// Bytes of payload that go into the hub before their blocks are handed out.
const BYTES_A_TURN: usize = 512 * 1024;

/// Bytes that filters search in publications that go into the hub before the sockets are served again. A publication in
/// which they search more is evaluated in slices.
const SEARCHED_A_TURN: usize = 512 * 1024;

/// How long filters are evaluated until the sockets are served again.
const SLICE: Duration = Duration::from_micros(50);

/// A worker rests that has been handing out for so long, if that gathers what goes together: a write costs the same for
/// one publication as for many.
const LONG: Duration = Duration::from_millis(1);

/// How long it rests.
const REST: Duration = Duration::from_millis(2);

/// Jobs done before the sockets are served again.
const JOBS_A_TURN: usize = 64;

impl Worker {
    /// Does the worker's part for ever: to be polled on its thread, beside its listener.
    pub async fn run(&self) {
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
            if arrivals.is_empty() {
                if handed.is_worth_a_rest() {
                    sleep(REST).await;
                }
                self.wait().await;
            }
        }
    }

    async fn do_jobs(&self) {
        let mut done = 0;
        while let Some(job) = self.inbox.take_job() {
            job(self);
            done += 1;
            if done % JOBS_A_TURN == 0 {
                yield_now().await;
            }
        }
    }

    /// Evaluates filters for what is to go into the hub next if that takes long, in slices between which sockets are
    /// served. What follows waits, since publications stay in order.
    async fn evaluate(&self, next: Option<&Arrival>) -> Evaluated {
        let mut known = Evaluated::default();
        let is_dear = |next: &&Arrival| searched_bytes(&self.state().hub, next) > SEARCHED_A_TURN;
        if let Some(Arrival::Publication(channel, publication, _)) = next.filter(is_dear) {
            while !self.evaluate_slice(channel, publication, &mut known) {
                self.transmit().await;
                // Once more: after its look at the sockets, the runtime polls this task before those that it has woken.
                yield_now().await;
            }
        }
        known
    }

    /// Evaluates filters until the slice is over, and returns whether no filter is left.
    fn evaluate_slice(
        &self,
        channel: &ChannelName,
        publication: &Publication,
        known: &mut Evaluated,
    ) -> bool {
        let begun = Instant::now();
        let is_over = || begun.elapsed() >= SLICE;
        self.state()
            .hub
            .evaluate(channel, publication, known, is_over)
    }

    /// Lets the hub know what has arrived, as much as fits in a turn, and what time it is. `known` are the filters that
    /// have been evaluated for the first.
    fn absorb(&self, arrivals: &mut VecDeque<Arrival>, known: &Evaluated) {
        let mut state = self.state();
        let now = Instant::now();
        let hub = &mut state.hub;
        let (mut taken, mut bytes, mut searched) = (0, 0, 0);
        let nothing = Evaluated::default();
        while taken < ARRIVALS_A_TURN && bytes < BYTES_A_TURN {
            let next = arrivals.pop_front_if(|next| {
                searched += searched_bytes(hub, next);
                taken == 0 || searched <= SEARCHED_A_TURN
            });
            let known = if taken == 0 { known } else { &nothing };
            taken += 1;
            match next {
                None => break,
                Some(Arrival::Gap(gap)) => tell_gap(hub, now, &gap),
                Some(Arrival::Publication(channel, publication, since)) => {
                    bytes += publication.payload().len();
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

    /// Hands out what is ready, in slices between which sockets are served.
    async fn transmit(&self) -> Handed {
        let mut handed = Handed::default();
        let mut is_done = false;
        while !is_done {
            let begun = Instant::now();
            is_done = self.transmit_slice(begun, &mut handed);
            handed.busy += begun.elapsed();
            yield_now().await;
        }
        handed
    }

    /// Hands out blocks until nothing is ready or the turn is over; says whether nothing is ready.
    fn transmit_slice(&self, now: Instant, handed: &mut Handed) -> bool {
        let mut state = self.state();
        let state = &mut *state;
        let mut served = 0;
        while let Some(client) = state.hub.poll_ready() {
            let Some(known) = state.clients.get(&client) else {
                continue;
            };
            while known.outlet.has_room() || state.hub.is_slow(client) {
                match state.hub.poll_transmit(now, client) {
                    Some(transmit) => {
                        handed.count(&transmit);
                        known.outlet.transmit(transmit);
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

    /// Waits until something has arrived, or a tick is due.
    async fn wait(&self) {
        let due = self.state().hub.poll_timeout();
        match due {
            None => self.inbox.arrived().await,
            Some(due) => {
                // An error means that the tick is due.
                _ = tokio::time::timeout_at(due.into(), self.inbox.arrived()).await;
            }
        }
    }
}

/// What was handed out in a turn.
#[derive(Clone, Copy, Debug, Default)]
struct Handed {
    busy: Duration,
    blocks: u64,
    messages: u64,
}

impl Handed {
    fn count(&mut self, transmit: &Transmit) {
        if let Transmit::Block { messages, .. } = transmit {
            self.blocks += 1;
            self.messages += u64::from(*messages);
        }
    }

    /// Says whether the load is such that clients get several publications with each write: then waiting a little
    /// makes it more. Otherwise it would only make them wait.
    fn is_worth_a_rest(self) -> bool {
        self.busy >= LONG && self.messages >= 2 * self.blocks
    }
}

/// Returns how many bytes filters would search.
fn searched_bytes(hub: &Hub, arrival: &Arrival) -> usize {
    match arrival {
        Arrival::Gap(_) => 0,
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

/// Lets the broker's reader go on when a worker has ended.
struct CloseOnDrop<'a>(&'a Inbox);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}
