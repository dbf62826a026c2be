//! Measures how much resident memory an idle client costs `linerate serve`, for each kind of
//! client: `cargo run --release -p linerate-harness --example idle_clients target/release/linerate
//! [CLIENTS]`.
//!
//! Each kind has its own server process with one worker. It is measured with a third of the clients
//! and with all of them, so that memory that a server needs only once does not count. Each client
//! is subscribed to one channel, in which nothing is published, and has a user agent of 101 bytes.
//! Resident memory does not include the kernel's memory for the sockets. With huge pages, it grows
//! in steps of 2 MiB, so the figure is exact only for many clients.

mod gateway;

use std::{
    env,
    error::Error,
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    thread,
    time::Duration,
};

use gateway::UPGRADE;
use linerate_harness::process::{Process, raise_file_limit};

const AGENT: &str = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) \
                     Chrome/130.0.0.0 Safari/537.36";

/// How a client connects and subscribes.
struct Kind {
    name: &'static str,
    target: &'static str,
    headers: &'static [&'static str],
    /// Lines of the configuration that the kind needs.
    config: &'static str,
    /// Commands to send as text frames, and what the answer to each contains.
    commands: &'static [(&'static str, &'static str)],
}

const COMMANDS: &[(&str, &str)] = &[
    (r#"{"id":1,"connect":{}}"#, r#""connect""#),
    (
        r#"{"id":2,"subscribe":{"channel":"news"}}"#,
        r#""subscribe""#,
    ),
];

const KINDS: &[Kind] = &[
    Kind {
        name: "raw WebSocket",
        target: "/raw?channel=news",
        headers: &[UPGRADE],
        config: "",
        commands: &[],
    },
    Kind {
        name: "native",
        target: "/connection/websocket",
        headers: &[UPGRADE, "Sec-WebSocket-Protocol: linerate.v1\r\n"],
        config: "",
        commands: COMMANDS,
    },
    Kind {
        name: "Centrifuge, JSON",
        target: "/connection/websocket",
        headers: &[UPGRADE],
        config: "",
        commands: COMMANDS,
    },
    Kind {
        name: "event stream",
        target: "/sse?channel=news",
        headers: &[],
        config: "",
        commands: &[],
    },
    Kind {
        name: "Phoenix",
        target: "/socket/websocket?vsn=2.0.0",
        headers: &[UPGRADE],
        config: "protocols.phoenix = true\n",
        commands: &[(r#"["1","1","news","phx_join",{}]"#, "phx_reply")],
    },
    Kind {
        name: "Pusher",
        target: "/app/app-key?protocol=7",
        headers: &[UPGRADE],
        config: PUSHER,
        commands: &[(
            r#"{"event":"pusher:subscribe","data":{"channel":"news"}}"#,
            "subscription_succeeded",
        )],
    },
    Kind {
        name: "Socket.IO",
        target: "/socket.io/?EIO=4&transport=websocket",
        headers: &[UPGRADE],
        config: "protocols.socketio = true\nsocketio.rooms = [\"news\"]\n",
        commands: &[("40", "40{")],
    },
];

const PUSHER: &str = "\
protocols.pusher = true
pusher.app_id = \"1\"
pusher.key = \"app-key\"
pusher.secret = \"of no use elsewhere\"
pusher.connections_max = 25000
";

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args_os().skip(1);
    let program = arguments
        .next()
        .ok_or("usage: idle_clients SERVER [CLIENTS]")?;
    let clients = match arguments.next() {
        Some(clients) => clients.to_string_lossy().parse()?,
        None => 15_000,
    };
    raise_file_limit()?;
    println!("{clients} clients of each kind; bytes each");
    println!("                  small pages   huge pages");
    for kind in KINDS {
        let [small, huge] = [false, true]
            .map(|has_huge_pages| kind.measure(program.as_ref(), clients, has_huge_pages));
        println!("{:<18} {:>10.0} {:>12.0}", kind.name, small?, huge?);
    }
    Ok(())
}

impl Kind {
    /// Returns the memory of one client in bytes.
    fn measure(
        &self,
        program: &Path,
        clients: usize,
        has_huge_pages: bool,
    ) -> Result<f64, Box<dyn Error>> {
        let (server, address) = gateway::start(program, self.config, |server| {
            _ = server.args(["--set", &format!("server.huge_pages={has_huge_pages}")]);
        })?;
        let mut open = Vec::new();
        let mut resident = [0; 2];
        for (bytes, count) in resident.iter_mut().zip([clients / 3, clients]) {
            while open.len() < count {
                open.push(self.open(address)?);
            }
            *bytes = settled(server.process())?;
        }
        let added = clients - clients / 3;
        Ok((resident[1] as f64 - resident[0] as f64) / added as f64)
    }

    fn open(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let mut socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        let (target, headers) = (self.target, self.headers.concat());
        write!(
            socket,
            "GET {target} HTTP/1.1\r\nHost: {address}\r\nUser-Agent: {AGENT}\r\n{headers}\r\n"
        )?;
        wait_for(&mut socket, "\r\n\r\n")?;
        for (command, answer) in self.commands {
            // Frames of clients are masked; this masking key changes nothing.
            let mut frame = vec![0x81, 0x80 | command.len() as u8, 0, 0, 0, 0];
            frame.extend(command.as_bytes());
            socket.write_all(&frame)?;
            wait_for(&mut socket, answer)?;
        }
        Ok(socket)
    }
}

/// Returns the resident memory of a process after it had time to return what it does not use.
fn settled(process: Process) -> io::Result<u64> {
    thread::sleep(Duration::from_secs(3));
    process.resident_bytes()
}

/// Reads until `expected` has arrived.
fn wait_for(socket: &mut TcpStream, expected: &str) -> io::Result<()> {
    let (mut input, mut space) = (Vec::new(), [0; 4_096]);
    loop {
        let text = String::from_utf8_lossy(&input);
        if text.contains(expected) {
            return Ok(());
        }
        match socket.read(&mut space)? {
            0 => return Err(io::Error::other(format!("the server closed after {text}"))),
            bytes => input.extend(&space[..bytes]),
        }
    }
}
