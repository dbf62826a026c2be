//! The memory of connections that their peers control, as it is charged to a worker.

use super::Connection;

/// The memory that the connections of a worker use for what their peers send or do not read.
///
/// Each connection is counted in steps of 4 KiB; smaller amounts are part of the base cost of a
/// connection.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct MemoryUse {
    /// Output that waits for sockets, without shared frames, in bytes.
    pub backlog_bytes: u64,
    /// Unfinished messages and unprocessed input, in bytes.
    pub input_bytes: u64,
}

/// The memory of one connection that has been charged so far, in steps.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Charged {
    backlog: u16,
    input: u16,
}

/// The size of a step in bytes.
const STEP_BYTES: usize = 4 << 10;

impl MemoryUse {
    /// Charges what a connection uses now.
    #[inline]
    pub(crate) fn charge(&mut self, connection: &mut Connection) {
        let is_idle = connection.backlog.is_empty()
            && connection.held.is_empty()
            && connection.partial.is_none();
        let now = match is_idle {
            true => Charged::default(),
            false => Charged {
                backlog: steps(connection.backlog.owned_bytes()),
                input: steps(connection.input_bytes()),
            },
        };
        if now != connection.charged {
            self.replace(std::mem::replace(&mut connection.charged, now), now);
        }
    }

    /// Removes the charge of a connection that has ended.
    pub(crate) fn discharge(&mut self, connection: &mut Connection) {
        self.replace(std::mem::take(&mut connection.charged), Charged::default());
    }

    fn replace(&mut self, before: Charged, now: Charged) {
        self.backlog_bytes = self.backlog_bytes + bytes(now.backlog) - bytes(before.backlog);
        self.input_bytes = self.input_bytes + bytes(now.input) - bytes(before.input);
    }
}

fn steps(bytes: usize) -> u16 {
    // A u16 covers 256 MiB, which is above the limits of a connection.
    u16::try_from(bytes / STEP_BYTES).unwrap_or(u16::MAX)
}

fn bytes(steps: u16) -> u64 {
    u64::from(steps) * STEP_BYTES as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_counted_in_steps_and_not_twice() {
        let mut used = MemoryUse::default();
        let mut before = Charged::default();
        let step = STEP_BYTES as u64;
        for (backlog, input) in [(0, 4_096), (4_095, 9_000), (1 << 40, 0), (0, 0)] {
            let now = Charged {
                backlog: steps(backlog),
                input: steps(input),
            };
            used.replace(std::mem::replace(&mut before, now), now);
            assert_eq!(
                used.backlog_bytes,
                (backlog as u64 / step).min(65_535) * step
            );
            assert_eq!(used.input_bytes, input as u64 / step * step);
        }
        assert_eq!(used, MemoryUse::default());
    }
}
