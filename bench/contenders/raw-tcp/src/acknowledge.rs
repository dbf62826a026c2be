//! Counts the bytes of an upload.

/// Finds the ends of messages without frames: all have the same length, which the client sends
/// first, in eight bytes, little-endian.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    announcement: [u8; 8],
    announced: usize,
    message_bytes: u64,
    /// Bytes of the unfinished message.
    received: u64,
}

/// The client announced messages of length 0, whose ends cannot be found.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct EmptyMessages;

impl Counter {
    /// Returns how many messages end in `input`.
    pub(crate) fn handle_input(&mut self, input: &[u8]) -> Result<u64, EmptyMessages> {
        let mut input = input;
        if self.announced < self.announcement.len() {
            let taken = input.len().min(self.announcement.len() - self.announced);
            let (head, rest) = input.split_at(taken);
            self.announcement[self.announced..][..taken].copy_from_slice(head);
            self.announced += taken;
            input = rest;
            if self.announced < self.announcement.len() {
                return Ok(0);
            }
            self.message_bytes = u64::from_le_bytes(self.announcement);
        }
        if self.message_bytes == 0 {
            return Err(EmptyMessages);
        }
        // No overflow: less than a message is left over each time.
        self.received = self.received.saturating_add(input.len() as u64);
        let messages = self.received / self.message_bytes;
        self.received %= self.message_bytes;
        Ok(messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_end_wherever_the_input_is_cut() {
        let mut stream = 3u64.to_le_bytes().to_vec();
        stream.extend([7; 10]);
        for cut in 0..=stream.len() {
            let mut counter = Counter::default();
            let first = counter.handle_input(&stream[..cut]).unwrap();
            let second = counter.handle_input(&stream[cut..]).unwrap();
            let ended = (cut.saturating_sub(8) / 3) as u64;
            assert_eq!((first, second), (ended, 3 - ended), "cut at {cut}");
            assert_eq!(counter.handle_input(&[7; 2]), Ok(1));
        }
    }

    #[test]
    fn empty_messages_are_refused() {
        assert_eq!(Counter::default().handle_input(&[0; 8]), Err(EmptyMessages));
    }
}
