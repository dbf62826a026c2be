//! A run that can begin or continue: its plan, its cores and its record.

use linerate_bench::{
    host::Cores,
    record::{Journal, Record},
    run::Plan,
};

/// What a run needs in addition to the servers it measures.
pub(super) struct Prepared {
    pub(super) plan: Plan,
    pub(super) cores: Cores,
    pub(super) journal: Journal,
    /// The measurements already in the record.
    pub(super) done: Record,
}

impl Prepared {
    /// Returns whether the contender with this name is measured.
    pub(super) fn takes_part(&self, name: &str) -> bool {
        let mut notes = self.done.run.contenders.iter();
        notes.any(|note| note.name == name && note.absent.is_none())
    }
}
