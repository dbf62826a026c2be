//! A thread: its listener, its connections, its loop.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};

use crate::acknowledge::EmptyMessages;
use crate::arguments::Service;
use crate::connection::Connection;
use crate::hub::Hub;

/// The longest read. Longer reads need fewer calls, as long as the bytes stay in the core's cache
/// between the read and the write.
const BUFFER_BYTES: usize = 256 << 10;

/// Events taken from the kernel at a time.
const EVENTS_MAX: usize = 1024;

/// Maximum number of connections that wait to be accepted; the kernel may lower it.
const BACKLOG: i32 = 4096;

/// An acknowledgement: ACK in ASCII.
const ACKNOWLEDGEMENT: u8 = 0x06;

/// Tokens of descriptors that are not connections; the token of a connection is its index.
const BELL: u64 = u64::MAX - 1;
const LISTENER: u64 = u64::MAX;

/// A thread's state.
#[derive(Debug)]
pub(crate) struct Worker {
    service: Service,
    /// Its index among the threads.
    number: usize,
    hub: Arc<Hub>,
    epoll: OwnedFd,
    listener: OwnedFd,
    connections: Vec<Option<Connection>>,
    /// The free indices of `connections`.
    vacant: Vec<usize>,
    buffer: Vec<u8>,
}

impl Worker {
    /// Listens on `port` of 127.0.0.1 together with the other threads.
    pub(crate) fn bind(
        port: u16,
        service: Service,
        number: usize,
        hub: Arc<Hub>,
    ) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let listener = net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        sockopt::set_socket_reuseaddr(&listener, true)?;
        sockopt::set_socket_reuseport(&listener, true)?;
        // Accepted connections inherit it.
        sockopt::set_tcp_nodelay(&listener, true)?;
        net::bind(&listener, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
        net::listen(&listener, BACKLOG)?;

        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(
            &epoll,
            &listener,
            EventData::new_u64(LISTENER),
            EventFlags::IN,
        )?;
        epoll::add(
            &epoll,
            hub.bell(number),
            EventData::new_u64(BELL),
            EventFlags::IN,
        )?;
        Ok(Self {
            service,
            number,
            hub,
            epoll,
            listener,
            connections: Vec::new(),
            vacant: Vec::new(),
            buffer: vec![0; BUFFER_BYTES],
        })
    }

    /// Serves.
    ///
    /// # Errors
    ///
    /// Something failed that does not concern only one connection; it does not end otherwise.
    pub(crate) fn run(&mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS_MAX);
        loop {
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                match event.data.u64() {
                    BELL => self.deliver_posts()?,
                    LISTENER => self.accept()?,
                    place => self.handle_event(place as usize, event.flags)?,
                }
            }
        }
    }

    /// Accepts one connection; if there are more, epoll reports them again.
    fn accept(&mut self) -> io::Result<()> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let stream = match net::accept_with(&self.listener, flags) {
            Ok(stream) => stream,
            Err(Errno::AGAIN | Errno::CONNABORTED | Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let place = self.vacant.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        let token = EventData::new_u64(place as u64);
        epoll::add(&self.epoll, &stream, token, EventFlags::IN)?;
        self.connections[place] = Some(Connection::new(stream));
        Ok(())
    }

    fn handle_event(&mut self, place: usize, flags: EventFlags) -> io::Result<()> {
        // A fan-out may have closed it since the kernel reported the event.
        let Some(connection) = &mut self.connections[place] else {
            return Ok(());
        };
        let mut open = true;
        if flags.contains(EventFlags::OUT) {
            open = connection.write_unsent().is_ok();
        }
        // Reading a connection reveals that it has ended.
        if open && flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
            open = match connection.read(&mut self.buffer) {
                Ok(None) => true,
                Ok(Some(input)) => match self.service {
                    Service::Acknowledge => acknowledge(connection, input).is_ok(),
                    Service::Echo => connection.write(input).is_ok(),
                    Service::Fanout => {
                        let len = input.len();
                        return self.publish(len);
                    }
                },
                Err(_) => false,
            };
        }
        self.settle(place, open)
    }

    /// Sends the first `len` bytes of the buffer to all connections.
    fn publish(&mut self, len: usize) -> io::Result<()> {
        self.hub.post(self.number, &self.buffer[..len])?;
        for place in 0..self.connections.len() {
            if let Some(connection) = &mut self.connections[place] {
                let open = connection.write(&self.buffer[..len]).is_ok();
                self.settle(place, open)?;
            }
        }
        Ok(())
    }

    /// Sends what was published on other threads.
    fn deliver_posts(&mut self) -> io::Result<()> {
        for post in self.hub.take(self.number)? {
            for place in 0..self.connections.len() {
                if let Some(connection) = &mut self.connections[place] {
                    let open = connection.write(&post).is_ok();
                    self.settle(place, open)?;
                }
            }
        }
        Ok(())
    }

    /// Closes a connection that is not `open`; otherwise makes epoll watch for what it needs.
    fn settle(&mut self, place: usize, open: bool) -> io::Result<()> {
        let Some(connection) = &mut self.connections[place] else {
            return Ok(());
        };
        if !open {
            self.connections[place] = None;
            self.vacant.push(place);
            return Ok(());
        }
        let wants_room = connection.has_unsent();
        if wants_room == connection.watched_for_room {
            return Ok(());
        }
        connection.watched_for_room = wants_room;
        let flags = match (wants_room, self.service) {
            (false, _) => EventFlags::IN,
            // A client that does not read answers may not send more. A subscriber sends nothing,
            // and only a read reveals that it has left.
            (true, Service::Acknowledge | Service::Echo) => EventFlags::OUT,
            (true, Service::Fanout) => EventFlags::IN | EventFlags::OUT,
        };
        let token = EventData::new_u64(place as u64);
        epoll::modify(&self.epoll, &*connection, token, flags)?;
        Ok(())
    }
}

/// Answers the messages that end in `input`.
fn acknowledge(connection: &mut Connection, input: &[u8]) -> io::Result<()> {
    let messages = match connection.counter.handle_input(input) {
        Ok(messages) => messages,
        Err(EmptyMessages) => return Err(io::ErrorKind::InvalidData.into()),
    };
    if messages == 0 {
        return Ok(());
    }
    // At most as many as there were bytes of input.
    connection.write(&vec![ACKNOWLEDGEMENT; messages as usize])
}
