//! How much memory a connection holds that its peer has made grow, as somebody who has a budget counts it.

use linerate_budget::Account;

use crate::pool;

/// Where the memory of connections is counted, for servers that bound it for all of them together.
///
/// The default counts nothing. Each connection is counted when its driver has run, in steps of 4 KiB: what is smaller
/// belongs to what a connection costs anyway.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Accounts {
    /// What waits for the socket, apart from [`Frames`](crate::Frames): who made them counts them once.
    pub backlogs: Account,
    /// Input that is not parsed, messages that are not whole, and those that the application has not taken.
    pub messages: Account,
}

impl Accounts {
    /// Counts in these accounts.
    pub const fn new(backlogs: Account, messages: Account) -> Self {
        Self { backlogs, messages }
    }
}

/// Frees the buffers that this thread keeps for reuse, and those that all threads share: for a process that is short of
/// memory, on each of its threads.
pub fn free_buffers() {
    pool::free();
}

/// What of a connection is counted, in steps.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    backlog: u16,
    messages: u16,
}

/// The bytes of a step.
const STEP_BYTES: usize = 4 << 10;

impl Counted {
    /// Counts a connection that holds so many bytes.
    pub(crate) fn set(&mut self, accounts: &Accounts, backlog: usize, messages: usize) {
        change(&accounts.backlogs, &mut self.backlog, backlog);
        change(&accounts.messages, &mut self.messages, messages);
    }
}

fn change(account: &Account, counted: &mut u16, bytes: usize) {
    // What is more than a u16 holds is 256 MiB, above the limits of a connection.
    let steps = u16::try_from(bytes / STEP_BYTES).unwrap_or(u16::MAX);
    let bytes_of = |steps: u16| u64::from(steps) * STEP_BYTES as u64;
    if steps > *counted {
        account.add(bytes_of(steps - *counted));
    } else if steps < *counted {
        account.sub(bytes_of(*counted - steps));
    }
    *counted = steps;
}

#[cfg(test)]
mod tests {
    use linerate_budget::{Budget, Consumer};

    use super::{Accounts, Counted, STEP_BYTES};

    #[test]
    fn a_connection_is_counted_in_steps_and_not_twice() {
        let budget = Budget::new(1 << 30);
        let account = |consumer| budget.account(consumer);
        let accounts = Accounts::new(account(Consumer::Backlogs), account(Consumer::Messages));
        let mut counted = Counted::default();
        let step = STEP_BYTES as u64;
        for (backlog, messages) in [(STEP_BYTES - 1, 0), (STEP_BYTES, 9 * STEP_BYTES), (3, 5)] {
            counted.set(&accounts, backlog, messages);
            assert_eq!(accounts.backlogs.bytes(), backlog as u64 / step * step);
            assert_eq!(accounts.messages.bytes(), messages as u64 / step * step);
        }
        counted.set(&accounts, usize::MAX, 0);
        assert_eq!(accounts.backlogs.bytes(), 65_535 * step);
        counted.set(&accounts, 0, 0);
        assert_eq!(accounts.backlogs.bytes(), 0);
    }
}
