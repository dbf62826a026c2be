//! A buffer of waiting bytes whose first part has been processed.

use crate::memory::pool::Pool;

/// Bytes of which the first ones have been processed. An empty remainder is a null pointer.
#[derive(Debug, Default)]
pub(crate) struct Remainder(Option<Box<Rest>>);

/// The content of a remainder. [`Pool`] recycles empty ones.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    bytes: Vec<u8>,
    done: usize,
    deferred: bool,
}

impl Remainder {
    pub(crate) fn append(&mut self, bytes: &[u8], pool: &mut Pool) {
        if bytes.is_empty() {
            return;
        }
        let rest = self.0.get_or_insert_with(|| pool.take_rest());
        // Processed bytes are removed once they are the larger part: a constant cost for each byte.
        if rest.done > rest.bytes.len() - rest.done {
            rest.bytes.drain(..rest.done);
            rest.done = 0;
        }
        pool.reserve(&mut rest.bytes, bytes.len());
        rest.bytes.extend_from_slice(bytes);
    }

    /// Marks `bytes` more bytes as processed; gives the memory to the pool after the last byte.
    pub(crate) fn skip(&mut self, bytes: usize, pool: &mut Pool) {
        if let Some(rest) = &mut self.0 {
            rest.done += bytes;
            if rest.done == rest.bytes.len() {
                self.clear(pool);
            }
        }
    }

    /// Removes everything and gives the memory to the pool.
    pub(crate) fn clear(&mut self, pool: &mut Pool) {
        if let Some(mut rest) = self.0.take() {
            (rest.done, rest.deferred) = (0, false);
            pool.give(std::mem::take(&mut rest.bytes));
            pool.give_rest(rest);
        }
    }

    /// Returns the bytes that have not been processed.
    pub(crate) fn rest_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Some(rest) => &mut rest.bytes[rest.done..],
            None => &mut [],
        }
    }

    /// Sets whether the bytes wait for their turn. Has no effect if there are none.
    pub(crate) fn set_deferred(&mut self, deferred: bool) {
        if let Some(rest) = &mut self.0 {
            rest.deferred = deferred;
        }
    }

    /// Returns whether the bytes wait for their turn.
    pub(crate) fn is_deferred(&self) -> bool {
        self.0.as_ref().is_some_and(|rest| rest.deferred)
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
    fn a_remainder_keeps_order_over_appends_and_skips() {
        let mut pool = Pool::default();
        let mut remainder = Remainder::default();
        let (mut put, mut taken) = (0_u8, 0_u8);
        for round in 0..2_000_usize {
            for _ in 0..round % 7 {
                remainder.append(&[put], &mut pool);
                put = put.wrapping_add(1);
            }
            let bytes = (round % 5).min(remainder.rest_mut().len());
            for byte in &remainder.rest_mut()[..bytes] {
                assert_eq!(*byte, taken);
                taken = taken.wrapping_add(1);
            }
            remainder.skip(bytes, &mut pool);
        }
        let bytes = remainder.rest_mut().len();
        assert_eq!(taken.wrapping_add(bytes as u8), put);
        remainder.skip(bytes, &mut pool);
        assert!(remainder.is_empty());
    }
}
