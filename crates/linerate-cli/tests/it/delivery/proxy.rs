//! A network that can be cut, silenced, slowed down, half-closed, and redirected.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU16, Ordering},
    },
    time::Duration,
};

use socket2::SockRef;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time::sleep,
};

/// How often a slow connection forwards data.
const SLICE: Duration = Duration::from_millis(50);

/// Maximum number of bytes in a read.
const READ_MAX: usize = 64 << 10;

/// A TCP proxy in front of a local port.
pub(crate) struct Proxy {
    address: SocketAddr,
    connections: Arc<Mutex<JoinSet<()>>>,
    is_cut: Arc<AtomicBool>,
    /// The port that new connections are forwarded to.
    to: Arc<AtomicU16>,
    weather: watch::Sender<Weather>,
}

/// How the proxy treats its connections.
#[derive(Clone, Copy, Debug, Default)]
struct Weather {
    /// True if nothing is forwarded and nothing is closed.
    is_silent: bool,
    /// Maximum number of bytes per second in each direction of a connection.
    rate_max: Option<usize>,
    /// How often the server's half of every connection has been closed.
    half_closed: u64,
}

impl Proxy {
    pub(crate) async fn start(to: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Self {
            address: listener.local_addr().unwrap(),
            connections: Arc::default(),
            is_cut: Arc::default(),
            to: Arc::new(AtomicU16::new(to)),
            weather: watch::Sender::default(),
        };
        let (connections, is_cut) = (Arc::clone(&proxy.connections), Arc::clone(&proxy.is_cut));
        let (to, weather) = (Arc::clone(&proxy.to), proxy.weather.subscribe());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if !is_cut.load(Ordering::SeqCst) {
                    let forward = forward(client, to.load(Ordering::SeqCst), weather.clone());
                    connections.lock().unwrap().spawn(forward);
                }
            }
        });
        proxy
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Forwards new connections to another port, and closes the existing ones.
    pub(crate) fn lead_to(&self, port: u16) {
        self.to.store(port, Ordering::SeqCst);
        self.cut();
        self.mend();
    }

    /// Forwards new connections to another port, and keeps the existing ones.
    pub(crate) fn lead_new_to(&self, port: u16) {
        self.to.store(port, Ordering::SeqCst);
    }

    /// Closes all connections, and each new one immediately, until [`mend`](Self::mend) is called.
    pub(crate) fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
        self.connections.lock().unwrap().abort_all();
    }

    /// Forwards nothing and closes nothing until [`mend`](Self::mend) is called.
    pub(crate) fn silence(&self) {
        self.weather.send_modify(|weather| weather.is_silent = true);
    }

    /// Forwards at most `rate_max` bytes per second in each direction of each connection, until
    /// [`mend`](Self::mend) is called.
    pub(crate) fn slow_down(&self, rate_max: usize) {
        let slow = |weather: &mut Weather| weather.rate_max = Some(rate_max);
        self.weather.send_modify(slow);
    }

    /// Closes the server's half of all existing connections. The other half stays open until the
    /// client closes it.
    pub(crate) fn half_close(&self) {
        self.weather.send_modify(|weather| weather.half_closed += 1);
    }

    pub(crate) fn mend(&self) {
        self.is_cut.store(false, Ordering::SeqCst);
        self.weather.send_modify(|weather| {
            weather.is_silent = false;
            weather.rate_max = None;
        });
    }
}

async fn forward(client: TcpStream, to: u16, weather: watch::Receiver<Weather>) {
    if let Ok(server) = TcpStream::connect(("127.0.0.1", to)).await {
        for stream in [&client, &server] {
            let socket = SockRef::from(stream);
            // With small buffers, data waits at its sender, which must handle that.
            _ = socket.set_recv_buffer_size(READ_MAX);
            _ = socket.set_send_buffer_size(READ_MAX);
        }
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        let back = pass_back(from_server, to_client, weather.clone());
        // When one side ends, both do.
        tokio::select! {
            _ = pass(from_client, to_server, weather) => {}
            _ = back => {}
        }
    }
}

/// Forwards data from the server until its half is closed.
async fn pass_back(
    from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut weather: watch::Receiver<Weather>,
) -> io::Result<()> {
    let before = weather.borrow().half_closed;
    let passing = pass(from, &mut to, weather.clone());
    tokio::select! {
        ended = passing => return ended,
        _ = weather.wait_for(|weather| weather.half_closed > before) => {}
    }
    to.shutdown().await?;
    // The other half decides when the connection ends.
    std::future::pending().await
}

async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut weather: watch::Receiver<Weather>,
) -> io::Result<()> {
    let mut bytes = vec![0; READ_MAX];
    loop {
        let rate_max = weather.borrow().rate_max;
        let slice = rate_max.map(|rate| rate * SLICE.as_millis() as usize / 1_000);
        let read_max = slice.unwrap_or(READ_MAX).clamp(1, READ_MAX);
        let read = from.read(&mut bytes[..read_max]).await?;
        // An error means that the proxy was dropped.
        let passes = weather.wait_for(|weather| !weather.is_silent).await.is_ok();
        if read == 0 || !passes {
            return Ok(());
        }
        to.write_all(&bytes[..read]).await?;
        if rate_max.is_some() {
            sleep(SLICE).await;
        }
    }
}
