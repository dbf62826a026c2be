//! One compiled filter.

use crate::{
    Limits, ParseError, cost,
    evaluated::{AtOnce, Search},
    guard::Guard,
    parse,
    program::Program,
    scan::Found,
    tree::Node,
    wanted::Wanted,
};

/// A compiled filter.
///
/// It matches a payload for which the expression is true. A field that is missing or of another type is an error, which
/// `&&` and `||` pass over if the other side decides; a filter that ends in one does not match.
///
/// Only what the filter names is read of a payload, and must be JSON. Of the rest, strings must be closed and brackets be
/// pairs: other payloads match no filter.
#[derive(Debug)]
pub struct Filter {
    text: String,
    program: Program,
    guard: Option<Guard>,
    searches: usize,
    wanted: Wanted,
    /// The places of the program's slots among what is wanted.
    slots: Vec<usize>,
}

impl Filter {
    /// Compiles an expression.
    ///
    /// # Errors
    /// The text is not an expression of the language, or is larger than allowed.
    pub fn new(text: &str, limits: &Limits) -> Result<Self, ParseError> {
        Ok(Self::compile(text, parse(text, limits)?))
    }

    fn compile(text: &str, root: Node) -> Self {
        let (guard, searches) = (Guard::find(&root), cost::searches(&root));
        let program = Program::new(root);
        let mut wanted = Wanted::new();
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

    /// Returns the text that it was compiled from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns how often it goes through values of a payload: what it costs beyond a time that its length bounds.
    ///
    /// `contains`, `endsWith` and operations on two fields count once, `size` and `in` with a field four times.
    pub fn searches(&self) -> usize {
        self.searches
    }

    /// Returns whether the expression is true for `payload`.
    ///
    /// For many filters [`FilterSet`](crate::FilterSet) is faster.
    pub fn matches(&self, payload: &[u8]) -> bool {
        let mut found = Found::new(&self.wanted);
        let is_scanned = found.scan(&self.wanted, payload);
        is_scanned && self.is_true(&found, &self.wanted, &self.slots, &mut AtOnce) == Some(true)
    }

    /// Evaluates with values that a scan for this and other filters has found. `None` if `searches` is to be gone on with
    /// later.
    pub(crate) fn is_true(
        &self,
        found: &Found<'_>,
        wanted: &Wanted,
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
