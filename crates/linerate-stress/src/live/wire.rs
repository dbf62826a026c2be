//! A client's connection, plain or TLS, that records when the kernel received the data.

use std::{
    io::{self, BufReader, IoSliceMut, Read, Write},
    net::{SocketAddr, TcpStream},
    os::fd::AsRawFd,
    sync::Arc,
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result};
use linerate_harness::socket::Socket;
use nix::{
    cmsg_space,
    errno::Errno,
    sys::{
        socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt::ReceiveTimestampns},
        time::TimeSpec,
    },
};
use rustls::{ClientConfig, pki_types::ServerName};

use crate::websocket::{read_frame, request, wait_for_open};

pub(crate) struct Wire(BufReader<Socket<TimestampedStream>>);

/// A stream, and when the kernel received the data that was read last.
struct TimestampedStream {
    stream: TcpStream,
    stamp: SystemTime,
}

impl Wire {
    /// Connects, and opens a WebSocket at `path` with the additional header lines `more`. Reads and
    /// writes time out after `patience`.
    pub(crate) fn open(
        address: SocketAddr,
        tls: Option<Arc<ClientConfig>>,
        patience: Duration,
        path: &str,
        more: &str,
    ) -> Result<Self> {
        let mut wire = Self::connect(address, tls, patience)?;
        wire.write(request(path, more).as_bytes())?;
        wait_for_open(&mut wire.0).context("live client")?;
        Ok(wire)
    }

    fn connect(
        address: SocketAddr,
        tls: Option<Arc<ClientConfig>>,
        patience: Duration,
    ) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        stamp(&stream)?;
        let stamped = TimestampedStream {
            stream,
            stamp: SystemTime::now(),
        };
        let tls = tls.map(|config| (config, ServerName::from(address.ip())));
        let socket = Socket::new(stamped, tls.as_ref())?;
        Ok(Self(BufReader::new(socket)))
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let socket = self.0.get_mut();
        socket.write_all(bytes)?;
        socket.flush()
    }

    /// Reads a frame, and returns its first byte and its payload.
    pub(crate) fn read_frame(&mut self) -> io::Result<(u8, Vec<u8>)> {
        read_frame(&mut self.0)
    }

    /// Returns when the kernel received the data that was read last.
    pub(crate) fn stamp(&self) -> SystemTime {
        self.0.get_ref().stream().stamp
    }

    /// Returns the server's certificate, if the connection uses TLS.
    pub(crate) fn certificate(&self) -> Option<Vec<u8>> {
        self.0.get_ref().certificate().map(<[u8]>::to_vec)
    }
}

impl Read for TimestampedStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (bytes, stamp) = receive(&self.stream, buffer)?;
        self.stamp = stamp;
        Ok(bytes)
    }
}

impl Write for TimestampedStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Makes the kernel record when it receives data on this socket.
pub(crate) fn stamp(stream: &TcpStream) -> io::Result<()> {
    Ok(setsockopt(stream, ReceiveTimestampns, &true)?)
}

/// Receives once. Returns the number of bytes, and when the kernel received the last of them, which
/// on one machine is when the peer handed them over.
pub(crate) fn receive(stream: &TcpStream, buffer: &mut [u8]) -> io::Result<(usize, SystemTime)> {
    let mut slices = [IoSliceMut::new(buffer)];
    let mut control = cmsg_space!(TimeSpec);
    let flags = MsgFlags::empty();
    let socket = stream.as_raw_fd();
    let message = loop {
        match recvmsg::<()>(socket, &mut slices, Some(&mut control), flags) {
            Err(Errno::EINTR) => {}
            received => break received?,
        }
    };
    let stamp = message.cmsgs()?.find_map(|control| match control {
        ControlMessageOwned::ScmTimestampns(stamp) => {
            Some(SystemTime::UNIX_EPOCH + Duration::from(stamp))
        }
        _ => None,
    });
    Ok((message.bytes, stamp.unwrap_or_else(SystemTime::now)))
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::TcpListener,
        thread::sleep,
        time::{Duration, SystemTime},
    };

    use super::Wire;

    #[test]
    fn bytes_carry_the_time_when_they_came_to_the_kernel() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut wire = Wire::connect(address, None, Duration::from_secs(30)).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        // A task of the kernel enables timestamps asynchronously.
        let is_stamped = (0..10_000).any(|_| {
            sleep(Duration::from_millis(1));
            peer.write_all(b"a").unwrap();
            let written = SystemTime::now();
            let mut byte = [0];
            wire.0.read_exact(&mut byte).unwrap();
            assert_eq!(byte, *b"a");
            wire.stamp() <= written
        });
        assert!(is_stamped);
    }
}
