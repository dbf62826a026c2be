//! The resources that a process uses, according to `/proc`.

use std::{
    fs,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use rustix::param::clock_ticks_per_second;

/// A process whose resources are measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    process: u32,
}

/// How soon memory has to be released after the last attacker has disconnected.
pub(crate) const BACK_WITHIN: Duration = Duration::from_secs(10);

impl Usage {
    pub(crate) const fn of(process: u32) -> Self {
        Self { process }
    }

    /// Returns how many bytes of memory are in use.
    pub(crate) fn resident_bytes(self) -> Result<u64> {
        self.bytes("VmRSS:")
    }

    /// Waits until at most `bytes_max` bytes are in use, and calls `meanwhile` repeatedly. Returns
    /// the time since `since`, or `None` after [`BACK_WITHIN`].
    pub(crate) fn wait_until_back(
        self,
        bytes_max: u64,
        since: Instant,
        mut meanwhile: impl FnMut() -> Result<()>,
    ) -> Result<Option<Duration>> {
        while since.elapsed() <= BACK_WITHIN {
            if self.resident_bytes()? <= bytes_max {
                return Ok(Some(since.elapsed()));
            }
            meanwhile()?;
            thread::sleep(Duration::from_millis(50));
        }
        Ok(None)
    }

    /// Returns the peak memory use in bytes since [`forget_peak`](Self::forget_peak).
    pub(crate) fn peak_bytes(self) -> Result<u64> {
        self.bytes("VmHWM:")
    }

    /// Resets the peak memory use.
    pub(crate) fn forget_peak(self) -> Result<()> {
        Ok(fs::write(self.path("clear_refs"), "5")?)
    }

    /// Returns the number of open files. From Linux 6.2 on, this is the size of the directory.
    pub(crate) fn files(self) -> Result<u64> {
        let path = self.path("fd");
        match fs::metadata(&path)?.len() {
            0 => Ok(fs::read_dir(path)?.count() as u64),
            files => Ok(files),
        }
    }

    /// Returns the CPU time used, with a resolution of 10 ms.
    pub(crate) fn processor_time(self) -> Result<Duration> {
        let stat = fs::read_to_string(self.path("stat"))?;
        // The process name before it may contain any characters, including parentheses.
        let (_, fields) = stat
            .rsplit_once(')')
            .context("malformed /proc/PID/stat: no process name")?;
        let ticks = fields.split_whitespace().skip(11).take(2);
        let ticks: u64 = ticks.map(|ticks| ticks.parse::<u64>().unwrap_or(0)).sum();
        Ok(Duration::from_secs(ticks) / u32::try_from(clock_ticks_per_second())?)
    }

    fn bytes(self, name: &str) -> Result<u64> {
        let status = fs::read_to_string(self.path("status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.split_whitespace().next());
        let kilobytes: u64 = number
            .context("malformed /proc/PID/status: no memory field")?
            .parse()?;
        Ok(kilobytes << 10)
    }

    fn path(self, file: &str) -> PathBuf {
        format!("/proc/{}/{file}", self.process).into()
    }
}

/// Returns the stolen time: how long the host has run others while this machine had work to do,
/// over all its cores (proc(5)).
pub(crate) fn stolen_time() -> Result<Duration> {
    let stat = fs::read_to_string("/proc/stat")?;
    // The label, then user, nice, system, idle, iowait, irq, softirq, steal.
    let ticks = stat
        .split_whitespace()
        .nth(8)
        .context("malformed /proc/stat: no steal field")?;
    Ok(Duration::from_secs(ticks.parse()?) / u32::try_from(clock_ticks_per_second())?)
}

#[cfg(test)]
mod tests {
    use std::{fs::File, hint, process};

    use super::Usage;

    #[test]
    fn a_process_sees_what_it_takes_itself() {
        let usage = Usage::of(process::id());
        // Other tests allocate and free meanwhile; only what is held here is certain.
        let files: Vec<File> = (0..50).map(|_| File::open("/dev/null").unwrap()).collect();
        assert!(usage.files().unwrap() >= files.len() as u64);
        // Nothing else reads the vector, so the compiler could optimize it away.
        let taken = hint::black_box(vec![1_u8; 64 << 20]);
        assert!(usage.resident_bytes().unwrap() >= taken.len() as u64 / 2);
        assert!(usage.peak_bytes().unwrap() >= taken.len() as u64 / 2);
    }
}
