//! A way from a node to its broker that can be cut, or fall silent.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

/// A TCP proxy before a local port.
pub(crate) struct Proxy {
    address: SocketAddr,
    connections: Arc<Mutex<JoinSet<()>>>,
    is_cut: Arc<AtomicBool>,
    is_silent: watch::Sender<bool>,
}

impl Proxy {
    pub(crate) async fn start(to: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Self {
            address: listener.local_addr().unwrap(),
            connections: Arc::default(),
            is_cut: Arc::default(),
            is_silent: watch::Sender::new(false),
        };
        let (connections, is_cut) = (Arc::clone(&proxy.connections), Arc::clone(&proxy.is_cut));
        let is_silent = proxy.is_silent.subscribe();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if !is_cut.load(Ordering::SeqCst) {
                    let forward = forward(client, to, is_silent.clone());
                    connections.lock().unwrap().spawn(forward);
                }
            }
        });
        proxy
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Closes all connections, and each new one at once, until [`mend`](Self::mend).
    pub(crate) fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
        self.connections.lock().unwrap().abort_all();
    }

    /// Passes nothing on, and closes nothing, until [`mend`](Self::mend).
    pub(crate) fn silence(&self) {
        self.is_silent.send_replace(true);
    }

    pub(crate) fn mend(&self) {
        self.is_cut.store(false, Ordering::SeqCst);
        self.is_silent.send_replace(false);
    }
}

async fn forward(client: TcpStream, to: u16, is_silent: watch::Receiver<bool>) {
    if let Ok(server) = TcpStream::connect(("127.0.0.1", to)).await {
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        // Whichever side ends, both do.
        tokio::select! {
            _ = pass(from_client, to_server, is_silent.clone()) => {}
            _ = pass(from_server, to_client, is_silent) => {}
        }
    }
}

async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut is_silent: watch::Receiver<bool>,
) -> io::Result<()> {
    let mut bytes = vec![0; 64 << 10];
    loop {
        let read = from.read(&mut bytes).await?;
        // An error means that the proxy is gone.
        let passes = is_silent.wait_for(|is_silent| !is_silent).await.is_ok();
        if read == 0 || !passes {
            return Ok(());
        }
        to.write_all(&bytes[..read]).await?;
    }
}
