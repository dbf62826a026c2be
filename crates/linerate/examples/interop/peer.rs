//! The peers: programs that echo everything they receive.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Stdio,
};

use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

use crate::Result;

/// The compression options of a peer, to be used in turn; empty if it does not compress.
pub(crate) type Ability = &'static [&'static [&'static str]];

/// All parameters, each one separately.
const ALL: Ability = &[
    &["deflate=on"],
    &["deflate=on", "server_no_context_takeover=on"],
    &["deflate=on", "client_no_context_takeover=on"],
    &["deflate=on", "server_max_window_bits=10"],
    &["deflate=on", "client_max_window_bits=9"],
];

/// One parameter switches off context takeover for both sides.
const TAKEOVER: Ability = &[
    &["deflate=on"],
    &[
        "deflate=on",
        "server_no_context_takeover=on",
        "client_no_context_takeover=on",
    ],
];

/// The peer never keeps a context.
const NO_TAKEOVER: Ability = &[&["deflate=on"]];

/// The parameters with which the peer, as a client, restricts the server. As a server, it treats
/// its parameters only as preferences, so the result cannot be checked.
const OF_SERVERS: Ability = &[
    &["deflate=on"],
    &["deflate=on", "server_no_context_takeover=on"],
    &["deflate=on", "server_max_window_bits=10"],
];

pub(crate) const PEERS: [(&str, Ability); 7] = [
    ("coder", TAKEOVER),
    ("gorilla", NO_TAKEOVER),
    ("netty", OF_SERVERS),
    ("tokio-tungstenite", &[]),
    ("tokio-websockets", &[]),
    ("websockets", ALL),
    ("ws", ALL),
];

/// An installed peer.
pub(crate) struct Program(PathBuf);

impl Program {
    /// Finds the peer, or returns the reason why it is not installed.
    pub(crate) fn find(peers: &Path, name: &str) -> Result<Result<Self, String>> {
        let folder = peers.join(name);
        if let Ok(why) = fs::read_to_string(folder.join("absent")) {
            return Ok(Err(why.trim().to_owned()));
        }
        let program = folder.join("peer");
        if !program.exists() {
            return Err(format!("{} does not exist", program.display()).into());
        }
        Ok(Ok(Self(program)))
    }

    /// Starts the peer as a server, and returns the process and its URL.
    pub(crate) async fn serve(&self, options: &[&str]) -> Result<(Child, String)> {
        let mut command = Command::new(&self.0);
        command.arg("serve").args(options).stdout(Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn()?;
        let output = child.stdout.take().ok_or("the peer has no output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).await?;
        let url = line.trim();
        if !url.starts_with("ws://") {
            return Err(format!("the peer printed {url:?} instead of its URL").into());
        }
        Ok((child, format!("{url}/")))
    }

    /// Starts the peer as a client of `url`.
    pub(crate) fn connect(&self, url: &str, options: &[&str]) -> io::Result<Child> {
        let mut command = Command::new(&self.0);
        command.args(["connect", url]).args(options);
        command.kill_on_drop(true).spawn()
    }
}
