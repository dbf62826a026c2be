//! What a hundred bombs cost (RFC 7692): memory is bounded by what messages may have, not by what they claim to become.
//!
//! A test binary of its own, because it asks the kernel for the peak of the whole process. The clients are part of it, so that
//! the server's share is even less.
#![cfg(all(target_os = "linux", feature = "deflate"))]
#![allow(clippy::unwrap_used, reason = "a test that goes wrong is to panic")]

use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    thread,
    time::Duration,
};

use linerate::{Request, Result, Role, WebSocket};
use linerate_testkit::Frame;

const CONNECTIONS: usize = 100;

/// The default of `Limits::message_bytes_max`.
const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// What a connection may need beside the message: the state that inflates it, buffers, the task.
const REST_BYTES_MAX: usize = 64 << 10;

const REQUEST: &[u8] =
    b"GET / HTTP/1.1\r\nHost: example.com\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n\r\n";

/// What zlib makes of zeros: a block of codes, and then two bits for each 258 bytes.
const CODES: &[u8] = b"\xec\xc1\x01\x01\x00\x00\x00\x80\x90\xfe\xaf\xee\x08\x0a";

/// So many bytes of zeros behind the codes become 1,022 KiB, which is just below the limit.
const FUSE_BYTES: usize = 1_014;

/// The bomb has a mebibyte, and would become a gibibyte.
const BOMB_BYTES: usize = 1 << 20;

/// So much of it, the header included, becomes more than is left below the limit.
const SPARK_BYTES: usize = 100;

#[test]
fn x01_a_hundred_bombs_are_answered_1009_in_bounded_memory() {
    let address = serve();
    let fuse = Frame::new(2, &[CODES, &[0; FUSE_BYTES]].concat()).with_rsv(4);
    let fuse = fuse.with_fin(false).to_role(Role::Server).to_bytes();
    let ping = Frame::new(9, b"all of it?")
        .to_role(Role::Server)
        .to_bytes();
    let bomb = Frame::new(0, &vec![0; BOMB_BYTES]);
    let bomb = bomb.to_role(Role::Server).to_bytes();

    let (spark, rest) = bomb.split_at(SPARK_BYTES);
    let light = |client: &mut TcpStream| {
        client.write_all(&fuse).unwrap();
        client.write_all(&ping).unwrap();
        // A Pong comes after the fragment before it was inflated.
        assert_eq!(read(client, 2 + 10), b"\x8A\x0Aall of it?");
    };
    let explode = |client: &mut TcpStream| {
        client.write_all(spark).unwrap();
        assert_eq!(read(client, 4), b"\x88\x02\x03\xF1", "1009");
        // Nobody need take the rest.
        _ = client.write_all(rest);
    };

    // The first pays for what the process has once.
    let mut first = open(address);
    light(&mut first);
    explode(&mut first);
    let mut clients: Vec<_> = (0..CONNECTIONS).map(|_| open(address)).collect();
    let base = resident_bytes("VmRSS:");
    clients.iter_mut().for_each(light);
    let held = resident_bytes("VmRSS:").saturating_sub(base);
    clients.iter_mut().for_each(explode);
    let peak = resident_bytes("VmHWM:").saturating_sub(base);
    let bound = CONNECTIONS * (MESSAGE_BYTES_MAX + REST_BYTES_MAX);
    assert!(held > CONNECTIONS * MESSAGE_BYTES_MAX / 2, "{held} bytes");
    assert!(peak <= bound, "{peak} bytes, of {bound}; {held} before");
}

/// Starts a server with the default settings on a thread of its own.
fn serve() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            let serving = linerate::serve(listener, receive, std::future::pending());
            serving.await.unwrap();
        });
    });
    address
}

async fn receive(mut ws: WebSocket, _: Request) -> Result<()> {
    while ws.recv().await?.is_some() {}
    Ok(())
}

fn open(address: SocketAddr) -> TcpStream {
    let mut client = TcpStream::connect(address).unwrap();
    client.set_nodelay(true).unwrap();
    client
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    client
        .set_write_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    client.write_all(REQUEST).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.extend(read(&mut client, 1));
    }
    let head = String::from_utf8(head).unwrap();
    assert!(head.contains("permessage-deflate"), "{head}");
    client
}

fn read(client: &mut TcpStream, bytes: usize) -> Vec<u8> {
    let mut read = vec![0; bytes];
    client.read_exact(&mut read).unwrap();
    read
}

/// Returns a figure of the process.
fn resident_bytes(field: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    let kib: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib << 10
}
