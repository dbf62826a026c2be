//! The places of gaps among a class's publications.

use std::collections::VecDeque;

use crate::{Gap, GapCause};

/// How many gaps are kept for subscribers that have not reached them. A subscriber that is further
/// behind is told about all older gaps at once, without a count.
const MARKS_MAX: usize = 16;

/// Gaps in the order in which they occurred, numbered from 0.
#[derive(Debug)]
pub(crate) struct Marks {
    list: VecDeque<Mark>,
    base: u64,
    dropped_cause: GapCause,
}

/// A gap and its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    /// The number in the class of the publication after the gap.
    pub(crate) at: u64,
    /// The number in the ring of the publication after the gap.
    pub(crate) ring_at: u64,
    pub(crate) gap: Gap,
}

impl Marks {
    pub(crate) fn new() -> Self {
        Self {
            list: VecDeque::new(),
            base: 0,
            dropped_cause: GapCause::LinkLost,
        }
    }

    pub(crate) fn push(&mut self, mark: Mark) {
        if self.list.len() == MARKS_MAX {
            self.drop_oldest();
        }
        self.list.push_back(mark);
    }

    /// Removes the marks before `number`, which all subscribers have seen.
    pub(crate) fn forget_before(&mut self, number: u64) {
        while self.base < number && !self.list.is_empty() {
            self.drop_oldest();
        }
    }

    /// Returns the number of the next mark.
    pub(crate) fn head(&self) -> u64 {
        self.base + self.list.len() as u64
    }

    /// Returns how many marks were dropped, and the cause of the last of them.
    pub(crate) fn dropped(&self) -> (u64, GapCause) {
        (self.base, self.dropped_cause)
    }

    /// Returns the mark with this number if it is still kept.
    pub(crate) fn at(&self, number: u64) -> Option<&Mark> {
        let place = number.checked_sub(self.base)?;
        self.list.get(place as usize)
    }

    fn drop_oldest(&mut self) {
        if let Some(mark) = self.list.pop_front() {
            self.base += 1;
            self.dropped_cause = mark.gap.cause;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MARKS_MAX, Mark, Marks};
    use crate::{Gap, GapCause};

    fn push(marks: &mut Marks, cause: GapCause) {
        let gap = Gap {
            missed: None,
            cause,
        };
        marks.push(Mark {
            at: 0,
            ring_at: 0,
            gap,
        });
    }

    #[test]
    fn marks_are_removed_up_to_a_number() {
        let mut marks = Marks::new();
        push(&mut marks, GapCause::Overflow);
        push(&mut marks, GapCause::StreamReset);
        push(&mut marks, GapCause::LinkLost);
        marks.forget_before(2);
        assert_eq!(marks.dropped(), (2, GapCause::StreamReset));
        assert!(marks.at(1).is_none() && marks.at(2).is_some() && marks.at(3).is_none());
        marks.forget_before(9);
        assert_eq!(
            (marks.dropped().0, marks.head()),
            (3, 3),
            "there are no more marks"
        );
    }

    #[test]
    fn the_number_of_marks_is_limited() {
        let mut marks = Marks::new();
        for _ in 0..MARKS_MAX {
            push(&mut marks, GapCause::Overflow);
        }
        assert_eq!(marks.dropped().0, 0);
        push(&mut marks, GapCause::LinkLost);
        assert_eq!(marks.dropped(), (1, GapCause::Overflow));
        assert_eq!(marks.head(), MARKS_MAX as u64 + 1);
    }
}
