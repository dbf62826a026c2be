//! `linerate serve` with one worker, which lets everybody subscribe to everything.

use std::{
    env,
    error::Error,
    fs,
    net::SocketAddr,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use linerate_harness::{child::ChildProcess, port};

/// The headers of a request for a WebSocket.
pub(crate) const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

const LISTEN_MAX: Duration = Duration::from_secs(20);

const CONFIG: &str = "\
server.workers = 1
server.connections_max = 25000
server.connections_per_address_max = 25000
server.accepts_per_second_max = 100000
auth.anonymous = true
channel.allow_subscribe = true
channel.allow_anonymous = true
";

/// Starts a server with further lines of configuration. `prepare` changes the command.
pub(crate) fn start(
    program: &Path,
    config: &str,
    prepare: impl FnOnce(&mut Command),
) -> Result<(ChildProcess, SocketAddr), Box<dyn Error>> {
    let address = SocketAddr::from(([127, 0, 0, 1], port::free()?));
    let file = env::temp_dir().join(format!("example-{}.toml", address.port()));
    fs::write(&file, [CONFIG, config].concat())?;
    let mut server = Command::new(program);
    server
        .args(["serve", "--listen", &address.to_string(), "--config"])
        .arg(&file)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    prepare(&mut server);
    let mut server = ChildProcess::spawn(&mut server)?;
    let listening = server.wait_until_listening(address, LISTEN_MAX);
    fs::remove_file(file)?;
    listening.map_err(|error| format!("the server does not listen: {error:?}"))?;
    Ok((server, address))
}
