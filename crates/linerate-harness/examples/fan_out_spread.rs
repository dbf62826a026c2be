//! Measures how far apart the first and the last delivery of a publication are, in `linerate serve`
//! and in a program that makes only the system calls: `cargo run --release -p linerate-harness
//! --example fan_out_spread target/release/linerate [SUBSCRIBERS [ROUNDS]]`.
//!
//! Both servers have one thread and send frames of 254 bytes to subscribers in another process, one
//! publication at a time. Each round measures one and then the other. The bare program calls `send`
//! for one socket after the other, and nothing else. The subscribers of both are in one process, so
//! there are at most half as many as it may have open files.

mod gateway;

use std::{
    env,
    error::Error,
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use gateway::UPGRADE;
use linerate_harness::{child::ChildProcess, process::raise_file_limit};
use rustix::{
    buffer::spare_capacity,
    event::{Timespec, epoll},
};

const CONFIG: &str = "\
client.ping_interval_s = 3600
auth.api_key = \"a key for the measurement\"
";

/// A text frame without its payload, of 250 bytes.
const HEADER: [u8; 4] = [0x81, 126, 0, 250];
const FRAME_BYTES: usize = 254;

/// How long to wait for a delivery.
const PATIENCE: Duration = Duration::from_secs(20);

/// The pause before each publication, in which everything comes to rest.
const REST: Duration = Duration::from_millis(200);

/// A server with its subscribers.
struct Subject {
    name: &'static str,
    server: ChildProcess,
    address: SocketAddr,
    subscribers: Subscribers,
    /// Where the bare server is told to publish.
    control: Option<TcpStream>,
    spreads: Vec<Duration>,
    cpu: Vec<Duration>,
}

/// The sockets of all subscribers.
struct Subscribers {
    sockets: Vec<TcpStream>,
    poll: rustix::fd::OwnedFd,
}

fn main() -> Result<(), Box<dyn Error>> {
    raise_file_limit()?;
    let arguments: Vec<String> = env::args().skip(1).collect();
    let number = |place: usize, default| match arguments.get(place) {
        Some(text) => text.parse::<usize>(),
        None => Ok(default),
    };
    let subscribers = number(1, 9_900)?;
    match arguments.first().map(String::as_str) {
        None => Err("usage: fan_out_spread SERVER [SUBSCRIBERS [ROUNDS]]".into()),
        Some("--bare") => serve_bare(subscribers).map_err(Into::into),
        Some(program) => measure(program.as_ref(), subscribers, number(2, 40)?),
    }
}

/// Accepts `subscribers` connections, and then sends a frame to each of them whenever a byte
/// arrives on the next connection.
fn serve_bare(subscribers: usize) -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    let accept = || {
        let (socket, _) = listener.accept()?;
        socket.set_nodelay(true)?;
        Ok::<_, io::Error>(socket)
    };
    let mut sockets = Vec::new();
    for _ in 0..subscribers {
        sockets.push(accept()?);
    }
    let mut control = accept()?;
    let frame = frame();
    let mut byte = [0];
    while control.read(&mut byte)? == 1 {
        for socket in &mut sockets {
            socket.write_all(&frame)?;
        }
    }
    Ok(())
}

fn measure(program: &Path, count: usize, rounds: usize) -> Result<(), Box<dyn Error>> {
    let mut subjects = [Subject::bare(count)?, Subject::linerate(program, count)?];
    for round in 0..rounds + 3 {
        for subject in &mut subjects {
            let (spread, cpu) = subject.publish()?;
            // The first rounds fill caches.
            if round >= 3 {
                subject.spreads.push(spread);
                subject.cpu.push(cpu);
            }
        }
    }
    println!("{count} subscribers, {rounds} publications each, in turns");
    println!(
        "server        first to last delivery, ms (least, median, most)   CPU of the server, ms"
    );
    let [bare, linerate] = &mut subjects;
    for subject in [&mut *bare, &mut *linerate] {
        subject.spreads.sort();
        subject.cpu.sort();
        let [least, median, most] = [0, rounds / 2, rounds - 1].map(|it| subject.spreads[it]);
        println!(
            "{:<13} {:>8.1} {:>8.1} {:>8.1} {:>39.1}",
            subject.name,
            milliseconds(least),
            milliseconds(median),
            milliseconds(most),
            milliseconds(subject.cpu[rounds / 2]),
        );
    }
    let middle = |subject: &Subject| subject.spreads[rounds / 2].as_secs_f64();
    println!("ratio         {:>17.2}", middle(linerate) / middle(bare));
    Ok(())
}

impl Subject {
    fn bare(count: usize) -> Result<Self, Box<dyn Error>> {
        let mut server = Command::new(env::current_exe()?);
        server.args(["--bare", &count.to_string()]);
        let mut server = ChildProcess::spawn(server.stdout(Stdio::piped()))?;
        let address: SocketAddr = server.first_line()?.trim().parse()?;
        let subscribers = Subscribers::connect(address, count, None)?;
        let mut subject = Self::new("bare", server, address, subscribers);
        subject.control = Some(TcpStream::connect(address)?);
        Ok(subject)
    }

    fn linerate(program: &Path, count: usize) -> Result<Self, Box<dyn Error>> {
        let (server, address) = gateway::start(program, CONFIG, |_| ())?;
        let request = format!("GET /raw?channel=news HTTP/1.1\r\nHost: localhost\r\n{UPGRADE}\r\n");
        let subscribers = Subscribers::connect(address, count, Some(&request))?;
        Ok(Self::new("linerate", server, address, subscribers))
    }

    fn new(
        name: &'static str,
        server: ChildProcess,
        address: SocketAddr,
        subscribers: Subscribers,
    ) -> Self {
        Self {
            name,
            server,
            address,
            subscribers,
            control: None,
            spreads: Vec::new(),
            cpu: Vec::new(),
        }
    }

    /// Publishes once. Returns the time between the first and the last delivery, and the CPU time
    /// that the server has used.
    fn publish(&mut self) -> io::Result<(Duration, Duration)> {
        thread::sleep(REST);
        let before = self.server.process().cpu()?;
        let address = self.address;
        let publisher = match &self.control {
            Some(control) => {
                let mut control = control.try_clone()?;
                thread::spawn(move || control.write_all(b"p"))
            }
            None => thread::spawn(move || publish_to_linerate(address)),
        };
        let spread = self.subscribers.receive()?;
        publisher
            .join()
            .map_err(|_| io::Error::other("the publisher panicked"))??;
        let after = self.server.process().cpu()?;
        Ok((spread, after.saturating_sub(before)))
    }
}

impl Subscribers {
    /// Connects, and sends `request` on each connection if there is one.
    fn connect(address: SocketAddr, count: usize, request: Option<&str>) -> io::Result<Self> {
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut sockets = Vec::new();
        for number in 0..count as u64 {
            let mut socket = TcpStream::connect(address)?;
            if let Some(request) = request {
                socket.write_all(request.as_bytes())?;
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let mut space = [0; 512];
                    let bytes = socket.read(&mut space)?;
                    if bytes == 0 {
                        return Err(io::Error::other("the server refused a subscriber"));
                    }
                    head.extend_from_slice(&space[..bytes]);
                }
            }
            let data = epoll::EventData::new_u64(number);
            epoll::add(&poll, &socket, data, epoll::EventFlags::IN)?;
            sockets.push(socket);
        }
        Ok(Self { sockets, poll })
    }

    /// Waits until everyone has a frame. Returns the time between the first and the last of them.
    fn receive(&mut self) -> io::Result<Duration> {
        let mut received = vec![0; self.sockets.len()];
        let mut missing = self.sockets.len();
        let mut first = None;
        let mut space = [0; FRAME_BYTES];
        let mut events = Vec::with_capacity(1_024);
        let patience = Timespec::try_from(PATIENCE).map_err(io::Error::other)?;
        loop {
            epoll::wait(&self.poll, spare_capacity(&mut events), Some(&patience))?;
            let now = Instant::now();
            if events.is_empty() {
                return Err(io::Error::other(format!(
                    "{missing} subscribers got nothing"
                )));
            }
            let first = *first.get_or_insert(now);
            for event in events.drain(..) {
                let number = event.data.u64() as usize;
                let left = FRAME_BYTES - received[number];
                let bytes = self.sockets[number].read(&mut space[..left])?;
                if bytes == 0 {
                    return Err(io::Error::other("a connection has ended"));
                }
                received[number] += bytes;
                missing -= usize::from(received[number] == FRAME_BYTES);
            }
            if missing == 0 {
                return Ok(now - first);
            }
        }
    }
}

/// Publishes once by the server API.
fn publish_to_linerate(address: SocketAddr) -> io::Result<()> {
    let payload = "x".repeat(FRAME_BYTES - HEADER.len() - 2);
    let body = format!(r#"{{"channel":"news","data":"{payload}"}}"#);
    let mut socket = TcpStream::connect(address)?;
    let request = format!(
        "POST /api/publish HTTP/1.1\r\nHost: localhost\r\nX-API-Key: a key for the measurement\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(request.as_bytes())?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer)?;
    match answer.starts_with("HTTP/1.1 200 ") {
        true => Ok(()),
        false => Err(io::Error::other(answer)),
    }
}

fn frame() -> Vec<u8> {
    let mut frame = HEADER.to_vec();
    frame.resize(FRAME_BYTES, b'x');
    frame
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
