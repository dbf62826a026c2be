//! One compiled filter.

use crate::{
    Limits, ParseError, cost,
    evaluated::{Immediate, Search},
    guard::Guard,
    parse,
    path_tree::PathTree,
    program::Program,
    scan::FoundValues,
    tree::Node,
};

/// A compiled filter.
///
/// It matches a payload if the expression is true. A field that is missing or of another type is an
/// error. `&&` and `||` ignore the error if the other side decides the result; a filter whose
/// result is an error does not match.
///
/// Only the values that the filter names are read, and they must be valid JSON. In the rest of the
/// payload, only the strings must be closed and the brackets must match. A payload that violates
/// this matches no filter.
#[derive(Debug)]
pub struct Filter {
    text: String,
    program: Program,
    guard: Option<Guard>,
    searches: usize,
    wanted: PathTree,
    /// The position in `wanted` of each slot of the program.
    slots: Vec<usize>,
}

impl Filter {
    /// Compiles an expression.
    ///
    /// # Errors
    /// Returns an error if the text is not an expression of the language, or is larger than
    /// allowed.
    pub fn new(text: &str, limits: &Limits) -> Result<Self, ParseError> {
        Ok(Self::compile(text, parse(text, limits)?))
    }

    fn compile(text: &str, root: Node) -> Self {
        let (guard, searches) = (Guard::find(&root), cost::searches(&root));
        let program = Program::new(root);
        let mut wanted = PathTree::new();
        let slots = program
            .paths()
            .iter()
            .map(|path| wanted.add(path))
            .collect();
        Self {
            text: text.to_owned(),
            guard,
            searches,
            program,
            wanted,
            slots,
        }
    }

    /// Returns the text that the filter was compiled from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns how often the filter searches through values of a payload. These searches cost time
    /// that grows with the payload; the length of the expression bounds the cost of everything
    /// else.
    ///
    /// `contains`, `endsWith` and operations on two fields count as one search each; `size`, and
    /// `in` with a field, count as four.
    pub fn searches(&self) -> usize {
        self.searches
    }

    /// Returns whether the expression is true for `payload`.
    ///
    /// To match a payload with many filters, [`FilterSet`](crate::FilterSet) is faster.
    pub fn matches(&self, payload: &[u8]) -> bool {
        let mut found = FoundValues::new(&self.wanted);
        let is_scanned = found.scan(&self.wanted, payload);
        is_scanned && self.is_true(&found, &self.wanted, &self.slots, &mut Immediate) == Some(true)
    }

    /// Evaluates the filter with the values that a scan for this and other filters has found.
    /// Returns `None` if `searches` has stopped and the evaluation is to continue later.
    pub(crate) fn is_true(
        &self,
        found: &FoundValues<'_>,
        wanted: &PathTree,
        slots: &[usize],
        searches: &mut impl Search,
    ) -> Option<bool> {
        self.program
            .is_true(|slot| found.value(wanted, slots[slot]), searches)
    }

    pub(crate) fn program(&self) -> &Program {
        &self.program
    }

    pub(crate) fn guard(&self) -> Option<&Guard> {
        self.guard.as_ref()
    }
}
