//! The node's side of the broker's reader: passes events on, or holds them back while clients move
//! from one process to another.

use std::{
    fmt, mem,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use linerate_broker::{BoxFuture, Event, Gap, GapReason, Ingest};
use linerate_hub::Publication;
use parking_lot::Mutex;
use tokio::{
    sync::{Notify, RwLock},
    time::sleep,
};

use super::{
    Dispatcher,
    cluster::message::is_of_moves,
    splice::{Splice, Trail},
};
use crate::clock::now;

/// The maximum size of the payloads and messages that are held back, in bytes.
const HELD_BYTES_MAX: usize = 64 << 20;

/// How often is checked whether something is over.
const CHECK: Duration = Duration::from_millis(1);

/// How long a publication that another process has passed on may take to arrive here.
const LATE_MAX: Duration = Duration::from_secs(5);

/// Passes the events of the broker to the dispatcher.
pub(crate) struct Intake {
    dispatcher: Arc<Dispatcher>,
    /// Read while events are passed on; written to pass them on differently.
    mode: RwLock<Mode>,
    marked: Notify,
}

enum Mode {
    /// Passes on, and notes what it passes on.
    Following(Mutex<Followed>),
    Holding(Mutex<Held>),
    Passing,
    /// Passes on what another process has not passed on.
    Splicing(Mutex<Splice>, Instant),
}

struct Followed {
    trail: Trail,
    mark: Bytes,
}

#[derive(Default)]
struct Held {
    /// The events before the mark, and those after it.
    early: Vec<Event>,
    late: Vec<Event>,
    bytes: usize,
    /// True if something was dropped because it was too much.
    has_lost: bool,
    trail: Trail,
    /// `None` if nothing is compared.
    mark: Option<Bytes>,
}

/// The reason why events cannot be handed from one process to another.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum IntakeError {
    /// Too much has arrived in the meantime.
    #[error(
        "more than {HELD_BYTES_MAX} bytes or {} publications have arrived in the meantime",
        super::splice::LATE_MAX
    )]
    TooMuch,
    /// The mark has not arrived from the broker.
    #[error("broker has not delivered the mark")]
    Unmarked,
}

impl Intake {
    /// Creates an intake that passes everything on.
    pub(crate) fn new(dispatcher: Arc<Dispatcher>) -> Self {
        Self {
            dispatcher,
            mode: RwLock::new(Mode::Passing),
            marked: Notify::new(),
        }
    }

    /// Notes what is passed on from now on, and looks for `mark`, which all nodes receive. Waits
    /// until everything has arrived that another process has passed on.
    pub(crate) async fn follow(&self, mark: Bytes) {
        while !self.is_passing().await {
            sleep(CHECK).await;
        }
        let trail = Trail::default();
        *self.mode.write().await = Mode::Following(Mutex::new(Followed { trail, mark }));
    }

    /// Holds back everything from now on, and looks for `mark`, which all nodes receive.
    pub(crate) async fn hold_from(&self, mark: Bytes) {
        let held = Held {
            mark: Some(mark),
            ..Held::default()
        };
        *self.mode.write().await = Mode::Holding(Mutex::new(held));
    }

    /// Waits until the mark has arrived. Cancel-safe.
    pub(crate) async fn marked(&self) {
        loop {
            // Created before checking, so that no notification is missed.
            let marked = self.marked.notified();
            if self.is_marked().await {
                return;
            }
            marked.await;
        }
    }

    async fn is_passing(&self) -> bool {
        match &*self.mode.read().await {
            Mode::Splicing(splice, until) => splice.lock().is_over() || now() >= *until,
            _ => true,
        }
    }

    async fn is_marked(&self) -> bool {
        match &*self.mode.read().await {
            Mode::Following(followed) => followed.lock().trail.is_marked(),
            Mode::Holding(held) => held.lock().trail.is_marked(),
            Mode::Passing | Mode::Splicing(..) => true,
        }
    }

    /// Holds back everything that arrives from now on. Returns what was passed on before.
    ///
    /// # Errors
    /// The trail is unusable. Everything is passed on as before then.
    pub(crate) async fn stop(&self) -> Result<Trail, IntakeError> {
        // Waits until what has arrived is passed on.
        let mut mode = self.mode.write().await;
        let Mode::Following(followed) = &mut *mode else {
            return Err(IntakeError::Unmarked);
        };
        let trail = mem::take(&mut followed.get_mut().trail);
        let error = match (trail.is_marked(), trail.is_full()) {
            (false, _) => Some(IntakeError::Unmarked),
            (_, true) => Some(IntakeError::TooMuch),
            _ => None,
        };
        if let Some(error) = error {
            *mode = Mode::Passing;
            return Err(error);
        }
        *mode = Mode::Holding(Mutex::default());
        Ok(trail)
    }

    /// Returns whether all messages of other nodes that were passed on have been handled.
    pub(crate) fn has_handled_control(&self) -> bool {
        self.dispatcher.has_handled_control()
    }

    /// Passes on what was held back, and everything from now on.
    pub(crate) async fn resume(&self) {
        let mut mode = self.mode.write().await;
        match &mut *mode {
            Mode::Holding(held) => {
                let held = mem::take(held.get_mut());
                let gap = held.gap();
                self.pass(held.early).await;
                self.pass(held.late).await;
                self.pass(gap).await;
            }
            Mode::Following(_) => {}
            Mode::Passing | Mode::Splicing(..) => return,
        }
        *mode = Mode::Passing;
    }

    /// Checks that what was held back can continue what another process has passed on.
    ///
    /// # Errors
    /// The mark has not arrived, or too much.
    pub(crate) async fn check(&self) -> Result<(), IntakeError> {
        match &*self.mode.read().await {
            Mode::Holding(held) => held.lock().check(),
            _ => Err(IntakeError::Unmarked),
        }
    }

    /// Passes on what was held back and everything from now on, except for what another process has
    /// passed on.
    pub(crate) async fn resume_after(&self, passed: Trail) {
        let mut mode = self.mode.write().await;
        let Mode::Holding(held) = mem::replace(&mut *mode, Mode::Passing) else {
            return;
        };
        let held = held.into_inner();
        let gap = held.gap();
        let mut splice = Splice::new(passed, &held.trail);
        for (events, is_early) in [(held.early, true), (held.late, false)] {
            let mut events = new(&mut splice, events, is_early);
            // The others were handled when they arrived. Clients that follow were not here yet.
            events.retain(|event| match event {
                Event::Control(message) => is_of_moves(message),
                _ => true,
            });
            self.pass(events).await;
        }
        self.pass(gap).await;
        *mode = Mode::Splicing(Mutex::new(splice), now() + LATE_MAX);
    }

    async fn take(&self, events: Vec<Event>) {
        {
            let mode = self.mode.read().await;
            match &*mode {
                Mode::Passing => return self.pass(events).await,
                Mode::Following(followed) => {
                    if followed.lock().note(&events) {
                        self.marked.notify_waiters();
                    }
                    return self.pass(events).await;
                }
                Mode::Holding(held) => {
                    for event in &events {
                        if let Event::Publication { publication, .. } = event {
                            // Counts in the memory budget while it is held back.
                            self.dispatcher.keep(publication);
                        }
                    }
                    let (rest, is_marked) = held.lock().take(events);
                    if is_marked {
                        self.marked.notify_waiters();
                    }
                    return self.pass(rest).await;
                }
                Mode::Splicing(splice, until) if now() < *until => {
                    let events = new(&mut splice.lock(), events, false);
                    return self.pass(events).await;
                }
                Mode::Splicing(..) => {}
            }
        }
        let mut mode = self.mode.write().await;
        if let Mode::Splicing(..) = &*mode {
            *mode = Mode::Passing;
        }
        self.pass(events).await;
    }

    async fn pass(&self, events: Vec<Event>) {
        if !events.is_empty() {
            self.dispatcher.ingest(events).await;
        }
    }
}

impl Followed {
    /// Notes events. Returns whether the mark was among them.
    fn note(&mut self, events: &[Event]) -> bool {
        let mut has_mark = false;
        for event in events {
            match event {
                Event::Control(message) if *message == self.mark => {
                    self.trail.mark();
                    has_mark = true;
                }
                Event::Control(message) if !self.trail.is_full() => {
                    self.trail.note_control(message);
                }
                Event::Publication {
                    channel,
                    publication,
                } if !self.trail.is_full() => self.trail.note(channel, publication),
                _ => {}
            }
        }
        has_mark
    }
}

impl Held {
    /// Keeps what concerns clients. Returns the rest, and whether the mark was among the events.
    fn take(&mut self, events: Vec<Event>) -> (Vec<Event>, bool) {
        let mut rest = Vec::new();
        let mut has_mark = false;
        for event in events {
            match &event {
                Event::Control(message) if self.mark.as_ref() == Some(message) => {
                    self.trail.mark();
                    has_mark = true;
                }
                Event::Publication {
                    channel,
                    publication,
                } => {
                    if self.has_room(publication.payload().len()) {
                        if self.mark.is_some() {
                            self.trail.note(channel, publication);
                        }
                        self.keep(event);
                    }
                }
                Event::Control(message) => {
                    let has_room = self.has_room(message.len());
                    if has_room && self.mark.is_some() {
                        self.trail.note_control(message);
                    }
                    // A node that holds back before it has clients answers the others at once.
                    if self.mark.is_some() {
                        rest.push(event.clone());
                    }
                    if has_room {
                        self.keep(event);
                    }
                }
                Event::Gap(_) => self.keep(event),
                _ => rest.push(event),
            }
        }
        (rest, has_mark)
    }

    /// Counts bytes that are to be held back. Returns whether there is room for them.
    fn has_room(&mut self, bytes: usize) -> bool {
        self.bytes += bytes;
        self.has_lost |= self.bytes > HELD_BYTES_MAX || self.trail.is_full();
        !self.has_lost
    }

    fn keep(&mut self, event: Event) {
        match self.trail.is_marked() {
            true => self.late.push(event),
            false => self.early.push(event),
        }
    }

    fn check(&self) -> Result<(), IntakeError> {
        match (self.trail.is_marked(), self.has_lost) {
            (false, _) => Err(IntakeError::Unmarked),
            (true, true) => Err(IntakeError::TooMuch),
            (true, false) => Ok(()),
        }
    }

    /// Returns what tells clients that something was dropped, if it was.
    fn gap(&self) -> Vec<Event> {
        let gap = self.has_lost.then_some(Event::Gap(Gap {
            channels: None,
            lasted: Duration::ZERO,
            reason: GapReason::Overflow,
        }));
        gap.into_iter().collect()
    }
}

impl Ingest for Intake {
    fn ingest(&self, events: Vec<Event>) -> BoxFuture<'_, ()> {
        Box::pin(self.take(events))
    }

    fn caught_up(&self) -> BoxFuture<'_, ()> {
        self.dispatcher.caught_up()
    }

    fn keep(&self, publication: &Publication) {
        self.dispatcher.keep(publication);
    }

    fn patience(&self) -> Duration {
        self.dispatcher.patience()
    }
}

impl fmt::Debug for Intake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Intake")
            .field("dispatcher", &self.dispatcher)
            .finish_non_exhaustive()
    }
}

/// Returns the events that another process has not passed on.
fn new(splice: &mut Splice, mut events: Vec<Event>, is_early: bool) -> Vec<Event> {
    let is_new = |event: &Event| match event {
        Event::Publication {
            channel,
            publication,
        } => splice.is_new(channel, publication, is_early),
        // Only those about clients that join or leave were passed on to the clients.
        Event::Control(message) => {
            splice.is_new_control(message, is_early) || !is_of_moves(message)
        }
        _ => true,
    };
    events.retain(is_new);
    events
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use linerate_hub::ChannelName;

    use super::*;
    use crate::node::inbox::Arrival;

    fn publication(payload: &Bytes) -> Event {
        Event::Publication {
            channel: ChannelName::new("news").unwrap(),
            publication: Publication::new(payload.clone()),
        }
    }

    /// Returns what a worker has received, with `gap` for a gap.
    fn received(dispatcher: &Dispatcher) -> Vec<String> {
        let mut arrivals = VecDeque::new();
        dispatcher.inboxes.of(0).take(&mut arrivals);
        let text = |arrival| match arrival {
            Arrival::Publication(_, publication, _) => {
                String::from_utf8_lossy(publication.payload()).into_owned()
            }
            Arrival::Barrier(_) => "barrier".to_owned(),
            Arrival::Gap(_) => "gap".to_owned(),
        };
        arrivals.into_iter().map(text).collect()
    }

    /// Returns the intakes of two processes that receive the same, and their dispatchers.
    fn processes() -> [(Intake, Arc<Dispatcher>); 2] {
        [(), ()].map(|()| {
            let (dispatcher, _control) = Dispatcher::new(1);
            dispatcher.routes.add(&ChannelName::new("news").unwrap(), 0);
            (Intake::new(dispatcher.clone()), dispatcher)
        })
    }

    #[tokio::test]
    async fn one_process_goes_on_where_the_other_has_stopped() {
        let [(old, old_dispatcher), (new, new_dispatcher)] = processes();
        let mark = Bytes::from("mark");
        old.follow(mark.clone()).await;
        new.hold_from(mark.clone()).await;
        let text = |text: &'static str| publication(&Bytes::from(text));
        assert_eq!(new.check().await, Err(IntakeError::Unmarked));
        for intake in [&old, &new] {
            let events = vec![text("1"), Event::Control(mark.clone()), text("2")];
            intake.ingest(events).await;
            intake.marked().await;
        }
        new.check().await.unwrap();
        let passed = old.stop().await.unwrap();
        for intake in [&old, &new] {
            intake.ingest(vec![text("3")]).await;
        }
        assert_eq!(received(&old_dispatcher), ["1", "2"]);
        assert!(received(&new_dispatcher).is_empty());
        new.resume_after(passed).await;
        new.ingest(vec![text("4")]).await;
        assert_eq!(received(&new_dispatcher), ["3", "4"]);
        old.resume().await;
        assert_eq!(
            received(&old_dispatcher),
            ["3"],
            "for clients that have stayed"
        );
    }

    #[tokio::test]
    async fn what_is_too_much_to_hold_back_is_a_gap_in_both_processes() {
        let [(old, old_dispatcher), (new, new_dispatcher)] = processes();
        let mark = Bytes::from("mark");
        old.follow(mark.clone()).await;
        new.hold_from(mark.clone()).await;
        for intake in [&old, &new] {
            intake.ingest(vec![Event::Control(mark.clone())]).await;
        }
        let passed = old.stop().await.unwrap();
        let payload = Bytes::from(vec![b'x'; 1 << 20]);
        let held = HELD_BYTES_MAX >> 20;
        for intake in [&old, &new] {
            for _ in 0..held + 2 {
                intake.ingest(vec![publication(&payload)]).await;
            }
        }
        for dispatcher in [&old_dispatcher, &new_dispatcher] {
            assert!(
                received(dispatcher).is_empty(),
                "nothing overtakes what is held back"
            );
        }
        assert_eq!(new.check().await, Err(IntakeError::TooMuch));
        new.resume_after(passed).await;
        old.resume().await;
        for dispatcher in [&old_dispatcher, &new_dispatcher] {
            let arrivals = received(dispatcher);
            // The worker's inbox has a limit of its own, and tells what it has dropped.
            assert!(arrivals.len() <= held + 2, "{}", arrivals.len());
            assert_eq!(arrivals.last().map(String::as_str), Some("gap"));
        }
    }

    #[tokio::test]
    async fn without_a_mark_nothing_is_stopped() {
        let [(old, dispatcher), _] = processes();
        old.follow(Bytes::from("mark")).await;
        let error = old.stop().await.map(drop);
        assert_eq!(error, Err(IntakeError::Unmarked));
        old.ingest(vec![publication(&Bytes::from("1"))]).await;
        assert_eq!(received(&dispatcher), ["1"]);
    }
}
