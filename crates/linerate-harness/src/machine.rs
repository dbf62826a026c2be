//! The CPU time and the memory of the whole machine, according to the kernel (proc(5)).

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

/// The memory of the machine.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MachineMemory {
    /// The memory that processes can still get without swapping, in bytes.
    pub available_bytes: u64,
    /// What the kernel uses for sockets, open files, page tables, stacks and names of files, in
    /// bytes. Cached content of files is not part of it.
    pub kernel_bytes: u64,
}

impl MachineMemory {
    /// Reads the figures.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is malformed.
    pub fn now() -> io::Result<Self> {
        let info = fs::read_to_string("/proc/meminfo")?;
        Self::parse(&info).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn parse(info: &str) -> Option<Self> {
        let bytes = |name: &str| {
            let line = info.lines().find_map(|line| line.strip_prefix(name))?;
            let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
            Some(kilobytes << 10)
        };
        let kernel = ["Slab:", "KernelStack:", "PageTables:", "Percpu:"];
        Some(Self {
            available_bytes: bytes("MemAvailable:")?,
            kernel_bytes: kernel.into_iter().map(bytes).sum::<Option<u64>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_the_kernel_is_the_sum_of_its_parts() {
        let info = "MemTotal: 9 kB\nMemAvailable: 7 kB\nSlab: 3 kB\nSUnreclaim: 2 kB\n\
                    KernelStack: 1 kB\nPageTables: 2 kB\nPercpu: 4 kB\n";
        let memory = MachineMemory::parse(info).unwrap();
        assert_eq!(memory.available_bytes, 7 << 10);
        assert_eq!(memory.kernel_bytes, 10 << 10);
        assert!(MachineMemory::parse("MemAvailable: 7 kB").is_none());
    }

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
