//! Input that was read and waits to be processed.

use crate::memory::{boxes::Boxes, pool::Pool};

/// Input that waits, of which the first bytes may have been processed. Without any, it is a null
/// pointer.
#[derive(Debug, Default)]
pub(crate) struct HeldInput(Option<Box<HeldBytes>>);

/// The bytes of held input. [`Boxes`] recycles empty ones.
#[derive(Debug, Default)]
pub(crate) struct HeldBytes {
    bytes: Vec<u8>,
    done: usize,
    deferred: bool,
}

impl HeldInput {
    pub(crate) fn append(&mut self, bytes: &[u8], pool: &mut Pool, boxes: &mut Boxes<HeldBytes>) {
        if bytes.is_empty() {
            return;
        }
        let held = self.0.get_or_insert_with(|| boxes.take());
        // Processed bytes are removed once they are the larger part: a constant cost for each byte.
        if held.done > held.bytes.len() - held.done {
            held.bytes.drain(..held.done);
            held.done = 0;
        }
        pool.reserve(&mut held.bytes, bytes.len());
        held.bytes.extend_from_slice(bytes);
    }

    /// Marks `bytes` more bytes as processed; gives the memory to the pool after the last byte.
    pub(crate) fn skip(&mut self, bytes: usize, pool: &mut Pool, boxes: &mut Boxes<HeldBytes>) {
        if let Some(held) = &mut self.0 {
            held.done += bytes;
            if held.done == held.bytes.len() {
                self.clear(pool, boxes);
            }
        }
    }

    /// Removes everything and gives the memory to the pool.
    pub(crate) fn clear(&mut self, pool: &mut Pool, boxes: &mut Boxes<HeldBytes>) {
        if let Some(mut held) = self.0.take() {
            (held.done, held.deferred) = (0, false);
            pool.give(std::mem::take(&mut held.bytes));
            boxes.give(held);
        }
    }

    /// Returns the bytes that have not been processed.
    pub(crate) fn unprocessed_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Some(held) => &mut held.bytes[held.done..],
            None => &mut [],
        }
    }

    /// Sets whether the bytes wait for their turn. Has no effect if there are none.
    pub(crate) fn set_deferred(&mut self, deferred: bool) {
        if let Some(held) = &mut self.0 {
            held.deferred = deferred;
        }
    }

    /// Returns whether the bytes wait for their turn.
    pub(crate) fn is_deferred(&self) -> bool {
        self.0.as_ref().is_some_and(|held| held.deferred)
    }

    /// Returns the memory of the bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.0.as_ref().map_or(0, |held| held.bytes.capacity())
    }

    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_input_keeps_order_over_appends_and_skips() {
        let (mut pool, mut boxes) = (Pool::default(), Boxes::default());
        let mut held = HeldInput::default();
        let (mut put, mut taken) = (0_u8, 0_u8);
        for round in 0..2_000_usize {
            for _ in 0..round % 7 {
                held.append(&[put], &mut pool, &mut boxes);
                put = put.wrapping_add(1);
            }
            let bytes = (round % 5).min(held.unprocessed_mut().len());
            for byte in &held.unprocessed_mut()[..bytes] {
                assert_eq!(*byte, taken);
                taken = taken.wrapping_add(1);
            }
            held.skip(bytes, &mut pool, &mut boxes);
        }
        let bytes = held.unprocessed_mut().len();
        assert_eq!(taken.wrapping_add(bytes as u8), put);
        held.skip(bytes, &mut pool, &mut boxes);
        assert!(held.is_empty());
    }
}
