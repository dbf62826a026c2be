//! What a process uses at one moment.

use std::{io, time::Duration};

/// The resources of a process at one moment.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Figures {
    /// The resident memory in bytes, without file pages, which the system can reclaim at any time.
    pub memory_bytes: u64,
    /// The memory in bytes that the process has allocated, whether or not it was ever touched.
    pub asked_bytes: u64,
    /// The CPU time that the process has used on all cores together.
    pub cpu: Duration,
    /// The number of open files.
    pub files: u64,
}

impl Figures {
    /// Reads the figures of the process with this id (proc(5)).
    #[cfg(target_os = "linux")]
    pub(super) fn read(pid: u32) -> io::Result<Self> {
        let process = linerate_harness::process::Process::new(pid);
        let times = process.cpu_times()?;
        let status = process.status()?;
        let bytes = |name| status.bytes(name).ok_or(io::ErrorKind::InvalidData);
        Ok(Self {
            memory_bytes: bytes("RssAnon:")? + bytes("RssShmem:")?,
            asked_bytes: bytes("VmData:")?,
            cpu: times.user + times.system,
            files: process.open_files()?,
        })
    }

    /// Fails, because other platforms do not report these figures.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn read(_pid: u32) -> io::Result<Self> {
        let error = "observing a process needs Linux";
        Err(io::Error::new(io::ErrorKind::Unsupported, error))
    }
}
