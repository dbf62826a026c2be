//! The state machines against each other: who is responsible after each loss.

use linerate_testkit::Rng;

use crate::{
    server::EndpointKind,
    takeover::{
        fuzzing,
        message::{Message, Offer, Process},
        predecessor::{Predecessor, PredecessorEvent},
        step::{Fault, Step},
        successor::{Successor, SuccessorEvent},
    },
};

fn process(pid: u32) -> Process {
    Process {
        pid,
        executable: "/usr/bin/linerate".into(),
        version: "0.1.0".into(),
    }
}

fn offer(port: u16, sockets: u16) -> Offer {
    Offer {
        kind: Some(EndpointKind::Clients),
        configured: ([127, 0, 0, 1], port).into(),
        address: ([127, 0, 0, 1], port).into(),
        sockets,
    }
}

/// Both sides, and who may accept connections.
struct Pair {
    old: Predecessor,
    new: Successor,
    old_accepts: bool,
    new_accepts: bool,
}

impl Pair {
    fn new() -> Self {
        Self {
            old: Predecessor::new(process(1), vec![offer(80, 300), offer(81, 1)]),
            new: Successor::new(process(2)),
            old_accepts: true,
            new_accepts: false,
        }
    }

    /// Exchanges messages until none is left or `count` were delivered. Returns how many were.
    fn run(&mut self, count: usize) -> usize {
        let mut delivered = 0;
        let mut to_new: Vec<(Message, usize)> = Vec::new();
        loop {
            let (message, descriptors, is_to_new) = if !to_new.is_empty() {
                let (message, descriptors) = to_new.remove(0);
                (message, descriptors, true)
            } else if let Some(message) = self.old.poll_transmit() {
                (message, 0, true)
            } else if let Some(message) = self.new.poll_transmit() {
                (message, 0, false)
            } else {
                return delivered;
            };
            if delivered == count {
                return delivered;
            }
            delivered += 1;
            if is_to_new {
                self.tell_new(message, descriptors);
            } else {
                to_new.extend(self.tell_old(message));
            }
            assert!(!(self.old_accepts && self.new_accepts), "both accept");
        }
    }

    fn tell_new(&mut self, message: Message, descriptors: usize) {
        match self.new.handle_message(message, descriptors).unwrap() {
            SuccessorEvent::Welcomed(_) => self.new.ready(vec![0, 1]),
            SuccessorEvent::Listeners(_) if self.new.has_all() => {
                self.new.relocate(2, b"mark".to_vec());
            }
            SuccessorEvent::Listeners(_) | SuccessorEvent::Parcel(_) => {}
            SuccessorEvent::Channels { .. } if self.new.step() == Step::Channels => {
                self.new.prepared();
            }
            SuccessorEvent::Channels { .. } => self.new.subscribed(),
            SuccessorEvent::Moved => self.new.received(),
            SuccessorEvent::Stay(reason) => panic!("{reason}"),
            SuccessorEvent::Committed => self.new_accepts = true,
        }
    }

    fn tell_old(&mut self, message: Message) -> Vec<(Message, usize)> {
        let channels = Message::Channels {
            clients: 3,
            is_last: true,
            names: Vec::new(),
        };
        match self.old.handle_message(message, 0).unwrap() {
            PredecessorEvent::Asked(_) | PredecessorEvent::Serving => Vec::new(),
            PredecessorEvent::Wanted(wanted) => {
                assert_eq!(wanted, [0, 1]);
                let parts = [(0, 253), (0, 47), (1, 1)];
                let message = |(offer, count)| (Message::Listeners { offer }, count);
                parts.map(message).into()
            }
            PredecessorEvent::Relocate(2, _) => vec![(channels, 0)],
            PredecessorEvent::Relocate(workers, _) => panic!("{workers} workers"),
            PredecessorEvent::Prepared => {
                self.old.wait_for(Step::Subscribed);
                vec![(channels, 0)]
            }
            PredecessorEvent::Subscribed => {
                self.old.wait_for(Step::Received);
                vec![(Message::Parcel(Vec::new()), 7), (Message::Moved, 0)]
            }
            PredecessorEvent::Received => {
                self.old_accepts = false;
                self.old.committed();
                vec![(Message::Commit, 0)]
            }
        }
    }
}

/// The number of messages of a takeover.
const ALL: usize = 16;

#[test]
fn wherever_the_exchange_ends_at_most_one_process_accepts() {
    let all = Pair::new().run(usize::MAX);
    assert_eq!(all, ALL);
    for count in 0..=all {
        let mut pair = Pair::new();
        assert_eq!(pair.run(count), count);
        // The old one is responsible until it has sent `commit`, which follows `received`.
        assert_eq!(pair.old_accepts, count < ALL - 2, "{count} messages");
        assert_eq!(pair.new_accepts, count >= ALL - 1, "{count} messages");
    }
}

#[test]
fn every_other_message_is_a_fault_of_its_step() {
    let all = [
        Message::Hello(crate::takeover::message::Hello {
            protocol: (1, 1),
            state: (1, 1),
            process: process(3),
        }),
        Message::Ready { wanted: vec![0] },
        Message::Listeners { offer: 0 },
        Message::Prepared,
        Message::Commit,
        Message::Serving,
        Message::Refuse {
            reason: "no".into(),
        },
    ];
    for count in 0..ALL {
        for message in &all {
            let name = message.name();
            let mut pair = Pair::new();
            pair.run(count);
            let (old_step, new_step) = (pair.old.step(), pair.new.step());
            let is_old_due = old_step.to_string() == name;
            let old = pair.old.handle_message(message.clone(), 0);
            assert_eq!(old.is_ok(), is_old_due, "{name} in step {old_step}");
            let new = pair.new.handle_message(message.clone(), 0);
            match new {
                // It has asked for the responsibility, although the request may be on its way.
                Ok(SuccessorEvent::Committed) => assert!((8..ALL - 1).contains(&count), "{count}"),
                Ok(event) => panic!("{event:?} after {name} in step {new_step}"),
                Err(Fault::Refused { reason }) => assert_eq!(reason, "no"),
                Err(_) => {}
            }
        }
    }
}

#[test]
fn no_messages_of_others_make_both_processes_accept() {
    let payloads = [
        Message::Ready { wanted: vec![0, 1] },
        Message::Listeners { offer: 1 },
        Message::Prepared,
        Message::Commit,
        Message::Serving,
        Message::Refuse {
            reason: "a\nb".into(),
        },
    ];
    let mut rng = Rng::new(7);
    for _ in 0..5_000 {
        let mut data = Vec::new();
        for _ in 0..rng.below(12) {
            // To whom, and with how many descriptors; often only the protocol continues.
            data.extend([rng.below(8) as u8, rng.below(3) as u8]);
            let message = rng.pick(&payloads);
            let payload = message.to_payload();
            let length = payload.len() as u8;
            data.extend([b'L', b'T', 0, 1, message.kind(), 0, 0, 0, 0, length]);
            data.extend(payload);
            if rng.below(10) == 0 {
                let at = rng.below(data.len());
                data[at] ^= 1 << rng.below(8);
            }
        }
        fuzzing::messages(&data);
    }
}

#[test]
fn versions_without_an_overlap_are_refused_by_both_sides() {
    let mut old = Predecessor::new(process(1), Vec::new());
    let hello = |protocol, state| {
        Message::Hello(crate::takeover::message::Hello {
            protocol,
            state,
            process: process(2),
        })
    };
    let fault = old.handle_message(hello((2, 7), (1, 1)), 0).unwrap_err();
    let text = fault.to_string();
    assert!(
        text.contains("versions 2 to 7, and this one 1 to 1"),
        "{text}"
    );

    // Listeners can be handed over even if states cannot.
    let mut old = Predecessor::new(process(1), Vec::new());
    old.handle_message(hello((1, 7), (90, 91)), 0).unwrap();
    let Some(Message::Welcome(mut welcome)) = old.poll_transmit() else {
        panic!("no welcome");
    };
    assert_eq!((welcome.protocol, welcome.state), (1, 0));
    welcome.protocol = 2;
    let mut new = Successor::new(process(2));
    let fault = new.handle_message(Message::Welcome(welcome), 0);
    assert!(matches!(fault, Err(Fault::Version { found: (2, 2) })));
}

#[test]
fn descriptors_are_counted() {
    let mut old = Predecessor::new(process(1), Vec::new());
    let fault = old.handle_message(Message::Prepared, 1).unwrap_err();
    let text = fault.to_string();
    assert_eq!(text, "message `prepared` has 1 descriptors in place of 0");
    let waiting = || {
        let mut pair = Pair::new();
        pair.run(3);
        assert_eq!(pair.new.step(), Step::Listeners);
        pair.new
    };
    // Too many, none, and those of an offer that was not wanted or is complete.
    for (offer, descriptors) in [(0, 301), (1, 2), (0, 0), (2, 1)] {
        let message = Message::Listeners { offer };
        let fault = waiting().handle_message(message, descriptors);
        assert!(matches!(fault, Err(Fault::Descriptors { .. })), "{fault:?}");
    }
    let mut new = waiting();
    new.handle_message(Message::Listeners { offer: 1 }, 1)
        .unwrap();
    let fault = new.handle_message(Message::Listeners { offer: 1 }, 1);
    assert!(matches!(fault, Err(Fault::Descriptors { expected: 0, .. })));
}

#[test]
fn offers_that_do_not_exist_or_are_wanted_twice_are_faults() {
    for wanted in [vec![2], vec![0, 1, 0], vec![u16::MAX]] {
        let mut pair = Pair::new();
        pair.run(2);
        let fault = pair.old.handle_message(Message::Ready { wanted }, 0);
        assert!(matches!(fault, Err(Fault::Offer { .. })), "{fault:?}");
    }
}
