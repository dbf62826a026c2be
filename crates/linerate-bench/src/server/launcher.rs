//! The step between us and a server's program, which ties the server to its cores and to our life.
//!
//! What has to happen in the new process, before its program runs, can't be done safely between fork
//! and exec. So another program is run there, as a rule this very binary, that does it and then
//! becomes the server.

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command};

use rustix::process::{
    Pid, Resource, Signal, getppid, getrlimit, set_parent_process_death_signal, setrlimit,
};
use rustix::thread::{CpuSet, sched_setaffinity};

/// How to run [`launch`] in a process of its own.
#[derive(Clone, Debug)]
pub struct Launcher {
    /// A program that calls [`launch`] with what follows `arguments`: `--parent` and the number of our
    /// process, `--cores` and the numbers of the cores, separated by commas, then the server's program
    /// and its arguments.
    pub program: PathBuf,
    /// What leads it there.
    pub arguments: Vec<OsString>,
}

impl Launcher {
    /// Returns one that runs this binary with `arguments`.
    ///
    /// # Errors
    ///
    /// The system does not know where this binary is.
    pub fn this_binary(arguments: &[&str]) -> io::Result<Self> {
        Ok(Self {
            program: env::current_exe()?,
            arguments: arguments.iter().map(OsString::from).collect(),
        })
    }

    /// Returns the command that becomes `program`, to which its arguments can be added.
    pub(crate) fn command(&self, cores: &[u32], program: &Path) -> Command {
        let cores: Vec<String> = cores.iter().map(u32::to_string).collect();
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .args(["--parent", &process::id().to_string()])
            .args(["--cores", &cores.join(",")])
            .arg(program);
        command
    }
}

/// Becomes a server that runs on these cores and is killed when `parent` ends. Returns only if that
/// fails.
pub fn launch(parent: u32, cores: &[u32], program: &Path, arguments: &[OsString]) -> io::Error {
    if let Err(error) = prepare(parent, cores) {
        return error;
    }
    let error = Command::new(program).args(arguments).exec();
    io::Error::new(error.kind(), format!("{}: {error}", program.display()))
}

fn prepare(parent: u32, cores: &[u32]) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // It may have ended before, and then nobody tells us.
    if getppid() != Pid::from_raw(parent as i32) {
        return Err(io::Error::other("whoever started this server is gone"));
    }
    // A thousand files, as many systems allow at first, are fewer than some cells have connections.
    let mut files = getrlimit(Resource::Nofile);
    files.current = files.maximum;
    setrlimit(Resource::Nofile, files)?;
    pin(cores)
}

/// Binds this thread, and those that it starts, to cores.
///
/// # Errors
///
/// None of them is there.
pub(crate) fn pin(cores: &[u32]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &core in cores {
        if core as usize >= CpuSet::MAX_CPU {
            let message = format!("core {core} is not below {}", CpuSet::MAX_CPU);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        set.set(core as usize);
    }
    Ok(sched_setaffinity(None, &set)?)
}
