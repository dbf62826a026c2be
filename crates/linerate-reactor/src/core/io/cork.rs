//! Corked output: the output of several callbacks, which is written at once.

use std::ops::Range;

/// Capacity in bytes that the buffer keeps; it may have held a message of any size.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// The output of the callbacks that result from one read: bytes, and parts of the input that are
/// sent without a copy.
#[derive(Debug, Default)]
pub(crate) struct Cork {
    pub(crate) bytes: Vec<u8>,
    splices: Vec<Splice>,
    splice_bytes: usize,
}

/// A part of the input that is sent after the first `at` bytes of the cork.
#[derive(Clone, Debug)]
struct Splice {
    at: usize,
    input: Range<usize>,
}

impl Cork {
    /// Adds a part of the input, which must stay in place until the next flush.
    pub(crate) fn splice(&mut self, input: Range<usize>) {
        self.splice_bytes += input.len();
        let at = self.bytes.len();
        self.splices.push(Splice { at, input });
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES_MAX);
        self.splices.clear();
        self.splice_bytes = 0;
    }

    /// Returns whether the output contains parts of the input.
    pub(crate) fn has_splices(&self) -> bool {
        !self.splices.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.splices.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len() + self.splice_bytes
    }

    /// Returns the non-empty slices of the output followed by `tail`, in order.
    pub(super) fn slices<'a>(
        &'a self,
        input: &'a [u8],
        tail: &'a [u8],
    ) -> impl Iterator<Item = &'a [u8]> {
        let mut from = 0;
        let spliced = self.splices.iter().flat_map(move |splice| {
            let corked = &self.bytes[from..splice.at];
            from = splice.at;
            [corked, &input[splice.input.clone()]]
        });
        let last = self.splices.last().map_or(0, |splice| splice.at);
        let end = [&self.bytes[last..], tail];
        spliced.chain(end).filter(|slice| !slice.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_in_the_order_in_which_it_was_added() {
        let mut cork = Cork::default();
        cork.bytes.extend_from_slice(b"ab");
        cork.splice(2..4);
        cork.splice(0..1);
        cork.bytes.extend_from_slice(b"c");
        let all: Vec<u8> = cork.slices(b"WXYZ", b"!").flatten().copied().collect();
        assert_eq!(all, b"abYZWc!");
        assert_eq!(cork.len() + 1, all.len());
    }
}
