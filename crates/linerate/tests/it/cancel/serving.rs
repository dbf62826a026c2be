//! The future of a server: open connections survive when it is dropped.

use std::sync::Arc;

use linerate::{
    Client, Server, WebSocket,
    tls::{self, rustls::ServerConfig},
};
use tokio::{net::TcpListener, sync::oneshot};

use super::{WAYS_TO_OPEN, Way};
use crate::{
    polls::{for_all_polls, poll_times},
    raw::in_time,
    support::{echo, outlives},
    tls::certificate,
};

/// A server on one transport, and a client for it.
struct Service {
    tls: Option<Arc<ServerConfig>>,
    client: Client,
}

impl Service {
    fn of(way: Way) -> Self {
        let client = Client::new();
        let (tls, client) = match way {
            Way::Http1 => (None, client),
            Way::Http2 { .. } => (None, client.with_http2_prior_knowledge()),
            Way::Tls { .. } => {
                let (config, roots) = certificate("localhost");
                let trusting = Arc::new(tls::client_config(roots));
                (Some(Arc::new(config)), client.with_tls(trusting))
            }
        };
        Self { tls, client }
    }

    fn server(&self) -> Server {
        match &self.tls {
            Some(config) => Server::new().with_tls(config.clone()),
            None => Server::new(),
        }
    }

    /// Opens a connection, or returns `None` if the server is already gone.
    async fn open(&self, port: u16) -> Option<WebSocket> {
        let scheme = if self.tls.is_some() { "wss" } else { "ws" };
        let url = format!("{scheme}://localhost:{port}/");
        in_time(self.client.connect(&url)).await.ok()
    }
}

#[tokio::test]
async fn serve_dropped_after_any_number_of_polls_leaves_open_connections_alone() {
    for way in WAYS_TO_OPEN {
        let service = Service::of(way);
        let mut went_on = 0;
        for_all_polls(0, async |polls| {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let port = listener.local_addr().unwrap().port();
            let (leave, left) = oneshot::channel();
            let serving = service.server().serve(listener, echo, async {
                _ = left.await;
            });
            let served = tokio::spawn(poll_times(serving, polls));
            let opened = service.open(port).await;
            _ = leave.send(());
            let (goes_on, dropped) = outlives(opened, served).await;
            went_on += usize::from(goes_on);
            dropped
        })
        .await;
        assert!(went_on > 0, "{way:?}: no connection outlived its server");
    }
}
