//! Holds events that arrive before everything is subscribed again.

use crate::event::Event;

/// The maximum number of bytes that may wait.
const BYTES_MAX: usize = 64 << 20;

/// The approximate size in bytes of an event without its payload.
const EVENT_BYTES: usize = 400;

/// Events that wait. If they become too many, all of them are dropped.
#[derive(Debug, Default)]
pub(super) struct HeldEvents {
    events: Vec<Event>,
    bytes: usize,
}

impl HeldEvents {
    /// Adds events after those that already wait.
    pub(super) fn extend(&mut self, events: Vec<Event>) {
        let bytes = events.iter().map(|event| match event {
            Event::Publication { publication, .. } => publication.payload().len() + EVENT_BYTES,
            _ => EVENT_BYTES,
        });
        self.bytes = self.bytes.saturating_add(bytes.sum());
        match self.bytes > BYTES_MAX {
            false => self.events.extend(events),
            true => self.events = Vec::new(),
        }
    }

    /// Returns the events that have waited, or `None` if there were too many and they were dropped.
    pub(super) fn take(&mut self) -> Option<Vec<Event>> {
        let Self { events, bytes } = std::mem::take(self);
        (bytes <= BYTES_MAX).then_some(events)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use linerate_hub::{ChannelName, Publication};

    use super::{BYTES_MAX, EVENT_BYTES, HeldEvents};
    use crate::event::Event;

    fn event(bytes: usize) -> Event {
        Event::Publication {
            channel: ChannelName::new("a").unwrap(),
            publication: Publication::new(Bytes::from(vec![0; bytes])),
        }
    }

    #[test]
    fn events_wait_in_order_up_to_a_bound() {
        let mut held = HeldEvents::default();
        held.extend(vec![event(1), event(2)]);
        held.extend(vec![event(BYTES_MAX - 3 - 3 * EVENT_BYTES)]);
        assert_eq!(held.take().unwrap().len(), 3);
        assert_eq!(held.take().unwrap().len(), 0);
    }

    #[test]
    fn beyond_the_bound_nothing_is_kept_and_this_is_reported() {
        let mut held = HeldEvents::default();
        held.extend(vec![event(1)]);
        held.extend(vec![event(BYTES_MAX - 2 * EVENT_BYTES)]);
        held.extend(vec![event(1)]);
        assert!(held.events.is_empty());
        assert!(held.take().is_none());
        held.extend(vec![event(1)]);
        assert_eq!(held.take().unwrap().len(), 1);
    }
}
