//! The messages that have been published and not yet delivered to all connections.

use std::time::Instant;

use linerate_proto::{MaskKey, Opcode};

use crate::cell::Fanout;
use crate::load::Wire;
use crate::load::message::{Expected, Message};

/// Number of digits of a message's number at the start of its payload.
const DIGITS: usize = 16;

/// The masking key of all messages. Its bytes differ.
const KEY: MaskKey = MaskKey([0x9E, 0x37, 0x79, 0xB9]);

/// The newest messages, each as it is sent to the server and as it should be delivered.
#[derive(Debug)]
pub(super) struct Publications {
    /// Slots for messages, used in turn.
    places: Vec<Slot>,
    wire: Wire,
    /// Number of the oldest message that has not been delivered to all connections.
    oldest: u64,
    /// Number of messages published so far.
    published: u64,
}

#[derive(Debug)]
struct Slot {
    sent: Message,
    /// The message as it is delivered in frames. On a raw wire it is delivered as it was sent.
    delivered: Message,
    at: Instant,
    /// Number of connections that have not received the whole message.
    missing: u32,
}

impl Publications {
    /// Allocates one slot for each message of the window.
    pub(super) fn new(load: &Fanout, wire: Wire) -> Self {
        let place = |number: usize| {
            let payload = filling(number, load.payload_bytes as usize);
            Slot {
                sent: Message::new(Opcode::Text, &payload, Some(KEY)),
                delivered: Message::new(Opcode::Text, &payload, None),
                at: Instant::now(),
                missing: 0,
            }
        };
        Self {
            places: (0..load.window.max(1) as usize).map(place).collect(),
            wire,
            oldest: 0,
            published: 0,
        }
    }

    /// Returns the frame of the next message, which is delivered to `connections` connections. A
    /// slot must be free for it.
    pub(super) fn publish(&mut self, connections: u32) -> &[u8] {
        let (number, place) = (self.published, self.place(self.published));
        self.published += 1;
        let place = &mut self.places[place];
        debug_assert_eq!(
            place.missing, 0,
            "there are fewer slots than messages in the window"
        );
        let stamp = format!("{number:0DIGITS$x}");
        let payload = place.delivered.payload_mut();
        // Only the last digits are used if the payload is shorter than the number.
        let stamp = &stamp.as_bytes()[DIGITS - DIGITS.min(payload.len())..];
        payload[..stamp.len()].copy_from_slice(stamp);
        let masked = &mut place.sent.payload_mut()[..stamp.len()];
        linerate_simd::mask::copy(KEY.0, 0, stamp, masked);
        place.missing = connections;
        place.at = Instant::now();
        place.sent.frame()
    }

    /// Returns message `number` as it is delivered, or `None` if it has not been published.
    pub(super) fn expected(&self, number: u64) -> Option<Expected<'_>> {
        if number >= self.published {
            return None;
        }
        let place = &self.places[self.place(number)];
        Some(match self.wire {
            Wire::Raw => place.sent.expected_raw(),
            Wire::WebSocket => place.delivered.expected(),
        })
    }

    /// Records that one connection has received message `number`. Returns when it was published.
    pub(super) fn deliver(&mut self, number: u64) -> Instant {
        let place = self.place(number);
        self.places[place].missing -= 1;
        while self.oldest < self.published && self.places[self.place(self.oldest)].missing == 0 {
            self.oldest += 1;
        }
        self.places[place].at
    }

    /// Treats all messages as delivered.
    pub(super) fn give_up(&mut self) {
        self.oldest = self.published;
        for place in &mut self.places {
            place.missing = 0;
        }
    }

    /// Returns how many messages have been published.
    pub(super) fn published(&self) -> u64 {
        self.published
    }

    /// Returns the number of messages from the oldest one that has not reached all connections up
    /// to the newest. Messages in between count even if they have reached all connections.
    pub(super) fn in_flight(&self) -> u64 {
        self.published - self.oldest
    }

    fn place(&self, number: u64) -> usize {
        (number % self.places.len() as u64) as usize
    }
}

/// Returns text that differs between any two slots of a window of up to 63.
fn filling(place: usize, bytes: usize) -> Vec<u8> {
    const TEXT: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789abcdefghijklmnopqrstuvwxyz ";
    TEXT.iter()
        .cycle()
        .skip(place % TEXT.len())
        .take(bytes)
        .copied()
        .collect()
}
