//! A gateway that runs, and a process that wants to take over and fails at some step.

use std::time::Duration;

use linerate_testkit::PATIENCE;
use tokio::{io::AsyncWriteExt, net::UnixStream, time::timeout};

use super::stage::{Stage, check_serves};
use crate::takeover::{
    join::this_process,
    link::{Link, LinkError},
    message::{Hello, Message},
};

/// A new process that does what a test says.
struct Peer {
    link: Link,
}

impl Peer {
    async fn connect(stage: &Stage) -> Self {
        let stream = UnixStream::connect(stage.path()).await.unwrap();
        Self {
            link: Link::new(stream),
        }
    }

    async fn send(&self, message: Message) {
        self.link.send(&message, &[]).await.unwrap();
    }

    async fn receive(&mut self) -> (Message, usize) {
        let received = timeout(PATIENCE, self.link.receive()).await.unwrap();
        let (message, descriptors) = received.unwrap();
        (message, descriptors.len())
    }

    /// Follows the protocol up to a number of messages.
    async fn follow(&mut self, count: usize) {
        let steps = [
            Some(hello((1, 1))),
            None,
            Some(Message::Ready { wanted: vec![0, 1] }),
            None,
            None,
            Some(Message::Prepared),
            None,
        ];
        for step in steps.into_iter().take(count) {
            match step {
                Some(message) => self.send(message).await,
                None => drop(self.receive().await),
            }
        }
    }

    /// Returns the reason why the gateway refuses.
    async fn refusal(&mut self) -> String {
        match self.receive().await {
            (Message::Refuse { reason }, 0) => reason,
            other => panic!("{other:?}"),
        }
    }
}

fn hello(protocol: (u16, u16)) -> Message {
    Message::Hello(Hello {
        protocol,
        state: (1, 1),
        process: this_process(),
    })
}

#[tokio::test]
async fn a_process_that_dies_in_any_step_before_commit_leaves_the_old_one_serving() {
    let stage = Stage::new();
    let (running, address) = stage.start();
    for count in 0..6 {
        let mut peer = Peer::connect(&stage).await;
        peer.follow(count).await;
        drop(peer);
        check_serves(address).await;
    }
    // The old process can still be taken over.
    let (new, same) = stage.take_over("").await;
    assert_eq!(address, same);
    let successor = timeout(PATIENCE, running.taken_over()).await.unwrap();
    assert_eq!(successor, std::process::id());
    running.shut_down().await.unwrap();
    check_serves(address).await;
    new.shut_down().await.unwrap();
    assert!(!stage.path().exists());
}

#[tokio::test]
async fn a_process_that_dies_after_prepared_leaves_one_that_serves_or_one_that_ends() {
    let stage = Stage::new();
    let (running, address) = stage.start();
    let mut peer = Peer::connect(&stage).await;
    peer.follow(6).await;
    // From here on, `commit` has been sent, or cannot be sent any longer.
    let refused = peer.link.refuse_more();
    let committed = match peer.link.receive().await {
        Ok((Message::Commit, _)) => true,
        Err(LinkError::Closed) => false,
        other => panic!("{other:?}"),
    };
    refused.unwrap();
    drop(peer);
    let taken_over = timeout(Duration::from_secs(3), running.taken_over()).await;
    assert_eq!(taken_over.is_ok(), committed);
    if !committed {
        check_serves(address).await;
    }
    running.shut_down().await.unwrap();
}

#[tokio::test]
async fn after_commit_the_old_process_never_accepts_again() {
    let stage = Stage::new();
    let (running, address) = stage.start();
    let mut peer = Peer::connect(&stage).await;
    peer.follow(7).await;
    drop(peer);
    timeout(PATIENCE, running.taken_over()).await.unwrap();
    let closed = async {
        while tokio::net::TcpStream::connect(address).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, closed).await.unwrap();
    // The supervisor starts the new process again, although its socket is still there.
    let (again, _) = stage.take_over("").await;
    running.drain().await;
    running.shut_down().await.unwrap();
    again.shut_down().await.unwrap();
}

#[tokio::test]
async fn listeners_arrive_with_their_sockets() {
    let stage = Stage::new();
    let (running, address) = stage.start();
    let mut peer = Peer::connect(&stage).await;
    peer.send(hello((1, 9))).await;
    let (Message::Welcome(welcome), 0) = peer.receive().await else {
        panic!("no welcome");
    };
    let sockets: Vec<_> = welcome.offers.iter().map(|offer| offer.sockets).collect();
    assert_eq!(sockets, [2, 1]);
    assert_eq!(welcome.offers[0].address, address);
    peer.send(Message::Ready { wanted: vec![1] }).await;
    assert_eq!(peer.receive().await, (Message::Listeners { offer: 1 }, 1));
    drop(peer);
    running.shut_down().await.unwrap();
}

#[tokio::test]
async fn garbage_wrong_versions_and_wrong_messages_are_refused_with_the_reason() {
    let stage = Stage::new();
    let (running, address) = stage.start();
    let mut garbage = UnixStream::connect(stage.path()).await.unwrap();
    garbage.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let reason = Peer {
        link: Link::new(garbage),
    }
    .refusal()
    .await;
    assert!(reason.contains("is the peer linerate?"), "{reason}");

    let mut peer = Peer::connect(&stage).await;
    peer.send(hello((2, 3))).await;
    let reason = peer.refusal().await;
    assert!(reason.contains("protocol versions 2 to 3"), "{reason}");

    let mut peer = Peer::connect(&stage).await;
    peer.send(Message::Prepared).await;
    let reason = peer.refusal().await;
    assert_eq!(reason, "message `prepared` arrived in place of `hello`");

    let mut peer = Peer::connect(&stage).await;
    let file = std::fs::File::open("/dev/null").unwrap();
    let descriptor = std::os::fd::AsFd::as_fd(&file);
    peer.link.send(&hello((1, 1)), &[descriptor]).await.unwrap();
    let reason = peer.refusal().await;
    assert!(reason.contains("1 descriptors in place of 0"), "{reason}");

    let mut peer = Peer::connect(&stage).await;
    peer.follow(2).await;
    peer.send(Message::Refuse {
        reason: "broker unavailable".into(),
    })
    .await;
    let reason = peer.refusal().await;
    assert!(reason.contains("broker unavailable"), "{reason}");
    check_serves(address).await;
    running.shut_down().await.unwrap();
}

#[tokio::test]
async fn a_peer_that_says_nothing_does_not_keep_others_from_taking_over() {
    let stage = Stage::new();
    let (running, _) = stage.start();
    let _silent = Peer::connect(&stage).await;
    let (new, address) = stage.take_over("").await;
    timeout(PATIENCE, running.taken_over()).await.unwrap();
    running.shut_down().await.unwrap();
    check_serves(address).await;
    new.shut_down().await.unwrap();
}
