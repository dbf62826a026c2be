//! The process that runs the clients.

use std::{
    error::Error,
    io::{self, BufRead, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    time::Duration,
};

use rustix::net::{AddressFamily, SocketType, bind, connect, socket, sockopt};

/// The answer to a command that succeeded.
pub(crate) const DONE: &str = "done";

/// The number of connections from one address.
const CONNECTIONS_PER_ADDRESS: usize = 40_000;

/// The port of the first connection from an address.
const PORT_MIN: usize = 20_000;

/// The number of addresses reserved for each client process, starting at 127.1.0.1.
const ADDRESSES: usize = 50;

/// The number of connections that are opened, or exchange messages, at the same time.
const BATCH: usize = 64;

const MESSAGE_BYTES: usize = 16 << 10;

/// The time limit for a response.
const PATIENCE: Duration = Duration::from_secs(20);

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n\
    Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
    Sec-WebSocket-Version: 13\r\n\r\n";

/// Executes the commands on standard input until it ends.
pub(crate) fn obey(server: SocketAddr, process: usize) -> Result<(), Box<dyn Error>> {
    let mut clients = Clients {
        server,
        process,
        streams: Vec::new(),
    };
    for line in io::stdin().lock().lines() {
        let line = line?;
        let outcome = match line.split_once(' ') {
            Some(("open", connections)) => clients.open(connections.parse()?),
            None if line == "echo" => clients.echo(),
            _ => Err(format!("unknown command: {line}").into()),
        };
        match outcome {
            Ok(()) => println!("{DONE}"),
            Err(error) => println!("{error}"),
        }
    }
    Ok(())
}

struct Clients {
    server: SocketAddr,
    process: usize,
    streams: Vec<TcpStream>,
}

impl Clients {
    /// Opens connections until there are `connections`.
    fn open(&mut self, connections: usize) -> Result<(), Box<dyn Error>> {
        while self.streams.len() < connections {
            let first = self.streams.len();
            for number in first..connections.min(first + BATCH) {
                let mut stream = self.connect(number)?;
                stream.write_all(REQUEST)?;
                self.streams.push(stream);
            }
            for stream in &mut self.streams[first..] {
                read_answer(stream)?;
            }
        }
        Ok(())
    }

    /// Sends a message on each connection and reads its echo.
    fn echo(&mut self) -> Result<(), Box<dyn Error>> {
        // The message is masked with a key of zeros.
        let mut message = vec![0x82, 0xFE, (MESSAGE_BYTES >> 8) as u8, 0, 0, 0, 0, 0];
        message.resize(message.len() + MESSAGE_BYTES, b'x');
        let mut echo = vec![0; 4 + MESSAGE_BYTES];
        for streams in self.streams.chunks_mut(BATCH) {
            for stream in &mut *streams {
                stream.write_all(&message)?;
            }
            for stream in streams {
                stream.read_exact(&mut echo)?;
            }
        }
        Ok(())
    }

    /// Connects from the address and port assigned to this number.
    fn connect(&self, number: usize) -> Result<TcpStream, Box<dyn Error>> {
        let address = 1 + self.process * ADDRESSES + number / CONNECTIONS_PER_ADDRESS;
        let [high, low] = u16::try_from(address)?.to_be_bytes();
        let port = u16::try_from(PORT_MIN + number % CONNECTIONS_PER_ADDRESS)?;
        let from = SocketAddr::from((Ipv4Addr::new(127, 1, high, low), port));
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        bind(&socket, &from)?;
        connect(&socket, &self.server)?;
        let stream = TcpStream::from(socket);
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(stream)
    }
}

impl Drop for Clients {
    /// Resets the connections, so that their ports become free immediately.
    fn drop(&mut self) {
        for stream in &self.streams {
            _ = sockopt::set_socket_linger(stream, Some(Duration::ZERO));
        }
    }
}

/// Reads the response to the request. The server sends no frame after it.
fn read_answer(stream: &mut TcpStream) -> Result<(), Box<dyn Error>> {
    let mut answer = Vec::new();
    let mut some = [0; 512];
    while !answer.ends_with(b"\r\n\r\n") {
        match stream.read(&mut some)? {
            0 => return Err("the server closed a connection during the opening handshake".into()),
            bytes => answer.extend_from_slice(&some[..bytes]),
        }
    }
    if answer.starts_with(b"HTTP/1.1 101 ") {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&answer)
            .replace("\r\n", "; ")
            .into())
    }
}
