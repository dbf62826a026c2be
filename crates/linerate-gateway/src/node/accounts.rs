//! Where a worker counts the memory of its clients.

use linerate_broker::History;
use linerate_budget::{Account, Budget, Consumer};

/// The accounts of a worker: its own, so that they stay in the cache of its core.
#[derive(Clone, Debug, Default)]
pub(crate) struct Accounts {
    pub(crate) backlogs: Account,
    pub(crate) messages: Account,
    pub(crate) subscriptions: Account,
}

impl Accounts {
    pub(super) fn new(budget: &Budget) -> Self {
        Self {
            backlogs: budget.account(Consumer::Backlogs),
            messages: budget.account(Consumer::Messages),
            subscriptions: budget.account(Consumer::Subscriptions),
        }
    }

    /// Returns those of its WebSockets.
    pub(crate) fn connections(&self) -> linerate::Accounts {
        linerate::Accounts::new(self.backlogs.clone(), self.messages.clone())
    }
}

/// Counts what was read of a stream, until nobody holds it.
pub(super) fn counted(history: History, account: &Account) -> History {
    for publication in &history.publications {
        publication.charge(account);
    }
    history
}
