//! The step between this process and a server's program, which pins the server to its cores and
//! ties its lifetime to ours.
//!
//! The necessary system calls cannot be made safely between fork and exec. Therefore another
//! program, usually this same binary, is run in the new process. It makes these calls and then
//! becomes the server.

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command};

use linerate_harness::{cores::pin, process::raise_file_limit};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

/// How to run [`launch`] in a separate process.
#[derive(Clone, Debug)]
pub struct Launcher {
    /// A program that passes the arguments after `arguments` to [`launch`]: `--parent` and our
    /// process id, `--cores` and the numbers of the cores, separated by commas, then the server's
    /// program and its arguments.
    pub program: PathBuf,
    /// The arguments that make the program do so.
    pub arguments: Vec<OsString>,
}

impl Launcher {
    /// Creates a launcher that runs this binary with `arguments`.
    ///
    /// # Errors
    ///
    /// Returns an error if the system does not know the path of this binary.
    pub fn this_binary(arguments: &[&str]) -> io::Result<Self> {
        Ok(Self {
            program: env::current_exe()?,
            arguments: arguments.iter().map(OsString::from).collect(),
        })
    }

    /// Returns the command that becomes `program`. The server's arguments can be added to it.
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

/// Becomes a server that runs on `cores` and is killed when `parent` ends. Returns only if that
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
    // The parent may have ended before the call, in which case there will be no signal.
    if getppid() != Pid::from_raw(parent as i32) {
        return Err(io::Error::other(
            "the process that started this server has exited",
        ));
    }
    raise_file_limit()?;
    pin(cores)
}
