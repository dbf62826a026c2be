//! What a process uses, according to the kernel (proc(5)).

use std::{fs, io, path::PathBuf, time::Duration};

use rustix::{
    param::clock_ticks_per_second,
    process::{Resource, getrlimit, setrlimit},
};

/// A process of this machine. It may have exited.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Process(u32);

/// The CPU time that a process has used, at the resolution of the kernel's clock ticks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CpuTimes {
    /// The time in user mode.
    pub user: Duration,
    /// The time in the kernel.
    pub system: Duration,
}

/// The memory of a process and more, as `/proc/PID/status` reports it.
#[derive(Clone, Debug)]
pub struct Status(String);

impl Process {
    /// Returns the process with this id.
    pub const fn new(pid: u32) -> Self {
        Self(pid)
    }

    /// Returns this process.
    pub fn own() -> Self {
        Self(std::process::id())
    }

    /// Returns the id of the process.
    pub const fn id(self) -> u32 {
        self.0
    }

    /// Reads the memory figures of the process.
    ///
    /// # Errors
    /// Returns an error if the process has exited and was waited for.
    pub fn status(self) -> io::Result<Status> {
        fs::read_to_string(self.file("status")).map(Status)
    }

    /// Returns the resident memory at present, in bytes.
    ///
    /// # Errors
    /// Returns an error if the process has exited.
    pub fn resident_bytes(self) -> io::Result<u64> {
        self.bytes("VmRSS:")
    }

    /// Returns the peak of the resident memory since [`reset_peak`](Self::reset_peak), in bytes.
    ///
    /// # Errors
    /// Returns an error if the process has exited.
    pub fn resident_bytes_peak(self) -> io::Result<u64> {
        self.bytes("VmHWM:")
    }

    fn bytes(self, name: &str) -> io::Result<u64> {
        let bytes = self.status()?.bytes(name);
        bytes.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Resets [the peak](Self::resident_bytes_peak) of the resident memory.
    ///
    /// # Errors
    /// Returns an error if the process has exited, or this process may not do so.
    pub fn reset_peak(self) -> io::Result<()> {
        // 5 resets the peak resident set size.
        fs::write(self.file("clear_refs"), "5")
    }

    /// Returns the CPU time of all threads that are running or ever ran.
    ///
    /// # Errors
    /// Returns an error if the process has exited and was waited for.
    pub fn cpu_times(self) -> io::Result<CpuTimes> {
        let stat = fs::read_to_string(self.file("stat"))?;
        CpuTimes::parse(&stat).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Returns the same CPU time with a resolution of nanoseconds.
    ///
    /// Kernels update the clock of a running thread with each tick and whenever it starts or stops
    /// running, so the figure is exact for a thread that waits.
    ///
    /// # Errors
    /// Returns an error if the process has exited and was waited for.
    #[cfg(target_os = "linux")]
    pub fn cpu(self) -> io::Result<Duration> {
        let pid = nix::unistd::Pid::from_raw(self.0 as i32);
        Ok(nix::time::ClockId::pid_cpu_clock_id(pid)?.now()?.into())
    }

    /// Returns the number of open files.
    ///
    /// # Errors
    /// Returns an error if the process has exited, or this process may not observe it.
    pub fn open_files(self) -> io::Result<u64> {
        let folder = self.file("fd");
        // From Linux 6.2 on, this is the size of the directory.
        match fs::metadata(&folder)?.len() {
            0 => Ok(fs::read_dir(folder)?.count() as u64),
            files => Ok(files),
        }
    }

    /// Returns all processes that descend from this one. Any of them may have exited meanwhile.
    pub fn descendants(self) -> Vec<Self> {
        let mut found = self.children();
        let mut next = 0;
        while let Some(process) = found.get(next) {
            found.extend(process.children());
            next += 1;
        }
        found
    }

    fn children(self) -> Vec<Self> {
        let tasks = fs::read_dir(self.file("task"));
        let lists = tasks
            .into_iter()
            .flatten()
            .flatten()
            .flat_map(|task| fs::read_to_string(task.path().join("children")));
        let processes = |list: String| -> Vec<Self> {
            let pids = list.split_whitespace();
            pids.flat_map(str::parse).map(Self).collect()
        };
        lists.flat_map(processes).collect()
    }

    fn file(self, name: &str) -> PathBuf {
        format!("/proc/{}/{name}", self.0).into()
    }
}

impl CpuTimes {
    fn parse(stat: &str) -> Option<Self> {
        // The name of the program, in brackets, may itself contain spaces and brackets. It is field
        // 2, and the times are fields 14 and 15.
        let (_, behind_name) = stat.rsplit_once(')')?;
        let mut fields = behind_name.split_ascii_whitespace().skip(14 - 3);
        let mut time = || Some(from_ticks(fields.next()?.parse().ok()?));
        Some(Self {
            user: time()?,
            system: time()?,
        })
    }
}

impl Status {
    /// Returns a figure that is given in kilobytes, such as `VmData:`, converted to bytes. It is
    /// `None` for a process without memory, such as one that has exited and was not waited for.
    pub fn bytes(&self, name: &str) -> Option<u64> {
        let kilobytes: u64 = self
            .value(name)?
            .strip_suffix("kB")?
            .trim_end()
            .parse()
            .ok()?;
        Some(kilobytes << 10)
    }

    /// Returns a figure without a unit, such as `Threads:`.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.value(name)?.parse().ok()
    }

    fn value(&self, name: &str) -> Option<&str> {
        let mut lines = self.0.lines();
        lines
            .find_map(|line| line.strip_prefix(name))
            .map(str::trim)
    }
}

/// Raises the limit of open files of this process to its hard limit and returns that limit; `None`
/// means there is no limit. Processes that are started afterwards inherit the new limit: many
/// systems allow a thousand files at first, which is fewer than the connections of a load.
///
/// # Errors
/// Returns an error if the system refuses.
pub fn raise_file_limit() -> io::Result<Option<u64>> {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        limit.current = limit.maximum;
        setrlimit(Resource::Nofile, limit)?;
    }
    Ok(limit.maximum)
}

/// Converts clock ticks to time.
pub(crate) fn from_ticks(ticks: u64) -> Duration {
    let ticks_per_second = clock_ticks_per_second();
    Duration::from_millis(ticks * 1_000 / ticks_per_second)
}

#[cfg(test)]
mod tests {
    use std::{fs::File, hint, time::Instant};

    use super::*;

    #[test]
    fn times_are_found_behind_a_name_with_brackets() {
        let stat = "7 (a ) b (c) S 1 7 7 0 -1 4194560 1 0 0 0 250 50 0 0 20 0 1 0 9 8 7";
        let times = CpuTimes {
            user: Duration::from_millis(2_500),
            system: Duration::from_millis(500),
        };
        assert_eq!(clock_ticks_per_second(), 100);
        assert_eq!(CpuTimes::parse(stat), Some(times));
        assert_eq!(CpuTimes::parse("7 (a) S 1"), None);
    }

    #[test]
    fn memory_is_given_in_bytes() {
        let status = Status("Name:\ta\nVmHWM:\t    1744 kB\nVmRSS:\t 744 kB\nVmX:\t1 MB\n".into());
        assert_eq!(status.bytes("VmHWM:"), Some(1_785_856));
        assert_eq!(status.bytes("VmRSS:"), Some(761_856));
        assert_eq!(status.bytes("VmX:"), None);
        assert_eq!(status.bytes("VmData:"), None);
    }

    #[test]
    fn a_process_sees_what_it_takes_itself() {
        let own = Process::own();
        // Other tests allocate and free meanwhile; only what is held here is certain.
        let files: Vec<File> = (0..50).map(|_| File::open("/dev/null").unwrap()).collect();
        assert!(own.open_files().unwrap() >= files.len() as u64);
        // Nothing else reads the vector, so the compiler could optimize it away.
        let taken = hint::black_box(vec![1_u8; 64 << 20]);
        assert!(own.resident_bytes().unwrap() >= taken.len() as u64 / 2);
        assert!(own.resident_bytes_peak().unwrap() >= taken.len() as u64 / 2);
        own.reset_peak().unwrap();
    }

    #[test]
    fn the_file_limit_is_raised_as_far_as_it_goes() {
        let files_max = raise_file_limit().unwrap();
        assert_eq!(getrlimit(Resource::Nofile).current, files_max);
    }

    #[test]
    fn work_shows_in_the_cpu_time() {
        let before = Process::own().cpu().unwrap();
        let started = Instant::now();
        while started.elapsed() < Duration::from_millis(30) {}
        assert!(Process::own().cpu().unwrap() > before);
    }
}
