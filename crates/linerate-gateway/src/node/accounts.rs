//! The memory accounts of a worker.

use linerate_budget::{Account, Budget, Consumer};

/// The accounts of one worker. Each worker has its own, so that they stay in the cache of its core.
#[derive(Clone, Debug, Default)]
pub(crate) struct Accounts {
    pub(crate) backlogs: Account,
    pub(crate) blocks: Account,
    pub(crate) messages: Account,
    pub(crate) subscriptions: Account,
}

impl Accounts {
    pub(super) fn new(budget: &Budget) -> Self {
        Self {
            backlogs: budget.account(Consumer::Backlogs),
            blocks: budget.account(Consumer::Blocks),
            messages: budget.account(Consumer::Messages),
            subscriptions: budget.account(Consumer::Subscriptions),
        }
    }

    /// Returns the accounts for its WebSockets.
    pub(crate) fn connections(&self) -> linerate::memory::Accounts {
        linerate::memory::Accounts::new(self.backlogs.clone(), self.messages.clone())
    }
}
