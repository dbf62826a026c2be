//! What was published and is not yet delivered to all.

use std::time::Instant;

use linerate_proto::{MaskKey, Opcode};

use crate::cell::Fanout;
use crate::load::Wire;
use crate::load::message::{Expected, Message};

/// Digits of a message's number at the start of its payload.
const DIGITS: usize = 16;

/// The masking key of all messages; its bytes differ.
const KEY: MaskKey = MaskKey([0x9E, 0x37, 0x79, 0xB9]);

/// The newest messages, each as it goes to the server and as it should come back.
#[derive(Debug)]
pub(super) struct Publications {
    /// Places for messages, used in turns.
    places: Vec<Place>,
    wire: Wire,
    /// The oldest message that is not delivered to all.
    oldest: u64,
    /// Messages published so far.
    published: u64,
}

#[derive(Debug)]
struct Place {
    sent: Message,
    /// As it comes where there are frames; else it comes as it was sent.
    delivered: Message,
    at: Instant,
    /// Connections that have not got it whole.
    missing: u32,
}

impl Publications {
    /// Prepares the places.
    pub(super) fn new(load: &Fanout, wire: Wire) -> Self {
        let place = |number: usize| {
            let payload = filling(number, load.payload_bytes as usize);
            Place {
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

    /// Returns the frame of the next message, which goes to so many `connections`. There has to be a
    /// place for it.
    pub(super) fn publish(&mut self, connections: u32) -> &[u8] {
        let (number, place) = (self.published, self.place(self.published));
        self.published += 1;
        let place = &mut self.places[place];
        debug_assert_eq!(place.missing, 0, "the window is wider than the places");
        let stamp = format!("{number:0DIGITS$x}");
        let payload = place.delivered.payload_mut();
        // The last digits, if the payload is that short.
        let stamp = &stamp.as_bytes()[DIGITS - DIGITS.min(payload.len())..];
        payload[..stamp.len()].copy_from_slice(stamp);
        let masked = &mut place.sent.payload_mut()[..stamp.len()];
        linerate_simd::mask::copy(KEY.0, 0, stamp, masked);
        place.missing = connections;
        place.at = Instant::now();
        place.sent.frame()
    }

    /// Returns how the message `number` comes, `None` if it was not published.
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

    /// Takes note that the message `number` came to one connection; returns when it was published.
    pub(super) fn deliver(&mut self, number: u64) -> Instant {
        let place = self.place(number);
        self.places[place].missing -= 1;
        while self.oldest < self.published && self.places[self.place(self.oldest)].missing == 0 {
            self.oldest += 1;
        }
        self.places[place].at
    }

    /// Takes all messages for delivered.
    pub(super) fn give_up(&mut self) {
        self.oldest = self.published;
        for place in &mut self.places {
            place.missing = 0;
        }
    }

    /// Returns how many messages were published.
    pub(super) fn published(&self) -> u64 {
        self.published
    }

    /// Returns how many messages have not come to all connections. The oldest of them counts, and
    /// with it those behind it that have.
    pub(super) fn in_flight(&self) -> u64 {
        self.published - self.oldest
    }

    fn place(&self, number: u64) -> usize {
        (number % self.places.len() as u64) as usize
    }
}

/// Returns text that is not the same in any two places of a window of up to 63.
fn filling(place: usize, bytes: usize) -> Vec<u8> {
    const TEXT: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789abcdefghijklmnopqrstuvwxyz ";
    TEXT.iter()
        .cycle()
        .skip(place % TEXT.len())
        .take(bytes)
        .copied()
        .collect()
}
