//! The CPU time of the whole machine, according to `/proc/stat` (proc(5)).

use std::{fs, io, time::Duration};

use crate::process::from_ticks;

/// What all cores together have done since the machine was started.
#[derive(Clone, Copy, Debug)]
pub struct MachineTimes {
    /// The time without work, which includes waiting for disks.
    pub idle: Duration,
    /// The time for which the host of a virtual machine has run others while there was work to do.
    pub stolen: Duration,
    /// All of the time.
    pub all: Duration,
}

impl MachineTimes {
    /// Reads the times.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is malformed.
    pub fn now() -> io::Result<Self> {
        let stat = fs::read_to_string("/proc/stat")?;
        Self::parse(&stat).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        // User nice system idle iowait irq softirq steal; the fields after these are part of user.
        let ticks: Vec<u64> = line
            .split_whitespace()
            .flat_map(str::parse)
            .take(8)
            .collect();
        Some(Self {
            idle: from_ticks(ticks.get(3)? + ticks.get(4)?),
            stolen: from_ticks(*ticks.get(7)?),
            all: from_ticks(ticks.iter().sum()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_disks_is_not_being_busy() {
        let stat = "cpu  1 2 3 40 5 6 7 8 9 10\ncpu0 1 2 3 40 5 6 7 8 9 10\n";
        let times = MachineTimes::parse(stat).unwrap();
        assert_eq!(times.idle, from_ticks(45));
        assert_eq!(times.stolen, from_ticks(8));
        assert_eq!(times.all, from_ticks(72));
        assert!(MachineTimes::parse("cpu  1 2 3 40").is_none());
    }
}
