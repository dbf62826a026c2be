//! The state machine of the old process.

use std::collections::VecDeque;

use linerate_proto::portable::Version;

use super::{
    message::{Hello, Message, Offer, Process, Welcome},
    step::{Fault, Step, check_descriptors, negotiate, unexpected},
};

/// The old process's side of a takeover.
///
/// Call [`handle_message`](Self::handle_message) with each message that arrives, do what the event
/// says, and send what [`poll_transmit`](Self::poll_transmit) returns. After an error the takeover
/// has failed, and the process continues to serve unless [`committed`](Self::committed) was called.
#[derive(Debug)]
pub(super) struct Predecessor {
    step: Step,
    has_relocated: bool,
    is_finished: bool,
    process: Process,
    offers: Vec<Offer>,
    transmit: VecDeque<Message>,
}

/// What the old process must do.
#[derive(Debug)]
pub(super) enum PredecessorEvent {
    /// A process asks; nothing must be done.
    Asked(Hello),
    /// Send the sockets of these offers.
    Wanted(Vec<u16>),
    /// The process asks for the clients; it has this number of workers, and sends this mark by way
    /// of the broker. Call [`stay`](Predecessor::stay) or send `channels`.
    Relocate(u16, Vec<u8>),
    /// The process is subscribed to all channels.
    Subscribed,
    /// The process has received all parcels.
    Received,
    /// Stop accepting connections, send `commit` and call [`committed`](Predecessor::committed).
    Prepared,
    /// The new process serves; the takeover is complete.
    Serving,
}

impl Predecessor {
    /// Creates the side of a process that offers its listeners.
    pub(super) const fn new(process: Process, offers: Vec<Offer>) -> Self {
        Self {
            step: Step::Hello,
            has_relocated: false,
            is_finished: false,
            process,
            offers,
            transmit: VecDeque::new(),
        }
    }

    /// Handles a message with a number of descriptors.
    pub(super) fn handle_message(
        &mut self,
        message: Message,
        descriptors: usize,
    ) -> Result<PredecessorEvent, Fault> {
        check_descriptors(&message, descriptors, 0)?;
        match (self.step, message) {
            (Step::Hello, Message::Hello(hello)) => self.welcome(hello),
            (Step::Ready, Message::Ready { wanted }) => self.check_wanted(wanted),
            (Step::Prepared, Message::Relocate { workers, mark }) if !self.has_relocated => {
                self.has_relocated = true;
                Ok(PredecessorEvent::Relocate(workers, mark))
            }
            (Step::Prepared, Message::Prepared) => {
                self.step = Step::Pause;
                Ok(PredecessorEvent::Prepared)
            }
            (Step::Subscribed, Message::Subscribed) => {
                self.step = Step::Pause;
                Ok(PredecessorEvent::Subscribed)
            }
            (Step::Received, Message::Received) => {
                self.step = Step::Pause;
                Ok(PredecessorEvent::Received)
            }
            (Step::Serving, Message::Serving) if !self.is_finished => {
                self.is_finished = true;
                Ok(PredecessorEvent::Serving)
            }
            (step, message) => Err(unexpected(message, step)),
        }
    }

    /// Says that the clients stay in this process.
    pub(super) fn stay(&mut self, reason: String) {
        self.transmit.push_back(Message::Stay { reason });
    }

    /// Waits for `subscribed` or `received`.
    ///
    /// # Panics
    /// Panics unless this process is about to commit.
    pub(super) fn wait_for(&mut self, step: Step) {
        assert_eq!(self.step, Step::Pause, "the new process is prepared");
        self.step = step;
    }

    /// Takes note that `commit` was sent: this process never accepts connections again.
    ///
    /// # Panics
    /// Panics unless the last event was [`PredecessorEvent::Prepared`].
    pub(super) fn committed(&mut self) {
        assert_eq!(self.step, Step::Pause, "the new process is prepared");
        self.step = Step::Serving;
    }

    /// Returns the next message to send.
    pub(super) fn poll_transmit(&mut self) -> Option<Message> {
        self.transmit.pop_front()
    }

    /// Returns the current step.
    pub(super) const fn step(&self) -> Step {
        self.step
    }

    fn welcome(&mut self, hello: Hello) -> Result<PredecessorEvent, Fault> {
        let protocol = negotiate(hello.protocol)?;
        let state = Version::negotiate(hello.state.0, hello.state.1);
        self.transmit.push_back(Message::Welcome(Welcome {
            protocol,
            state: state.map_or(0, Version::number),
            process: self.process.clone(),
            offers: self.offers.clone(),
        }));
        self.step = Step::Ready;
        Ok(PredecessorEvent::Asked(hello))
    }

    fn check_wanted(&mut self, wanted: Vec<u16>) -> Result<PredecessorEvent, Fault> {
        for (index, &offer) in wanted.iter().enumerate() {
            let exists = usize::from(offer) < self.offers.len();
            if !exists || wanted[..index].contains(&offer) {
                return Err(Fault::Offer { offer });
            }
        }
        self.step = Step::Prepared;
        Ok(PredecessorEvent::Wanted(wanted))
    }
}
