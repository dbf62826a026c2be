//! The state machine of the new process.

use std::collections::VecDeque;

use linerate_proto::portable::Version;

use super::{
    frame::PROTOCOL,
    message::{Hello, Message, Offer, Process, Welcome},
    step::{Fault, Step, check_descriptors, negotiate, unexpected},
};

/// The new process's side of a takeover.
///
/// Call [`handle_message`](Self::handle_message) with each message that arrives, do what the event
/// says, and send what [`poll_transmit`](Self::poll_transmit) returns. After an error the takeover
/// has failed, and the process must not accept connections unless it
/// [was committed](SuccessorEvent::Committed).
#[derive(Debug)]
pub(super) struct Successor {
    step: Step,
    /// True while the process does something and waits for no message.
    is_busy: bool,
    /// True if the old process hands over its clients.
    has_clients: bool,
    offers: Vec<Offer>,
    /// The wanted offers, and how many of their sockets are missing.
    missing: Vec<(u16, usize)>,
    transmit: VecDeque<Message>,
}

/// What the new process must do.
#[derive(Debug)]
pub(super) enum SuccessorEvent {
    /// Prepare everything that takes time, and call [`ready`](Successor::ready).
    Welcomed(Process),
    /// Take the sockets of this offer. Once [`has_all`](Successor::has_all), prepare to accept and
    /// call [`prepared`](Successor::prepared).
    Listeners(u16),
    /// Subscribe to channels. After the last of them, call [`prepared`](Successor::prepared) or
    /// [`subscribed`](Successor::subscribed).
    Channels {
        clients: u32,
        is_last: bool,
        names: Vec<u8>,
    },
    /// The clients stay in the old process. Call [`prepared`](Successor::prepared).
    Stay(String),
    /// Keep what comes with the clients.
    Parcel(Vec<u8>),
    /// Check what has come, and call [`received`](Successor::received).
    Moved,
    /// Accept connections: this process is responsible.
    Committed,
}

impl Successor {
    /// Creates the side of a process that wants to take over.
    pub(super) fn new(process: Process) -> Self {
        let hello = Message::Hello(Hello {
            protocol: PROTOCOL,
            state: (Version::OLDEST.number(), Version::NEWEST.number()),
            process,
        });
        Self {
            step: Step::Welcome,
            is_busy: false,
            has_clients: false,
            offers: Vec::new(),
            missing: Vec::new(),
            transmit: [hello].into(),
        }
    }

    /// Handles a message with a number of descriptors.
    pub(super) fn handle_message(
        &mut self,
        message: Message,
        descriptors: usize,
    ) -> Result<SuccessorEvent, Fault> {
        match (self.step, message) {
            (step, message) if self.is_busy => Err(unexpected(message, step)),
            (Step::Listeners, Message::Listeners { offer }) => self.listeners(offer, descriptors),
            (Step::Commit, Message::Parcel(parcel)) if self.has_clients => {
                Ok(SuccessorEvent::Parcel(parcel))
            }
            (step, message) => {
                check_descriptors(&message, descriptors, 0)?;
                match (step, message) {
                    (Step::Welcome, Message::Welcome(welcome)) => self.welcomed(welcome),
                    (
                        Step::Channels,
                        Message::Channels {
                            clients,
                            is_last,
                            names,
                        },
                    ) => {
                        self.is_busy = is_last;
                        self.has_clients = true;
                        Ok(SuccessorEvent::Channels {
                            clients,
                            is_last,
                            names,
                        })
                    }
                    (Step::Channels, Message::Stay { reason }) if !self.has_clients => {
                        self.is_busy = true;
                        Ok(SuccessorEvent::Stay(reason))
                    }
                    (
                        Step::Commit,
                        Message::Channels {
                            clients,
                            is_last,
                            names,
                        },
                    ) if self.has_clients => Ok(SuccessorEvent::Channels {
                        clients,
                        is_last,
                        names,
                    }),
                    (Step::Commit, Message::Moved) if self.has_clients => Ok(SuccessorEvent::Moved),
                    (Step::Commit, Message::Commit) => {
                        self.is_busy = true;
                        self.transmit.push_back(Message::Serving);
                        Ok(SuccessorEvent::Committed)
                    }
                    (step, message) => Err(unexpected(message, step)),
                }
            }
        }
    }

    /// Asks for the listeners of these offers. Everything else must be prepared.
    pub(super) fn ready(&mut self, wanted: Vec<u16>) {
        assert!(
            self.step == Step::Welcome && self.is_busy,
            "welcomed before"
        );
        let sockets = |offer: u16| {
            let offer = self.offers.get(usize::from(offer));
            offer.map_or(0, |offer| usize::from(offer.sockets))
        };
        self.missing = wanted
            .iter()
            .map(|offer| (*offer, sockets(*offer)))
            .collect();
        self.transmit.push_back(Message::Ready { wanted });
        self.step = Step::Listeners;
        self.is_busy = self.has_all();
    }

    /// Asks for the clients. This process has `workers` workers.
    pub(super) fn relocate(&mut self, workers: u16, mark: Vec<u8>) {
        assert!(
            self.step == Step::Listeners && self.is_busy,
            "it has all listeners"
        );
        self.transmit.push_back(Message::Relocate { workers, mark });
        self.step = Step::Channels;
        self.is_busy = false;
    }

    /// Says that this process is subscribed to all channels.
    pub(super) fn subscribed(&mut self) {
        self.transmit.push_back(Message::Subscribed);
    }

    /// Says that this process can continue all clients.
    pub(super) fn received(&mut self) {
        self.transmit.push_back(Message::Received);
    }

    /// Asks for the responsibility. The process must be able to accept connections at once.
    pub(super) fn prepared(&mut self) {
        assert!(self.is_busy, "it has all listeners");
        self.transmit.push_back(Message::Prepared);
        self.step = Step::Commit;
        self.is_busy = false;
    }

    /// Returns the next message to send.
    pub(super) fn poll_transmit(&mut self) -> Option<Message> {
        self.transmit.pop_front()
    }

    /// Returns the current step.
    pub(super) const fn step(&self) -> Step {
        self.step
    }

    /// Returns what the old process has.
    pub(super) fn offers(&self) -> &[Offer] {
        &self.offers
    }

    /// Returns whether all wanted sockets have arrived.
    pub(super) fn has_all(&self) -> bool {
        self.missing.iter().all(|(_, sockets)| *sockets == 0)
    }

    fn welcomed(&mut self, welcome: Welcome) -> Result<SuccessorEvent, Fault> {
        negotiate((welcome.protocol, welcome.protocol))?;
        self.offers = welcome.offers;
        self.is_busy = true;
        Ok(SuccessorEvent::Welcomed(welcome.process))
    }

    fn listeners(&mut self, offer: u16, descriptors: usize) -> Result<SuccessorEvent, Fault> {
        let mut missing = self.missing.iter_mut();
        let missing = missing.find(|(wanted, _)| *wanted == offer);
        let expected = missing.as_ref().map_or(0, |(_, sockets)| *sockets);
        match missing {
            Some((_, sockets)) if descriptors > 0 && descriptors <= *sockets => {
                *sockets -= descriptors;
            }
            _ => {
                return Err(Fault::Descriptors {
                    message: "listeners",
                    found: descriptors,
                    expected,
                });
            }
        }
        self.is_busy = self.has_all();
        Ok(SuccessorEvent::Listeners(offer))
    }
}
