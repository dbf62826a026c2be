//! A way from a node to its broker that can be cut.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// A TCP proxy before a local port.
pub(crate) struct Proxy {
    address: SocketAddr,
    connections: Arc<Mutex<JoinSet<()>>>,
    is_cut: Arc<AtomicBool>,
}

impl Proxy {
    pub(crate) async fn start(to: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Self {
            address: listener.local_addr().unwrap(),
            connections: Arc::default(),
            is_cut: Arc::default(),
        };
        let (connections, is_cut) = (Arc::clone(&proxy.connections), Arc::clone(&proxy.is_cut));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if !is_cut.load(Ordering::SeqCst) {
                    connections.lock().unwrap().spawn(forward(client, to));
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

    pub(crate) fn mend(&self) {
        self.is_cut.store(false, Ordering::SeqCst);
    }
}

async fn forward(mut client: TcpStream, to: u16) {
    if let Ok(mut server) = TcpStream::connect(("127.0.0.1", to)).await {
        // Whichever side ends, both do.
        let _ = copy_bidirectional(&mut client, &mut server).await;
    }
}
