//! The resource usage of a process and its descendants.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use linerate_harness::process::Process;

use crate::load::{Probe, Usage};

/// How long to wait for a process to become idle after its load has ended. A process that takes
/// longer is busy with itself, and the run continues anyway.
const IDLE_MAX: Duration = Duration::from_millis(200);

/// Duration of one observation, and the CPU time that an idle process may use in it.
const IDLE_STEP: Duration = Duration::from_millis(10);
const IDLE_CPU: Duration = Duration::from_micros(200);

/// A process that can be inspected, with all its descendants.
#[derive(Clone, Copy, Debug)]
pub struct ProcessTree {
    root: Process,
    cores: u32,
}

impl ProcessTree {
    /// Creates a handle to `root` and its descendants, which may use `cores` cores.
    pub fn new(root: Process, cores: u32) -> Self {
        Self { root, cores }
    }

    /// Waits until the processes use no more CPU time, for at most 0.2 seconds.
    pub fn wait_until_idle(self) {
        let started = Instant::now();
        let mut before = self.cpu();
        while before.is_some() && started.elapsed() < IDLE_MAX {
            thread::sleep(IDLE_STEP);
            let now = self.cpu();
            match (before, now) {
                (Some(before), Some(now)) if now.saturating_sub(before) > IDLE_CPU => {}
                _ => return,
            }
            before = now;
        }
    }

    /// Returns the CPU time of all processes, or `None` if the first of them has exited.
    fn cpu(self) -> Option<Duration> {
        let own = self.root.cpu().ok()?;
        let descendants = self.root.descendants().into_iter();
        Some(own + descendants.flat_map(Process::cpu).sum::<Duration>())
    }
}

impl Probe for ProcessTree {
    fn usage(&mut self) -> io::Result<Option<Usage>> {
        let mut usage = usage_of(self.root)?;
        // A process that exits meanwhile is not a worker, because its connections would have
        // broken.
        for other in self.root.descendants().into_iter().flat_map(usage_of) {
            usage.cpu += other.cpu;
            usage.user += other.user;
            usage.system += other.system;
            usage.resident_bytes += other.resident_bytes;
            usage.resident_bytes_peak += other.resident_bytes_peak;
        }
        Ok(Some(usage))
    }

    fn reset_peak(&mut self) -> io::Result<()> {
        self.root.reset_peak()?;
        for process in self.root.descendants() {
            // The process may have exited.
            _ = process.reset_peak();
        }
        Ok(())
    }

    fn cores(&self) -> u32 {
        self.cores
    }
}

fn usage_of(process: Process) -> io::Result<Usage> {
    let times = process.cpu_times()?;
    let status = process.status()?;
    Ok(Usage {
        cpu: process.cpu()?,
        user: times.user,
        system: times.system,
        resident_bytes: status.bytes("VmRSS:").unwrap_or(0),
        resident_bytes_peak: status.bytes("VmHWM:").unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn descendants_count() {
        // The shell waits for its child, so there are two processes.
        let mut shell = Command::new("sh")
            .args(["-c", "sleep 30; true"])
            .spawn()
            .unwrap();
        let root = Process::new(shell.id());
        let mut tree = ProcessTree::new(root, 1);
        while root.descendants().is_empty() {
            std::thread::yield_now();
        }
        let [sleep] = root.descendants()[..] else {
            panic!("one child");
        };
        tree.reset_peak().unwrap();
        // For a moment after its start, the child has no memory.
        let started = Instant::now();
        loop {
            let alone = usage_of(root).unwrap().resident_bytes;
            let both = tree.usage().unwrap().unwrap().resident_bytes;
            if both > alone {
                break;
            }
            assert!(started.elapsed() < Duration::from_secs(10), "{both}");
        }
        let kill = Command::new("kill").arg(sleep.id().to_string()).status();
        assert!(kill.unwrap().success());
        shell.wait().unwrap();
        assert!(tree.usage().is_err(), "the process has exited");
    }
}
