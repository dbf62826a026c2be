//! A client's connection, plain or TLS, that records when the kernel received the data.

use std::{
    collections::VecDeque,
    io::{self, IoSliceMut, Read, Write},
    net::{SocketAddr, TcpStream},
    os::fd::AsRawFd,
    sync::Arc,
    time::{Duration, SystemTime},
};

use nix::{
    cmsg_space,
    errno::Errno,
    sys::{
        socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt::ReceiveTimestampns},
        time::TimeSpec,
    },
};
use rustls::{ClientConfig, ClientConnection, pki_types::ServerName};

/// The size of a read, in bytes.
const READ_BYTES: usize = 16 << 10;

pub(crate) struct Wire {
    stream: TcpStream,
    tls: Option<Box<ClientConnection>>,
    /// Bytes that were received and not yet returned.
    arrived: VecDeque<u8>,
    stamp: SystemTime,
}

impl Wire {
    /// Connects. Reads and writes time out after `patience`.
    pub(crate) fn connect(
        address: SocketAddr,
        tls: Option<Arc<ClientConfig>>,
        patience: Duration,
    ) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        stamp(&stream)?;
        let tls = tls.map(|config| {
            let name = ServerName::from(address.ip());
            ClientConnection::new(config, name).map(Box::new)
        });
        Ok(Self {
            stream,
            tls: tls.transpose().map_err(io::Error::other)?,
            arrived: VecDeque::new(),
            stamp: SystemTime::now(),
        })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(tls) = &mut self.tls else {
            return self.stream.write_all(bytes);
        };
        tls.writer().write_all(bytes)?;
        while tls.wants_write() {
            tls.write_tls(&mut self.stream)?;
        }
        Ok(())
    }

    pub(crate) fn read_byte(&mut self) -> io::Result<u8> {
        loop {
            if let Some(byte) = self.arrived.pop_front() {
                return Ok(byte);
            }
            self.read()?;
        }
    }

    /// Returns when the kernel received the data that was read last.
    pub(crate) const fn stamp(&self) -> SystemTime {
        self.stamp
    }

    /// Returns the server's certificate, if the connection uses TLS.
    pub(crate) fn certificate(&self) -> Option<Vec<u8>> {
        let certificates = self.tls.as_ref()?.peer_certificates()?;
        Some(certificates.first()?.to_vec())
    }

    fn read(&mut self) -> io::Result<()> {
        let mut buffer = [0; READ_BYTES];
        let (bytes, stamp) = receive(&self.stream, &mut buffer)?;
        if bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.stamp = stamp;
        let Some(tls) = &mut self.tls else {
            self.arrived.extend(&buffer[..bytes]);
            return Ok(());
        };
        let mut records = &buffer[..bytes];
        while !records.is_empty() {
            tls.read_tls(&mut records)?;
            let state = tls.process_new_packets().map_err(io::Error::other)?;
            let mut plain = vec![0; state.plaintext_bytes_to_read()];
            tls.reader().read_exact(&mut plain)?;
            self.arrived.extend(plain);
        }
        while tls.wants_write() {
            tls.write_tls(&mut self.stream)?;
        }
        Ok(())
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
        io::Write,
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
            assert_eq!(wire.read_byte().unwrap(), b'a');
            wire.stamp() <= written
        });
        assert!(is_stamped);
    }
}
