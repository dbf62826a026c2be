//! Sends a hundred messages that would each inflate to 1 GiB (RFC 7692), and measures the memory
//! that a server uses for them.
//!
//! Call this only from tests that have their own binary, because the kernel reports figures for the
//! whole process. The clients are part of it, so the server's share is even smaller.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
};

use linerate_harness::process::Process;
use linerate_proto::Role;

use crate::{Frame, PATIENCE};

const CONNECTIONS: usize = 100;

/// The default of `Limits::message_bytes_max`.
const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// The memory that a connection may use in addition to the message: inflater state, buffers, the
/// task.
const REST_BYTES_MAX: usize = 64 << 10;

/// The output of zlib for zeros: a block of codes, and then two bits for each 258 bytes.
const CODES: &[u8] = b"\xec\xc1\x01\x01\x00\x00\x00\x80\x90\xfe\xaf\xee\x08\x0a";

/// This many zero bytes after the codes inflate to 1,022 KiB, which is just below the limit.
const FUSE_BYTES: usize = 1_014;

/// The size of the bomb, 1 MiB, which would inflate to 1 GiB.
const BOMB_BYTES: usize = 1 << 20;

/// This many bytes of the bomb, including the header, inflate to more than is left below the limit.
const SPARK_BYTES: usize = 100;

/// Sends the bombs to a server in this process that reassembles messages, with the default limits,
/// at `path`.
///
/// # Panics
///
/// Panics if a bomb is not answered with 1009, or if the memory exceeds the limit and 64 KiB for
/// each connection.
pub fn assert_bounded(address: SocketAddr, path: &str) {
    let bomb = Bomb::new();
    // The first connection pays for one-time allocations of the process.
    let mut first = open(address, path);
    bomb.light(&mut first);
    bomb.explode(&mut first);
    let mut clients: Vec<_> = (0..CONNECTIONS).map(|_| open(address, path)).collect();
    let own = Process::own();
    own.reset_peak().expect("a process may reset its own peak");
    let base = resident_bytes(own.resident_bytes());
    clients.iter_mut().for_each(|client| bomb.light(client));
    let held = resident_bytes(own.resident_bytes()).saturating_sub(base);
    clients.iter_mut().for_each(|client| bomb.explode(client));
    let peak = resident_bytes(own.resident_bytes_peak()).saturating_sub(base);
    let bound = CONNECTIONS * (MESSAGE_BYTES_MAX + REST_BYTES_MAX);
    assert!(held > CONNECTIONS * MESSAGE_BYTES_MAX / 2, "{held} bytes");
    assert!(peak <= bound, "{peak} bytes, of {bound}; {held} before");
}

struct Bomb {
    /// A fragment that is just below the limit, and a Ping whose answer shows that it was inflated.
    fuse: Vec<u8>,
    ping: Vec<u8>,
    bomb: Vec<u8>,
}

impl Bomb {
    fn new() -> Self {
        let fuse = Frame::new(2, &[CODES, &[0; FUSE_BYTES]].concat()).with_rsv(4);
        let bytes = |frame: Frame| frame.to_role(Role::Server).to_bytes();
        Self {
            fuse: bytes(fuse.with_fin(false)),
            ping: bytes(Frame::new(9, b"all of it?")),
            bomb: bytes(Frame::new(0, &vec![0; BOMB_BYTES])),
        }
    }

    fn light(&self, client: &mut TcpStream) {
        client.write_all(&self.fuse).expect("the server reads");
        client.write_all(&self.ping).expect("the server reads");
        // The Pong comes after the preceding fragment was inflated.
        assert_eq!(read(client, 2 + 10), b"\x8A\x0Aall of it?");
    }

    fn explode(&self, client: &mut TcpStream) {
        let (spark, rest) = self.bomb.split_at(SPARK_BYTES);
        client.write_all(spark).expect("the server reads");
        assert_eq!(read(client, 4), b"\x88\x02\x03\xF1", "1009");
        // The server need not read the rest.
        _ = client.write_all(rest);
    }
}

fn open(address: SocketAddr, path: &str) -> TcpStream {
    let mut client = TcpStream::connect(address).expect("the server listens");
    let set = client
        .set_nodelay(true)
        .and_then(|()| client.set_read_timeout(Some(PATIENCE)))
        .and_then(|()| client.set_write_timeout(Some(PATIENCE)));
    set.expect("the socket is open");
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: example.com\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\
        Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n\r\n"
    );
    client
        .write_all(request.as_bytes())
        .expect("the server reads");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.extend(read(&mut client, 1));
    }
    let head = String::from_utf8_lossy(&head);
    assert!(head.contains("permessage-deflate"), "{head}");
    client
}

fn read(client: &mut TcpStream, bytes: usize) -> Vec<u8> {
    let mut read = vec![0; bytes];
    client.read_exact(&mut read).expect("the server answers");
    read
}

fn resident_bytes(figure: io::Result<u64>) -> usize {
    figure.expect("this process has memory") as usize
}
