//! The resource usage of a process and its descendants, as the kernel reports it.

use std::fs;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use nix::time::ClockId;
use nix::unistd::Pid;
use rustix::param::clock_ticks_per_second;

use crate::load::{Probe, Usage};

/// How long to wait for a process to become idle after its load has ended. A process that takes
/// longer is busy with itself, and the run continues anyway.
const REST_MAX: Duration = Duration::from_millis(200);

/// Duration of one observation, and the CPU time that an idle process may use in it.
const REST_STEP: Duration = Duration::from_millis(10);
const REST_CPU: Duration = Duration::from_micros(200);

/// A process that can be inspected, with all its descendants.
#[derive(Clone, Copy, Debug)]
pub struct Process {
    pid: u32,
    cores: u32,
}

impl Process {
    /// Creates a handle to the process with id `pid`, which may use `cores` cores.
    pub fn new(pid: u32, cores: u32) -> Self {
        Self { pid, cores }
    }

    /// Waits until the process uses no more CPU time, for at most 0.2 seconds.
    pub fn wait_for_rest(self) {
        let started = Instant::now();
        let mut before = self.cpu();
        while before.is_some() && started.elapsed() < REST_MAX {
            thread::sleep(REST_STEP);
            let now = self.cpu();
            match (before, now) {
                (Some(before), Some(now)) if now.saturating_sub(before) > REST_CPU => {}
                _ => return,
            }
            before = now;
        }
    }

    /// Returns the CPU time of all threads that are running or ever ran, or `None` if the process
    /// has exited.
    ///
    /// Kernels update the clock of a running thread with each tick and whenever it starts or stops
    /// running, so the figure is exact for a thread that waits.
    fn cpu(self) -> Option<Duration> {
        let own = cpu_of(self.pid).ok()?;
        let descendants = descendants(self.pid).into_iter();
        Some(own + descendants.flat_map(cpu_of).sum::<Duration>())
    }
}

impl Probe for Process {
    fn usage(&mut self) -> io::Result<Option<Usage>> {
        let mut usage = usage_of(self.pid)?;
        // A process that exits meanwhile is not a worker, because its connections would have
        // broken.
        for other in descendants(self.pid).into_iter().flat_map(usage_of) {
            usage.cpu += other.cpu;
            usage.user += other.user;
            usage.system += other.system;
            usage.resident_bytes += other.resident_bytes;
            usage.resident_bytes_peak += other.resident_bytes_peak;
        }
        Ok(Some(usage))
    }

    fn reset_peak(&mut self) -> io::Result<()> {
        reset_peak_of(self.pid)?;
        for pid in descendants(self.pid) {
            // The process may have exited.
            _ = reset_peak_of(pid);
        }
        Ok(())
    }

    fn cores(&self) -> u32 {
        self.cores
    }
}

/// Returns the ids of all processes that descend from one. Any of them may have exited meanwhile.
fn descendants(pid: u32) -> Vec<u32> {
    let mut found = children(pid);
    let mut next = 0;
    while let Some(&pid) = found.get(next) {
        found.extend(children(pid));
        next += 1;
    }
    found
}

fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let lists = tasks
        .into_iter()
        .flatten()
        .flatten()
        .flat_map(|task| fs::read_to_string(task.path().join("children")));
    let pids = |list: String| -> Vec<u32> {
        let pids = list.split_whitespace();
        pids.flat_map(str::parse).collect()
    };
    lists.flat_map(pids).collect()
}

fn usage_of(pid: u32) -> io::Result<Usage> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (user, system) = times(&stat).ok_or(io::ErrorKind::InvalidData)?;
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    Ok(Usage {
        cpu: cpu_of(pid)?,
        user,
        system,
        resident_bytes: status_bytes(&status, "VmRSS:"),
        resident_bytes_peak: status_bytes(&status, "VmHWM:"),
    })
}

fn cpu_of(pid: u32) -> io::Result<Duration> {
    let pid = Pid::from_raw(pid as i32);
    Ok(ClockId::pid_cpu_clock_id(pid)?.now()?.into())
}

fn reset_peak_of(pid: u32) -> io::Result<()> {
    // proc(5): 5 resets the peak resident set size.
    fs::write(format!("/proc/{pid}/clear_refs"), "5")
}

/// Parses the CPU times in user mode and in the kernel from the text of `/proc/PID/stat`.
fn times(stat: &str) -> Option<(Duration, Duration)> {
    // The name of the program, in brackets, may itself contain spaces and brackets. In proc(5) it
    // is field 2, and the times are fields 14 and 15.
    let (_, behind_name) = stat.rsplit_once(") ")?;
    let mut fields = behind_name.split(' ').skip(14 - 3);
    let mut time = || {
        let ticks: u32 = fields.next()?.parse().ok()?;
        Some(Duration::from_secs(1) * ticks / clock_ticks_per_second() as u32)
    };
    Some((time()?, time()?))
}

/// Returns a value that `/proc/PID/status` gives in kilobytes, converted to bytes. It is 0 for a
/// process without memory, such as one that has exited and was not waited for.
fn status_bytes(status: &str, field: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kilobytes.map_or(0, |kilobytes| 1_024 * kilobytes.parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn times_are_found_behind_a_name_with_brackets() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 0 0 0 250 50 0 0 20 0 1 0 9 8 7";
        let second = Duration::from_secs(1);
        assert_eq!(clock_ticks_per_second(), 100);
        assert_eq!(times(stat), Some((second * 5 / 2, second / 2)));
        assert_eq!(times("7 (a) S 1"), None);
    }

    #[test]
    fn memory_is_given_in_bytes() {
        let status = "Name:\ta\nVmHWM:\t    1744 kB\nVmRSS:\t     744 kB\n";
        assert_eq!(status_bytes(status, "VmHWM:"), 1_785_856);
        assert_eq!(status_bytes(status, "VmRSS:"), 761_856);
        assert_eq!(status_bytes("Name:\ta\n", "VmRSS:"), 0);
    }

    #[test]
    fn work_shows_in_the_cpu_time() {
        let mut process = Process::new(std::process::id(), 1);
        let before = process.usage().unwrap().unwrap();
        let started = Instant::now();
        while started.elapsed() < Duration::from_millis(30) {}
        let after = process.usage().unwrap().unwrap();
        assert!(after.cpu > before.cpu);
        assert!(after.resident_bytes > 0);
        assert!(after.resident_bytes_peak >= after.resident_bytes);
    }

    #[test]
    fn descendants_count() {
        // The shell waits for its child, so there are two processes.
        let mut shell = Command::new("sh")
            .args(["-c", "sleep 30; true"])
            .spawn()
            .unwrap();
        let mut process = Process::new(shell.id(), 1);
        while descendants(shell.id()).is_empty() {
            std::thread::yield_now();
        }
        let [sleep] = descendants(shell.id())[..] else {
            panic!("one child");
        };
        process.reset_peak().unwrap();
        // For a moment after its start, the child has no memory.
        let started = Instant::now();
        loop {
            let alone = usage_of(shell.id()).unwrap().resident_bytes;
            let both = process.usage().unwrap().unwrap().resident_bytes;
            if both > alone {
                break;
            }
            assert!(started.elapsed() < Duration::from_secs(10), "{both}");
        }
        let kill = Command::new("kill").arg(sleep.to_string()).status();
        assert!(kill.unwrap().success());
        shell.wait().unwrap();
        assert!(process.usage().is_err(), "the process has exited");
    }
}
