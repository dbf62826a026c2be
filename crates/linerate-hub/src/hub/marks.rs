//! Where in a class's publications gaps are.

use std::collections::VecDeque;

use crate::{Gap, GapCause};

/// How many gaps are kept for subscribers that have not come to them. One that is more behind is told of the
/// older ones at once, without a count.
const MARKS_MAX: usize = 16;

/// Gaps in the order in which they came, numbered from 0.
#[derive(Debug)]
pub(crate) struct Marks {
    list: VecDeque<Mark>,
    base: u64,
    dropped_cause: GapCause,
}

/// A gap and its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    /// The number of the publication of the class that follows.
    pub(crate) at: u64,
    /// The number of the publication of the ring that follows.
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

    /// Forgets the marks before `number`, which everybody has seen.
    pub(crate) fn forget_before(&mut self, number: u64) {
        while self.base < number && !self.list.is_empty() {
            self.drop_oldest();
        }
    }

    /// Returns the number of the next mark.
    pub(crate) fn head(&self) -> u64 {
        self.base + self.list.len() as u64
    }

    /// Returns the number of marks that are no longer known, and the cause of the last of them.
    pub(crate) fn dropped(&self) -> (u64, GapCause) {
        (self.base, self.dropped_cause)
    }

    /// Returns a mark that is still known.
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
    fn marks_are_forgotten_up_to_a_number_and_no_further() {
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
            "there are no more"
        );
    }

    #[test]
    fn as_many_marks_are_known_as_there_may_be() {
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
