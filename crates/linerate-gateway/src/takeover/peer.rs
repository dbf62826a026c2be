//! The process at the other end: its user, its executable, and whether it still exists.

use std::{
    fs::{self, Metadata},
    io,
    os::{fd::OwnedFd, unix::fs::MetadataExt},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::{
    io::Errno,
    process::{Pid, PidfdFlags, geteuid, pidfd_open},
};
use thiserror::Error;
use tokio::{
    io::{Interest, unix::AsyncFd},
    net::UnixStream,
    time::timeout,
};

/// The process at the other end of a Unix socket. The kernel vouches for it.
#[derive(Debug)]
pub(super) struct Peer {
    /// Its process ID.
    pub(super) pid: u32,
    user: u32,
}

/// Notices the end of a process; `None` if it had ended before.
#[derive(Debug)]
pub(super) struct ProcessWatch(Option<AsyncFd<OwnedFd>>);

/// A peer must not take part in a takeover.
#[derive(Debug, Error)]
pub(crate) enum PeerError {
    /// It runs another executable.
    #[error(
        "process {pid} runs {}, which is not the file {}; name the executable of new processes \
         in server.takeover_executable", found.display(), expected.display()
    )]
    Executable {
        /// Its process ID.
        pid: u32,
        /// What it runs.
        found: PathBuf,
        /// What it should run.
        expected: PathBuf,
    },
    /// A file cannot be examined.
    #[error("cannot examine {}", path.display())]
    File {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The kernel does not name the process, for example because it is in another container.
    #[error("cannot identify the process; it must be in the same container or PID namespace")]
    Unknown(#[source] Option<io::Error>),
    /// It belongs to another user.
    #[error("process {pid} has user ID {found}, and this process has {expected}")]
    User {
        /// Its process ID.
        pid: u32,
        /// Its effective user ID.
        found: u32,
        /// Our effective user ID.
        expected: u32,
    },
}

impl Peer {
    /// Identifies the process that has connected to a socket, or that listens on it.
    pub(super) fn of(stream: &UnixStream) -> Result<Self, PeerError> {
        let credentials = stream.peer_cred();
        let credentials = credentials.map_err(|error| PeerError::Unknown(Some(error)))?;
        let pid = credentials.pid().and_then(|pid| u32::try_from(pid).ok());
        match pid {
            Some(pid) if pid > 0 => Ok(Self {
                pid,
                user: credentials.uid(),
            }),
            _ => Err(PeerError::Unknown(None)),
        }
    }

    /// Checks that the process has the effective user of this one.
    pub(super) fn check_user(&self) -> Result<(), PeerError> {
        let (pid, found, expected) = (self.pid, self.user, geteuid().as_raw());
        match found == expected {
            true => Ok(()),
            false => Err(PeerError::User {
                pid,
                found,
                expected,
            }),
        }
    }

    /// Checks that the process runs the file at `expected`, as it is now: a package upgrade
    /// replaces it while the old process runs.
    pub(super) fn check_executable(&self, expected: &Path) -> Result<(), PeerError> {
        let link = PathBuf::from(format!("/proc/{}/exe", self.pid));
        // Files are compared, not paths: links are followed, and a deleted file differs from the
        // one that has replaced it.
        let identity = |file: &Metadata| (file.dev(), file.ino());
        if identity(&examine(&link)?) == identity(&examine(expected)?) {
            return Ok(());
        }
        Err(PeerError::Executable {
            pid: self.pid,
            found: fs::read_link(&link).unwrap_or(link),
            expected: expected.to_owned(),
        })
    }

    /// Starts to watch the process.
    pub(super) fn watch(&self) -> Result<ProcessWatch, PeerError> {
        let watch = || {
            let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
            let pid = pid.ok_or(io::ErrorKind::InvalidInput)?;
            let descriptor = match pidfd_open(pid, PidfdFlags::NONBLOCK) {
                Err(Errno::SRCH) => return Ok(None),
                opened => opened?,
            };
            #[expect(deprecated, reason = "the descriptor is owned, so that it stays open")]
            AsyncFd::with_interest(descriptor, Interest::READABLE).map(Some)
        };
        let watch = watch().map_err(|error| PeerError::Unknown(Some(error)))?;
        Ok(ProcessWatch(watch))
    }
}

impl ProcessWatch {
    /// Returns whether the process ends within a time, or has ended before.
    pub(super) async fn ends_within(&self, time: Duration) -> bool {
        // It becomes readable when the process ends, even if its parent does not wait for it.
        match &self.0 {
            Some(process) => matches!(timeout(time, process.readable()).await, Ok(Ok(_))),
            None => true,
        }
    }
}

/// Returns the executable of this process. Call this at the start, because the file may be
/// replaced.
pub(super) fn own_executable() -> io::Result<PathBuf> {
    std::env::current_exe()
}

fn examine(path: &Path) -> Result<Metadata, PeerError> {
    fs::metadata(path).map_err(|source| PeerError::File {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        path::Path,
        process::{Command, Stdio},
        time::Duration,
    };

    use linerate_testkit::PATIENCE;
    use tokio::net::UnixStream;

    use super::{Peer, PeerError, own_executable};

    #[tokio::test]
    async fn both_ends_of_a_pair_are_this_process() {
        let (one, _other) = UnixStream::pair().unwrap();
        let peer = Peer::of(&one).unwrap();
        assert_eq!(peer.pid, std::process::id());
        peer.check_user().unwrap();
        peer.check_executable(&own_executable().unwrap()).unwrap();
        let error = peer.check_executable(Path::new("/dev/null")).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("which is not the file /dev/null"), "{text}");
        assert!(text.contains("server.takeover_executable"), "{text}");
        let missing = peer.check_executable(Path::new("/nonexistent/linerate"));
        assert!(matches!(missing, Err(PeerError::File { .. })));
        let other = Peer {
            user: 4_711,
            ..peer
        };
        let text = other.check_user().unwrap_err().to_string();
        assert!(text.contains("has user ID 4711"), "{text}");
    }

    #[tokio::test]
    async fn the_executable_is_the_file_at_the_path_now_and_links_are_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("cat"), folder.path().join("link"));
        let install = || {
            let new = folder.path().join("new");
            fs::copy("/bin/cat", &new).unwrap();
            fs::rename(&new, &path).unwrap();
        };
        install();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let mut command = Command::new(&link);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        let peer = Peer {
            pid: child.id(),
            user: 0,
        };
        peer.check_executable(&path).unwrap();
        peer.check_executable(&link).unwrap();
        // What runs is "…/cat (deleted)" now.
        install();
        let error = peer.check_executable(&path).unwrap_err().to_string();
        assert!(error.contains("(deleted)"), "{error}");

        let watch = peer.watch().unwrap();
        assert!(!watch.ends_within(Duration::from_millis(10)).await);
        drop(child.stdin.take());
        // It has ended, but has not been waited for.
        assert!(watch.ends_within(PATIENCE).await);
        assert!(watch.ends_within(Duration::ZERO).await, "it stays ended");
        child.wait().unwrap();
        assert!(peer.watch().unwrap().ends_within(Duration::ZERO).await);
    }
}
