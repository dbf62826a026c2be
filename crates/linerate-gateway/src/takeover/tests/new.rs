//! A gateway that takes over, and a process that runs and fails at some step.

use std::{net::TcpListener, os::fd::AsFd};

use linerate_testkit::PATIENCE;
use tokio::{net::UnixStream, time::timeout};

use super::stage::{Stage, ask, check_serves};
use crate::{
    Gateway,
    server::EndpointKind,
    takeover::{
        TakeoverSocket,
        join::{this_process, with_causes},
        link::Link,
        message::{Message, Offer, Welcome},
    },
};

/// An old process that does what a test says.
struct Peer {
    socket: TakeoverSocket,
    listener: TcpListener,
}

impl Peer {
    fn new(stage: &Stage) -> Self {
        Self {
            socket: TakeoverSocket::bind(&stage.path()).unwrap(),
            listener: TcpListener::bind("127.0.0.1:0").unwrap(),
        }
    }

    fn welcome(&self) -> Message {
        let address = self.listener.local_addr().unwrap();
        Message::Welcome(Welcome {
            protocol: 1,
            state: 1,
            process: this_process(),
            offers: vec![Offer {
                kind: Some(EndpointKind::Clients),
                configured: ([127, 0, 0, 1], 0).into(),
                address,
                sockets: 1,
            }],
        })
    }

    /// Follows the protocol up to a number of messages, then closes the connection.
    async fn follow(&self, count: usize) {
        let mut link = Link::new(self.socket.accept().await.unwrap());
        let listeners = Message::Listeners { offer: 0 };
        let steps = [
            None,
            Some(self.welcome()),
            None,
            Some(listeners.clone()),
            None,
        ];
        for step in steps.into_iter().take(count) {
            match step {
                None => drop(link.receive().await.unwrap()),
                Some(message) => {
                    let descriptor = [self.listener.as_fd()];
                    let descriptors = &descriptor[..usize::from(message == listeners)];
                    link.send(&message, descriptors).await.unwrap();
                }
            }
        }
    }
}

#[tokio::test]
async fn a_new_process_never_accepts_unless_the_old_one_commits() {
    let stage = Stage::new();
    for count in 0..=5 {
        let peer = Peer::new(&stage);
        let joining = async {
            let gateway = Gateway::take_over(stage.config("")).await?;
            let mut running = gateway.start().unwrap();
            // A connection waits in the listener.
            let address = peer.listener.local_addr().unwrap();
            let waiting = tokio::net::TcpStream::connect(address).await.unwrap();
            let result = running.take_over().await;
            peer.listener.set_nonblocking(true).unwrap();
            peer.listener.accept().expect("the connection still waits");
            drop(waiting);
            running.shut_down().await.unwrap();
            result.map_err(crate::BindError::from)
        };
        let (error, ()) = tokio::join!(joining, peer.follow(count));
        let text = with_causes(&error.unwrap_err());
        assert!(
            text.contains("the running process continues to serve"),
            "{count}: {text}"
        );
        assert!(
            text.contains("closed by the other process"),
            "{count}: {text}"
        );
    }
}

#[tokio::test]
async fn sockets_that_do_not_fit_are_refused() {
    let stage = Stage::new();
    let peer = Peer::new(&stage);
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let lying = async {
        let mut link = Link::new(peer.socket.accept().await.unwrap());
        link.receive().await.unwrap();
        link.send(&peer.welcome(), &[]).await.unwrap();
        link.receive().await.unwrap();
        let listeners = Message::Listeners { offer: 0 };
        link.send(&listeners, &[other.as_fd()]).await.unwrap();
        match link.receive().await.unwrap() {
            (Message::Refuse { reason }, _) => reason,
            other => panic!("{other:?}"),
        }
    };
    let (gateway, reason) = tokio::join!(Gateway::take_over(stage.config("")), lying);
    let text = with_causes(&gateway.unwrap_err());
    assert!(text.contains("does not listen on 127.0.0.1:"), "{text}");
    assert!(reason.contains("does not listen on 127.0.0.1:"), "{reason}");
}

#[tokio::test]
async fn without_a_running_process_a_gateway_starts_as_usual() {
    let stage = Stage::new();
    let (running, address) = stage.take_over("").await;
    check_serves(address).await;
    UnixStream::connect(stage.path()).await.unwrap();
    running.shut_down().await.unwrap();

    let mut config = stage.config("");
    config.server.takeover_socket = None;
    let text = with_causes(&Gateway::take_over(config).await.unwrap_err());
    assert!(text.contains("requires server.takeover_socket"), "{text}");
}

#[tokio::test]
async fn a_second_process_with_the_same_socket_does_not_start() {
    let stage = Stage::new();
    let (running, address) = stage.start();
    let text = Gateway::bind(stage.config("")).unwrap_err().to_string();
    assert!(text.contains("another process listens on"), "{text}");
    check_serves(address).await;
    running.shut_down().await.unwrap();
}

#[tokio::test]
async fn the_number_of_workers_and_the_addresses_may_change() {
    let stage = Stage::new();
    let (mut running, address) = stage.start();
    for workers in [1, 5, 2] {
        let mut config = stage.config("");
        config.server.workers = workers;
        // Monitoring is at the same address as clients from here on.
        config.server.operations_listen = None;
        let gateway = Gateway::take_over(config).await.unwrap();
        assert_eq!(gateway.address(), address);
        let mut new = gateway.start().unwrap();
        new.take_over().await.unwrap();
        timeout(PATIENCE, running.taken_over()).await.unwrap();
        running.shut_down().await.unwrap();
        for _ in 0..20 {
            let text = ask(address, "/live").await.unwrap();
            assert!(text.ends_with("alive\n"), "{text}");
        }
        running = new;
    }
    let metrics = ask(address, "/metrics").await.unwrap();
    let counted = "linerate_takeovers_total{result=\"succeeded\"} 1";
    assert!(metrics.contains(counted), "{metrics}");

    // Another address: the new process binds it, and no process listens on the old one.
    let mut config = stage.config("");
    config.server.listen = "127.0.0.2:0".parse().unwrap();
    let gateway = Gateway::take_over(config).await.unwrap();
    let other = gateway.address();
    let mut new = gateway.start().unwrap();
    new.take_over().await.unwrap();
    timeout(PATIENCE, running.taken_over()).await.unwrap();
    running.drain().await;
    running.shut_down().await.unwrap();
    check_serves(other).await;
    let refused = ask(address, "/live").await.unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    new.shut_down().await.unwrap();
}
