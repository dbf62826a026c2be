//! HTTP/2 streams instead of connections.

use std::{
    io::{Read, Write},
    net::SocketAddr,
    time::Duration,
};

use anyhow::Result;

use super::{
    Attack, Tally, count,
    peer::{Peer, Peers},
};

/// The number of streams on each connection, which is as many as a client may have.
pub(crate) const STREAMS: u32 = 100;

/// The tally's name for the maximum number of streams that were open at the same time.
pub(crate) const MOST: &str = "streams open at most";

/// A request for `/sse?channel=demo:x`, with fields that are not added to the dynamic table
/// (RFC 7541 §6.2.2).
const REQUEST: &[u8] = b"\x82\x86\x04\x13/sse?channel=demo:x\x01\x09localhost";

/// The first byte of a response with status 200 (RFC 7541 appendix A).
const OK: u8 = 0x88;

/// The type of HEADERS frames (RFC 9113 §6.2).
const HEADERS: u8 = 0x1;

pub(super) struct Streams(pub(super) Peers);

impl Attack for Streams {
    fn stroke(&mut self, tally: &mut Tally) -> Result<Duration> {
        if self.0.connected.is_empty() {
            // All connect before the first requests streams, which may use up the limit of
            // connections.
            for _ in 0..self.0.count {
                self.0.connected.push(connect(self.0.server)?);
            }
            let opened: Result<Vec<u64>> = self.0.connected.iter_mut().map(open).collect();
            let opened: u64 = opened?.into_iter().sum();
            count(tally, "streams", self.0.count as u64 * u64::from(STREAMS));
            let most = tally.entry(MOST.to_owned()).or_default();
            *most = opened.max(*most);
        }
        Ok(Duration::from_secs(1))
    }
}

/// Connects, and waits for the first frame, which the server sends once it has admitted the
/// connection.
fn connect(server: SocketAddr) -> Result<Peer> {
    let mut peer = Peer::connect(server)?;
    peer.stream
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")?;
    read_frame(&mut peer)?;
    Ok(peer)
}

/// Requests all streams of a connection, and returns how many the server opens.
fn open(peer: &mut Peer) -> Result<u64> {
    let mut bytes = Vec::new();
    for number in 0..STREAMS {
        // The flags are END_STREAM and END_HEADERS.
        bytes.extend([0, 0, REQUEST.len() as u8, HEADERS, 0x5]);
        bytes.extend((2 * number + 1).to_be_bytes());
        bytes.extend(REQUEST);
    }
    peer.stream.write_all(&bytes)?;
    let (mut answered, mut opened) = (0, 0);
    while answered < STREAMS {
        let (kind, payload) = read_frame(peer)?;
        if kind == HEADERS {
            answered += 1;
            // The block may begin with a change of the table size.
            let mut fields = payload.iter().skip_while(|byte| **byte & 0xe0 == 0x20);
            opened += u64::from(fields.next() == Some(&OK));
        }
    }
    Ok(opened)
}

/// Reads a frame, and returns its type and payload.
fn read_frame(peer: &mut Peer) -> Result<(u8, Vec<u8>)> {
    let mut head = [0; 9];
    peer.stream.read_exact(&mut head)?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let mut payload = vec![0; length as usize];
    peer.stream.read_exact(&mut payload)?;
    Ok((head[3], payload))
}
