//! Any bytes as messages, and any messages between two processes.

use std::{fs::File, os::fd::OwnedFd};

use super::{
    frame::{HEADER_BYTES, Header},
    join::this_process,
    message::{Message, Offer},
    predecessor::{Predecessor, PredecessorEvent},
    step::Step,
    successor::{Successor, SuccessorEvent},
};
use crate::{
    relocation::parcel::{read_names, unpack},
    server::EndpointKind,
};

/// Reads messages, each with a number of descriptors; each also goes to one or both of two
/// processes, which otherwise follow the protocol.
pub(crate) fn messages(data: &[u8]) {
    let mut processes = Processes::new();
    let mut rest = data;
    while let Some((&[to, descriptors], after)) = rest.split_first_chunk() {
        let Some((message, after)) = read(after) else {
            // No message is here, so that the protocol continues without one.
            processes.exchange();
            rest = after;
            continue;
        };
        rest = after;
        read_contents(&message, usize::from(descriptors % 4));
        if to & 1 != 0 {
            processes.tell_old(message.clone(), usize::from(descriptors));
        }
        if to & 2 != 0 {
            processes.is_commit_genuine &= message != Message::Commit;
            processes.tell_new(message, usize::from(descriptors));
        }
        if to & 4 != 0 {
            processes.exchange();
        }
    }
}

/// Reads what moves in a message, with a number of sockets.
fn read_contents(message: &Message, sockets: usize) {
    // Errors are expected; nothing may panic.
    match message {
        Message::Channels { names, .. } => _ = read_names(names),
        Message::Parcel(parcel) => {
            let socket = || File::open("/dev/null").ok().map(OwnedFd::from);
            let sockets = (0..sockets).filter_map(|_| socket()).collect();
            _ = unpack(parcel, sockets);
        }
        _ => {}
    }
}

/// Reads a message, and checks that it is the same when it is written and read again.
fn read(data: &[u8]) -> Option<(Message, &[u8])> {
    let (header, rest) = data.split_first_chunk::<HEADER_BYTES>()?;
    let header = Header::parse(*header).ok()?;
    assert_eq!(Header::parse(header.to_bytes()), Ok(header));
    let (payload, rest) = rest.split_at_checked(header.payload_bytes)?;
    let message = Message::from_payload(header.kind, payload).ok()?;
    let again = Message::from_payload(message.kind(), &message.to_payload());
    // Control characters are replaced by longer ones, so that a long text is cut off.
    if payload.len() < 1_000 {
        assert_eq!(again.as_ref(), Ok(&message));
    }
    Some((message, rest))
}

/// Two processes. One that has failed receives nothing.
struct Processes {
    old: Option<Predecessor>,
    new: Option<Successor>,
    old_accepts: bool,
    new_accepts: bool,
    /// False once the fuzzer has sent a `commit`, which only the old process may do.
    is_commit_genuine: bool,
    is_relocating: bool,
}

impl Processes {
    fn new() -> Self {
        let offer = |port| Offer {
            kind: Some(EndpointKind::Clients),
            configured: ([127, 0, 0, 1], port).into(),
            address: ([127, 0, 0, 1], port).into(),
            sockets: 300,
        };
        let offers = vec![offer(80), offer(81)];
        Self {
            old: Some(Predecessor::new(this_process(), offers)),
            new: Some(Successor::new(this_process())),
            old_accepts: true,
            new_accepts: false,
            is_commit_genuine: true,
            is_relocating: false,
        }
    }

    /// Delivers what both have to say.
    fn exchange(&mut self) {
        while let Some(message) = self.new.as_mut().and_then(Successor::poll_transmit) {
            self.tell_old(message, 0);
        }
        while let Some(message) = self.old.as_mut().and_then(Predecessor::poll_transmit) {
            self.tell_new(message, 0);
        }
        if self.is_commit_genuine {
            assert!(!(self.old_accepts && self.new_accepts), "both accept");
        }
    }

    fn tell_old(&mut self, message: Message, descriptors: usize) {
        let Some(old) = &mut self.old else { return };
        match old.handle_message(message, descriptors) {
            Ok(PredecessorEvent::Relocate(..)) => {
                self.is_relocating = true;
                self.tell_new(channels(), 0);
            }
            Ok(PredecessorEvent::Prepared) if self.is_relocating => {
                old.wait_for(Step::Subscribed);
                self.tell_new(channels(), 0);
            }
            Ok(PredecessorEvent::Subscribed) => {
                old.wait_for(Step::Received);
                self.tell_new(Message::Parcel(Vec::new()), 1);
                self.tell_new(Message::Moved, 0);
            }
            Ok(PredecessorEvent::Prepared | PredecessorEvent::Received) => {
                self.old_accepts = false;
                old.committed();
                self.tell_new(Message::Commit, 0);
            }
            Ok(PredecessorEvent::Wanted(wanted)) => {
                assert!(wanted.iter().all(|offer| *offer < 2) && wanted.len() <= 2);
                for offer in wanted {
                    self.tell_new(Message::Listeners { offer }, 253);
                    self.tell_new(Message::Listeners { offer }, 47);
                }
            }
            Ok(PredecessorEvent::Asked(_) | PredecessorEvent::Serving) => {}
            Err(_) => self.old = None,
        }
    }

    fn tell_new(&mut self, message: Message, descriptors: usize) {
        let Some(new) = &mut self.new else { return };
        match new.handle_message(message, descriptors) {
            Ok(SuccessorEvent::Welcomed(_)) => {
                let count = new.offers().len().min(2);
                new.ready((0..count as u16).collect());
                if new.has_all() {
                    new.relocate(2, Vec::new());
                }
            }
            Ok(SuccessorEvent::Listeners(_)) if new.has_all() => new.relocate(2, Vec::new()),
            Ok(SuccessorEvent::Channels { is_last: true, .. }) => match new.step() {
                Step::Channels => new.prepared(),
                _ => new.subscribed(),
            },
            Ok(SuccessorEvent::Stay(_)) => new.prepared(),
            Ok(SuccessorEvent::Moved) => new.received(),
            Ok(
                SuccessorEvent::Listeners(_)
                | SuccessorEvent::Channels { .. }
                | SuccessorEvent::Parcel(_),
            ) => {}
            Ok(SuccessorEvent::Committed) => self.new_accepts = true,
            Err(_) => self.new = None,
        }
    }
}

/// Returns the message that names no channels.
fn channels() -> Message {
    Message::Channels {
        clients: 3,
        is_last: true,
        names: Vec::new(),
    }
}
