//! Accounting for the memory of a connection that its peer controls, for servers with a memory
//! budget.

use linerate_budget::Account;

use crate::pool;

/// The accounts to which the memory of connections is charged, for servers that limit their total
/// memory.
///
/// The default counts nothing. Each connection is counted after its driver has run, in steps of 4
/// KiB; smaller amounts are part of the base cost of a connection.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Accounts {
    /// Output that is queued for the socket, except [`Frames`](crate::Frames): their creator counts
    /// them once.
    pub backlogs: Account,
    /// Unparsed input, incomplete messages, and messages that the application has not received yet.
    pub messages: Account,
}

impl Accounts {
    /// Charges the memory of connections to these accounts.
    pub const fn new(backlogs: Account, messages: Account) -> Self {
        Self { backlogs, messages }
    }
}

/// Frees the buffers that this thread keeps for reuse and those that all threads share.
///
/// Call this on each thread when the process is short of memory.
pub fn free_buffers() {
    pool::free();
}

/// Frees the buffers that this thread keeps for reuse and has not needed since the last call.
///
/// Call this regularly, such as every few seconds, on threads that live long. After a burst of
/// large messages, a few unused buffers can keep an allocator from returning much larger areas to
/// the system.
pub fn free_unused_buffers() {
    pool::free_unused();
}

/// The memory of a connection that has been counted so far, in steps.
#[derive(Debug, Default, Eq, PartialEq)]
pub(crate) struct Counted {
    backlog: u16,
    messages: u16,
}

/// The size of a step in bytes.
const STEP_BYTES: usize = 4 << 10;

impl Counted {
    /// Updates the accounts to the bytes that a connection holds now.
    pub(crate) fn set(&mut self, accounts: &Accounts, backlog: usize, messages: usize) {
        change(&accounts.backlogs, &mut self.backlog, backlog);
        change(&accounts.messages, &mut self.messages, messages);
    }
}

fn change(account: &Account, counted: &mut u16, bytes: usize) {
    // A u16 covers 256 MiB, which is above the limits of a connection.
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
