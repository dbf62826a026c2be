//! Bytes that wait, behind some that are done with.

use crate::pool::Pool;

/// Bytes of which the first ones are done with.
#[derive(Debug, Default)]
pub(crate) struct Remainder {
    bytes: Vec<u8>,
    done: usize,
}

impl Remainder {
    /// Adds bytes.
    pub(crate) fn append(&mut self, bytes: &[u8], pool: &mut Pool) {
        if bytes.is_empty() {
            return;
        }
        // What is done with is moved out once it is the larger part: a constant for each byte.
        if self.done > self.len() {
            self.bytes.drain(..self.done);
            self.done = 0;
        }
        pool.reserve(&mut self.bytes, bytes.len());
        self.bytes.extend_from_slice(bytes);
    }

    /// Is done with `bytes` more; gives the memory back after the last.
    pub(crate) fn skip(&mut self, bytes: usize, pool: &mut Pool) {
        self.done += bytes;
        if self.is_empty() {
            self.clear(pool);
        }
    }

    /// Forgets all and gives the memory back.
    pub(crate) fn clear(&mut self, pool: &mut Pool) {
        let Self { bytes, .. } = std::mem::take(self);
        pool.give(bytes);
    }

    /// Returns the bytes that are not done with.
    pub(crate) fn rest_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.done..]
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.done
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remainder_keeps_order_over_appends_and_skips() {
        let mut pool = Pool::default();
        let mut remainder = Remainder::default();
        let (mut put, mut taken) = (0_u8, 0_u8);
        for round in 0..2_000_usize {
            for _ in 0..round % 7 {
                remainder.append(&[put], &mut pool);
                put = put.wrapping_add(1);
            }
            let bytes = (round % 5).min(remainder.len());
            for byte in &remainder.rest_mut()[..bytes] {
                assert_eq!(*byte, taken);
                taken = taken.wrapping_add(1);
            }
            remainder.skip(bytes, &mut pool);
        }
        let bytes = remainder.len();
        assert_eq!(taken.wrapping_add(bytes as u8), put);
        remainder.skip(bytes, &mut pool);
        assert!(remainder.is_empty());
    }
}
