//! A connection to a server that can be closed or silenced.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

/// A TCP proxy in front of a server.
pub(crate) struct Proxy {
    address: SocketAddr,
    connections: Arc<Mutex<JoinSet<()>>>,
    is_silent: watch::Sender<bool>,
}

impl Proxy {
    /// Starts a proxy in front of the local port `to`.
    pub(crate) async fn start(to: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(Mutex::new(JoinSet::new()));
        let is_silent = watch::Sender::new(false);
        let (accepted, silence) = (Arc::clone(&connections), is_silent.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let forwarded = forward(client, to, silence.subscribe());
                accepted.lock().unwrap().spawn(forwarded);
            }
        });
        Self {
            address,
            connections,
            is_silent,
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Closes all current connections.
    pub(crate) fn cut(&self) {
        self.connections.lock().unwrap().abort_all();
    }

    /// Silences all current connections permanently, but keeps them open. New connections work.
    pub(crate) fn silence(&self) {
        self.is_silent.send_replace(true);
        self.is_silent.send_replace(false);
    }
}

async fn forward(mut client: TcpStream, to: u16, mut silence: watch::Receiver<bool>) {
    silence.mark_unchanged();
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", to)).await else {
        return;
    };
    tokio::select! {
        _ = copy_bidirectional(&mut client, &mut server) => (),
        _ = silence.changed() => std::future::pending().await,
    }
}
