//! `linerate serve --takeover --detach`: starts the server in the background and waits until it
//! serves.

use std::{
    env,
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
};

use anyhow::Context;

/// Starts its arguments in the background. systemd notices the end of a main process best if it is
/// its parent, so the shell, which is the parent, exits at once.
const IN_BACKGROUND: &str = "\"$@\" </dev/null &";

/// Starts this command without `--detach` in the background, and waits until the server serves or
/// has failed.
pub(super) fn start() -> anyhow::Result<()> {
    let executable = env::current_exe().context("cannot find the executable of this process")?;
    let arguments = env::args_os().skip(1);
    let mut shell = Command::new("/bin/sh")
        .args(["-c", IN_BACKGROUND, "linerate"])
        .arg(executable)
        .args(arguments.filter(|argument| argument != "--detach"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run /bin/sh")?;
    let output = shell.stdout.take();
    let status = shell.wait()?;
    anyhow::ensure!(status.success(), "/bin/sh failed: {status}");
    let mut line = String::new();
    if let Some(output) = output {
        BufReader::new(output).read_line(&mut line)?;
    }
    // The server prints its address as soon as it serves. If it fails, the pipe is closed.
    anyhow::ensure!(
        !line.is_empty(),
        "the new process does not serve; its log says why"
    );
    // An error means that the reader closed the pipe early.
    _ = std::io::stdout().write_all(line.as_bytes());
    Ok(())
}
