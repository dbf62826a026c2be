//! A running server, and a client that works on raw bytes and does not use the library.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use linerate_proto::{Header, Role};
use linerate_reactor::{
    Context, DriverKind, Handler, ListeningServer, Message, Opened, Options, Remote, Server,
};
use linerate_testkit::Frame;
pub(crate) use linerate_testkit::PATIENCE;

/// A request that opens a WebSocket, with the key of RFC 6455 §1.3.
pub(crate) const REQUEST: &str = "GET /chat HTTP/1.1\r\n\
    Host: example.com\r\n\
    Upgrade: websocket\r\n\
    Connection: Upgrade\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
    Sec-WebSocket-Version: 13\r\n\
    \r\n";

/// The response to [`REQUEST`].
pub(crate) const ACCEPTED: &str = "HTTP/1.1 101 Switching Protocols\r\n\
    Upgrade: websocket\r\n\
    Connection: Upgrade\r\n\
    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\
    \r\n";

/// Echoes each message.
#[derive(Clone)]
pub(crate) struct Echo;

impl Handler for Echo {
    type Data = ();

    fn open(&mut self, _cx: &mut Context<'_>, _opened: Opened<'_>) {}

    fn message(&mut self, (): &mut (), cx: &mut Context<'_>, message: Message<'_>) {
        _ = cx.send(message);
    }
}

/// Returns the driver for the tests of this binary. There is one binary for each driver, which
/// specifies it with its constant `DRIVER`.
pub(crate) fn driver() -> DriverKind {
    match crate::DRIVER.check() {
        Ok(()) => crate::DRIVER,
        Err(missing) => {
            linerate_testkit::skip(format!("{missing}; using the default driver"));
            DriverKind::default()
        }
    }
}

/// A server on its own threads, which is shut down on drop.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) remote: Remote,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Running {
    /// Starts a server with the driver of the test binary. With the default interval it sends no
    /// Pings, which a test that takes long on a busy machine would read instead of its echo.
    pub(crate) fn start<H: Handler>(handler: H, workers: usize, mut options: Options) -> Self {
        options.driver = driver();
        if options.config.ping_interval == Options::default().config.ping_interval {
            options.config.ping_interval = None;
        }
        let server = Server::new().with_workers(workers).with_options(options);
        Self::serve(server.with_route("/chat", handler))
    }

    /// Starts the configured server.
    pub(crate) fn serve(server: Server) -> Self {
        Self::run(server.listen(([127, 0, 0, 1], 0).into()).unwrap())
    }

    /// Starts a server that listens.
    pub(crate) fn run(server: ListeningServer) -> Self {
        let (address, remote) = (server.local_addr(), server.remote());
        let thread = Some(std::thread::spawn(move || server.run()));
        Self {
            address,
            remote,
            thread,
        }
    }

    pub(crate) fn echo() -> Self {
        Self::start(Echo, 1, Options::default())
    }

    /// Waits until the server has stopped.
    pub(crate) fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap().unwrap();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.remote.shut_down();
        if let Some(thread) = self.thread.take() {
            let served = thread.join();
            if !std::thread::panicking() {
                served.unwrap().unwrap();
            }
        }
    }
}

/// The client's end of a connection.
pub(crate) struct Raw<S = TcpStream> {
    pub(crate) stream: S,
}

impl Raw {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self { stream }
    }

    /// Connects and opens a WebSocket.
    pub(crate) fn open(address: SocketAddr) -> Self {
        Self::connect(address).opened()
    }
}

impl<S: Read + Write> Raw<S> {
    /// Opens the WebSocket.
    pub(crate) fn opened(mut self) -> Self {
        self.send(REQUEST.as_bytes());
        assert_eq!(self.read(ACCEPTED.len()), ACCEPTED.as_bytes());
        self
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub(crate) fn read(&mut self, bytes: usize) -> Vec<u8> {
        let mut read = vec![0; bytes];
        self.stream.read_exact(&mut read).unwrap();
        read
    }

    /// Reads up to the end of the stream.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        self.stream.read_to_end(&mut rest).unwrap();
        rest
    }

    /// Reads one frame: its first byte and its payload.
    pub(crate) fn frame(&mut self) -> (u8, Vec<u8>) {
        let mut head = self.read(2);
        head.extend(self.read(Header::bytes(head[1]) - 2));
        let (header, _) = Header::decode(&head).unwrap().unwrap();
        (head[0], self.read(header.payload_bytes as usize))
    }

    /// Sends a text and waits for its echo, so that the server has handled everything sent before.
    pub(crate) fn round_trip(&mut self) {
        self.send(&masked(0x1, b"Spam"));
        assert_eq!(self.frame(), (0x81, b"Spam".to_vec()));
    }
}

/// Returns a whole frame as sent by a client.
pub(crate) fn masked(opcode: u8, payload: &[u8]) -> Vec<u8> {
    Frame::new(opcode, payload).to_role(Role::Server).to_bytes()
}

/// Returns a fragment as sent by a client.
pub(crate) fn fragment(opcode: u8, payload: &[u8], fin: bool) -> Vec<u8> {
    let frame = Frame::new(opcode, payload).with_fin(fin);
    frame.to_role(Role::Server).to_bytes()
}

/// Returns a whole frame as sent by the server.
pub(crate) fn unmasked(opcode: u8, payload: &[u8]) -> Vec<u8> {
    Frame::new(opcode, payload).to_bytes()
}

/// Returns a Close frame as sent by the server.
pub(crate) fn close(code: u16) -> Vec<u8> {
    unmasked(0x8, &code.to_be_bytes())
}

/// Waits until the condition is true.
pub(crate) fn wait_until(mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(
            started.elapsed() < PATIENCE,
            "the condition did not become true"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}
