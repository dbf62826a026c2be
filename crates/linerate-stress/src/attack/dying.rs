//! Connections that open and end in sixteen different ways.

use std::{
    io::Write,
    net::{Ipv4Addr, SocketAddr, TcpStream},
    time::Duration,
};

use anyhow::{Context, Result};
use rustix::net::sockopt;
use socket2::{Domain, Socket, Type};

use super::{Attack, Tally, count, peer::Peer};
use crate::websocket::{read_head, request};

/// How many connections are open at the same time.
const BATCH: usize = 64;

/// How many source addresses are used, because a connection that the client ends occupies its port
/// for a minute.
const ADDRESSES: usize = 200;

/// How a connection is used and how it ends.
struct ConnectionScript {
    /// The request that is sent at first.
    request: Request,
    /// True if the client waits for the response.
    is_answered: bool,
    /// The frames that are sent after the response.
    frames: &'static [u8],
    /// True if the client waits for the server's Close frame.
    is_closed: bool,
    /// True if the connection ends with a reset, not with the end of the stream.
    resets: bool,
}

#[derive(Clone, Copy)]
enum Request {
    None,
    Half,
    Illegal,
    Elsewhere,
    Whole,
}

const fn script(request: Request, is_answered: bool, frames: &'static [u8]) -> ConnectionScript {
    ConnectionScript {
        request,
        is_answered,
        frames,
        is_closed: false,
        resets: false,
    }
}

impl ConnectionScript {
    const fn closed(mut self) -> Self {
        self.is_closed = true;
        self
    }

    const fn reset(mut self) -> Self {
        self.resets = true;
        self
    }
}

/// A text message of two bytes, masked with zeros.
const MESSAGE: &[u8] = b"\x81\x82\0\0\0\0hi";
const CLOSE: &[u8] = b"\x88\x82\0\0\0\0\x03\xe8";

const SCRIPTS: [ConnectionScript; 16] = [
    script(Request::None, false, b"").reset(),
    script(Request::None, false, b""),
    script(Request::Half, false, b"").reset(),
    script(Request::Half, false, b""),
    script(Request::Illegal, true, b""),
    script(Request::Elsewhere, true, b""),
    script(Request::Whole, false, b"").reset(),
    script(Request::Whole, true, b"").reset(),
    script(Request::Whole, true, b""),
    script(Request::Whole, true, CLOSE).closed(),
    script(Request::Whole, true, CLOSE).reset(),
    // An incomplete header.
    script(Request::Whole, true, b"\x81\xfe\x10").reset(),
    // An incomplete message.
    script(Request::Whole, true, b"\x01\x82\0\0\0\0hi"),
    script(Request::Whole, true, MESSAGE).reset(),
    // §5.1: a frame that is not masked.
    script(Request::Whole, true, b"\x81\x02hi").closed(),
    // A Ping, and a Close frame with a code that must not be sent (§7.4.1).
    script(
        Request::Whole,
        true,
        b"\x89\x80\0\0\0\0\x88\x82\0\0\0\0\x03\xed",
    )
    .closed(),
];

pub(super) struct Dying {
    server: SocketAddr,
    /// How many connections are still to be opened.
    left: usize,
    next_address: usize,
}

impl Dying {
    pub(super) const fn new(server: SocketAddr, count: usize) -> Self {
        Self {
            server,
            left: count,
            next_address: 0,
        }
    }

    fn connect(&mut self) -> Result<Peer> {
        self.next_address = (self.next_address + 1) % ADDRESSES;
        let address = Ipv4Addr::new(127, 0, 1, 1 + self.next_address as u8);
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        socket.bind(&SocketAddr::from((address, 0)).into())?;
        socket.connect(&self.server.into())?;
        Ok(Peer::from(TcpStream::from(socket)))
    }
}

impl Attack for Dying {
    fn stroke(&mut self, tally: &mut Tally) -> Result<Duration> {
        let batch = BATCH.min(self.left);
        if batch == 0 {
            return Ok(Duration::from_millis(10));
        }
        let peers =
            (0..batch).map(|number| Ok((self.connect()?, &SCRIPTS[number % SCRIPTS.len()])));
        let peers: Result<Vec<_>> = peers.collect();
        let mut peers = peers.context("attacker cannot connect")?;
        for (peer, script) in &mut peers {
            peer.stream
                .write_all(script.request.to_bytes().as_bytes())?;
        }
        for (peer, script) in peers.iter_mut().filter(|(_, script)| script.is_answered) {
            read_head(&mut peer.stream).context("request was not answered")?;
            // Writing may fail if the request was refused.
            _ = peer.stream.write_all(script.frames);
        }
        for (peer, _) in peers.iter_mut().filter(|(_, script)| script.is_closed) {
            peer.close_code().context("received no Close frame")?;
        }
        for (peer, script) in peers {
            if !script.resets {
                sockopt::set_socket_linger(&peer.stream, None)?;
            }
        }
        self.left -= batch;
        count(tally, "died", batch as u64);
        Ok(Duration::ZERO)
    }
}

impl Request {
    fn to_bytes(self) -> String {
        let whole = request("/echo", "");
        match self {
            Self::None => String::new(),
            Self::Half => whole[..whole.len() / 2].to_owned(),
            Self::Illegal => "GET /echo HTTP/1.1\r\nConnection: close\r\n\r\n".to_owned(),
            Self::Elsewhere => {
                "GET /nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".to_owned()
            }
            Self::Whole => whole,
        }
    }
}
