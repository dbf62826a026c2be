//! Measures how much resident memory an idle connection costs a server: `cargo run --release -p
//! linerate --example idle [CONNECTIONS]`.
//!
//! It measures a separate server process three times: before the connections are opened, with all
//! of them idle, and with all of them idle again after one message of 16 KiB on each. Then it
//! measures another process, with connections that compress in both directions with windows of 4
//! KiB, which the message fills. Resident memory does not include the kernel's memory for the
//! sockets.

use std::{
    env,
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use linerate::WebSocket;

/// The allocator that the `linerate` binary uses. Tokio aligns its tasks and sockets to 128 bytes,
/// and glibc's malloc wastes about 100 bytes for each of them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const MESSAGE_BYTES: usize = 16 << 10;

/// The number of connections to open before the measurement starts.
const FIRST: usize = 16;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    match env::args().nth(1).as_deref() {
        Some("serve") => serve()?,
        Some(connections) => measure(connections.parse()?)?,
        None => measure(4_000)?,
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn serve() -> io::Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    let stop = async { _ = tokio::signal::ctrl_c().await };
    linerate::serve(
        listener,
        |mut ws, _request| async move {
            while let Some(message) = ws.recv().await? {
                ws.send(message).await?;
            }
            Ok(())
        },
        stop,
    )
    .await
}

fn measure(connections: usize) -> Result<(), Box<dyn std::error::Error>> {
    println!("connections                            {connections}");
    measure_plain(connections)?.print("");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime
        .block_on(measure_compressed(connections))?
        .print(", compressing");
    Ok(())
}

/// The memory of a connection in bytes.
struct Figures {
    idle: f64,
    used: f64,
}

impl Figures {
    fn new(base: usize, idle: usize, used: usize, connections: usize) -> Self {
        let per_connection = |bytes: usize| bytes.saturating_sub(base) as f64 / connections as f64;
        Self {
            idle: per_connection(idle),
            used: per_connection(used),
        }
    }

    fn print(&self, how: &str) {
        println!("{:<38} {:.0} bytes", format!("each idle{how}"), self.idle);
        println!(
            "{:<38} {:.0} bytes",
            "  after a message of 16 KiB", self.used
        );
    }
}

fn measure_plain(connections: usize) -> Result<Figures, Box<dyn std::error::Error>> {
    let mut server = Server::start()?;
    // The first connections allocate what the whole process needs only once.
    let mut sockets = (0..FIRST)
        .map(|_| open(server.address))
        .collect::<io::Result<Vec<_>>>()?;
    exchange(&mut sockets)?;
    let base = server.resident_bytes()?;

    let mut sockets = Vec::with_capacity(connections);
    for _ in 0..connections {
        sockets.push(open(server.address)?);
    }
    let idle = server.resident_bytes()?;
    exchange(&mut sockets)?;
    let used = server.resident_bytes()?;
    server.stop()?;
    Ok(Figures::new(base, idle, used, connections))
}

async fn measure_compressed(connections: usize) -> Result<Figures, Box<dyn std::error::Error>> {
    let mut server = Server::start()?;
    let url = format!("ws://{}/", server.address);
    let mut first = Vec::new();
    for _ in 0..FIRST {
        first.push(linerate::connect(&url).await?);
    }
    exchange_compressed(&mut first).await?;
    let base = server.resident_bytes()?;

    let mut clients = Vec::with_capacity(connections);
    for _ in 0..connections {
        clients.push(linerate::connect(&url).await?);
    }
    let idle = server.resident_bytes()?;
    exchange_compressed(&mut clients).await?;
    let used = server.resident_bytes()?;
    server.stop()?;
    Ok(Figures::new(base, idle, used, connections))
}

/// The server in its own process.
struct Server {
    process: Child,
    address: SocketAddr,
}

impl Server {
    fn start() -> Result<Self, Box<dyn std::error::Error>> {
        // Disable huge pages, whose 2 MiB steps would hide the cost of one connection.
        let mut process = Command::new(env::current_exe()?)
            .arg("serve")
            .env("MIMALLOC_ALLOW_THP", "0")
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = process.stdout.take().ok_or("the server has no output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let address = line.trim().parse()?;
        Ok(Self { process, address })
    }

    fn resident_bytes(&self) -> Result<usize, Box<dyn std::error::Error>> {
        thread::sleep(Duration::from_millis(200));
        let path = format!("/proc/{}/smaps_rollup", self.process.id());
        let rollup = std::fs::read_to_string(path)?;
        let line = rollup
            .lines()
            .find(|line| line.starts_with("Rss:"))
            .ok_or("no Rss line")?;
        let kib: usize = line
            .split_whitespace()
            .nth(1)
            .ok_or("no Rss figure")?
            .parse()?;
        Ok(kib << 10)
    }

    fn stop(&mut self) -> Result<(), Box<dyn std::error::Error>> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }
}

/// Opens a connection cheaply, by sending the request of RFC 6455 §1.3 on a plain socket.
fn open(address: SocketAddr) -> io::Result<TcpStream> {
    let mut socket = TcpStream::connect(address)?;
    socket.set_nodelay(true)?;
    write!(
        socket,
        "GET / HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )?;
    let mut response = [0; 1_024];
    let mut bytes = 0;
    while !response[..bytes].ends_with(b"\r\n\r\n") {
        bytes += socket.read(&mut response[bytes..])?;
    }
    assert!(response.starts_with(b"HTTP/1.1 101 "), "the server refused");
    Ok(socket)
}

/// Sends a message of 16 KiB on each connection and checks the echo.
fn exchange(sockets: &mut [TcpStream]) -> io::Result<()> {
    let mut frame = vec![0x82, 0xFE];
    frame.extend((MESSAGE_BYTES as u16).to_be_bytes());
    frame.extend([0; 4]);
    frame.resize(frame.len() + MESSAGE_BYTES, b'x');
    let mut echo = vec![0; 4 + MESSAGE_BYTES];
    for socket in sockets {
        socket.write_all(&frame)?;
        socket.read_exact(&mut echo)?;
        assert!(echo[4..] == frame[8..], "the echo differs");
    }
    Ok(())
}

/// Sends a message of 16 KiB on each connection, and checks the negotiated compression and the
/// echo.
async fn exchange_compressed(clients: &mut [WebSocket]) -> Result<(), Box<dyn std::error::Error>> {
    let mut text = String::new();
    for number in 0.. {
        text += &format!(r#"{{"id":{number},"symbol":"ABC"}}"#);
        if text.len() >= MESSAGE_BYTES {
            break;
        }
    }
    text.truncate(MESSAGE_BYTES);
    for client in clients {
        let context = client.compression().ok_or("the server does not compress")?;
        assert!(context.takeover && context.window_bits == 12, "{context}");
        client.send(text.as_str()).await?;
        let echo = client.recv().await?.ok_or("the server closed")?;
        assert!(echo.as_text() == Some(&text), "the echo differs");
    }
    Ok(())
}
