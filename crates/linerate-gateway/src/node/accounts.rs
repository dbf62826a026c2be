//! The memory accounts of a worker.

use linerate_broker::{BrokerError, History, HistoryRequest, StreamOptions};
use linerate_budget::{Account, Budget, Consumer, State};

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
    pub(crate) fn connections(&self) -> linerate::Accounts {
        linerate::Accounts::new(self.backlogs.clone(), self.messages.clone())
    }
}

/// Refuses a read that would load publications into memory while memory is critical. Streams that
/// the node stores itself are in memory already.
pub(super) fn check_read(
    budget: &Budget,
    stream: StreamOptions,
    request: &HistoryRequest,
) -> Result<(), BrokerError> {
    let is_large = stream.is_durable && request.limit != Some(0);
    match is_large && budget.state() == State::Critical {
        true => Err(BrokerError::Overloaded),
        false => Ok(()),
    }
}

/// Charges publications read from a stream to `account` until they are dropped.
pub(super) fn counted(history: History, account: &Account) -> History {
    for publication in &history.publications {
        publication.charge(account);
    }
    history
}
