//! Control frames and deadlines while the application is busy or idle.

use linerate_proto::engine::Initiator;
use tokio::time::Instant;

use super::{
    inbox::{Control, Parsed},
    *,
};

const SECOND: Duration = Duration::from_secs(1);

/// Returns options with a keepalive Ping after 10 s of silence, 5 s to answer it and 3 s to close.
fn keepalive() -> Options {
    let mut options = Options::default();
    options.config.ping_interval = Some(10 * SECOND);
    options.config.ping_timeout = 5 * SECOND;
    options.config.close_timeout = 3 * SECOND;
    options
}

/// An application that holds its connection and never uses it.
async fn idle(ws: WebSocket) {
    std::future::pending::<()>().await;
    drop(ws);
}

#[tokio::test(start_paused = true)]
async fn k04_pings_are_answered_although_nobody_receives() {
    for place in PLACES {
        let (mut peer, running) = place.start(64, quiet(), idle);
        for payload in [&b"1"[..], b"", &[7; 125]] {
            peer.send(Frame::new(0x9, payload)).await;
            let pong = in_time(peer.frame()).await;
            assert_eq!(pong, Some((0x8A, payload.to_vec())), "{place:?}");
        }
        running.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_ping_in_front_of_a_message_is_answered_although_nobody_receives_again() {
    for place in PLACES {
        let application = |mut ws: WebSocket| async move {
            ws.recv().await.expect("the peer is honest");
            idle(ws).await;
        };
        let (mut peer, running) = place.start(64, quiet(), application);
        // Wait until the application waits for the message.
        for _ in 0..10 {
            yield_now().await;
        }
        let frames = [Frame::new(0x9, b"?"), Frame::new(0x1, b"Spam")];
        let wire = peer.writer.wire(frames);
        peer.writer.send_bytes(&wire).await;
        assert_eq!(
            in_time(peer.frame()).await,
            Some((0x8A, b"?".to_vec())),
            "{place:?}"
        );
        running.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_close_is_answered_although_nobody_receives() {
    for place in PLACES {
        let (mut peer, running) = place.start(64, quiet(), idle);
        peer.send(close(3001)).await;
        let answer = in_time(peer.frame()).await;
        let code = 3001_u16.to_be_bytes().to_vec();
        assert_eq!(answer, Some((0x88, code)), "{place:?}");
        running.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn messages_before_a_close_are_still_received() {
    for place in PLACES {
        let application = |mut ws: WebSocket| async move {
            tokio::time::sleep(SECOND).await;
            let mut seen = Vec::new();
            while let Some(message) = ws.recv().await? {
                seen.push(message);
            }
            let closed = ws.closed().expect("it is over");
            Result::<_>::Ok((seen, closed))
        };
        let (mut peer, running) = place.start(64, quiet(), application);
        peer.send(Frame::new(0x1, b"one")).await;
        peer.send(Frame::new(0x2, b"two")).await;
        peer.send(Frame::new(0x8, b"\x03\xe8bye")).await;
        in_time(peer.frame()).await;
        let ended = in_time(running).await.expect("it ends");
        let (seen, closed) = ended.expect("a clean end");
        assert_eq!(seen, ["one".into(), Message::from(b"two")], "{place:?}");
        assert_eq!(
            (closed.code, closed.clean, closed.reason()),
            (1000, true, "bye")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_peer_is_pinged_and_given_up() {
    for place in PLACES {
        let start = Instant::now();
        let application = |mut ws: WebSocket| async move { (ws.recv().await, ws.recv().await) };
        let (mut peer, running) = place.start(64, keepalive(), application);
        let ping = in_time(peer.frame()).await.expect("a Ping");
        assert_eq!(ping.0, 0x89);
        let after = start.elapsed();
        assert!(after >= 10 * SECOND && after < 11 * SECOND, "{after:?}");
        assert_eq!(
            in_time(peer.frame()).await,
            Some((0x88, 1011_u16.to_be_bytes().to_vec()))
        );
        let after = start.elapsed();
        assert!(after >= 15 * SECOND && after < 16 * SECOND, "{after:?}");
        let (first, second) = in_time(running).await.expect("it ends");
        let error = first.expect_err("the peer is gone");
        assert!(
            matches!(
                error,
                Error::Protocol(linerate_proto::ProtocolError::KeepaliveTimeout { .. })
            ),
            "{error}"
        );
        assert_eq!(second.expect("an error is told once"), None);
        assert_eq!(in_time(peer.frame()).await, None, "{place:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answered_ping_keeps_the_connection() {
    for place in PLACES {
        let (mut peer, running) = place.start(64, keepalive(), idle);
        for _ in 0..5 {
            let (first, payload) = in_time(peer.frame()).await.expect("a Ping");
            assert_eq!(first, 0x89, "{place:?}");
            tokio::time::sleep(4 * SECOND).await;
            peer.send(Frame::new(0xA, &payload)).await;
        }
        running.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_peer_is_given_up_while_a_send_is_blocked() {
    for place in PLACES {
        let start = Instant::now();
        let application = |mut ws: WebSocket| async move {
            loop {
                if let Err(error) = ws.send(vec![0; 1_000]).await {
                    return error;
                }
            }
        };
        // The peer does not read, write or close.
        let (peer, running) = place.start(64, keepalive(), application);
        let error = in_time(running).await.expect("it ends");
        assert!(matches!(error, Error::Send(SendError::Closed)), "{error}");
        let after = start.elapsed();
        assert!(after >= 15 * SECOND && after < 16 * SECOND, "{after:?}");
        drop(peer);
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_sends_while_the_application_does_not_receive_is_not_given_up() {
    for place in PLACES {
        let mut options = keepalive();
        options.recv_queue_bytes_max = 100;
        let application = |mut ws: WebSocket| async move {
            tokio::time::sleep(60 * SECOND).await;
            let mut bytes = 0;
            while let Some(message) = ws.recv().await? {
                bytes += message.len();
            }
            Result::<_>::Ok(bytes)
        };
        let (peer, running) = place.start(64, options, application);
        let Peer {
            reader, mut writer, ..
        } = peer;
        let frames = tokio::spawn(reader.frames());
        for _ in 0..100 {
            writer.send(Frame::new(0x2, &[7; 100])).await;
        }
        writer.send(close(1000)).await;
        let bytes = in_time(running).await.expect("it ends");
        assert_eq!(bytes.expect("a clean end"), 10_000, "{place:?}");
        drop(writer);
        in_time(frames).await.expect("no frame is torn");
    }
}

#[tokio::test(start_paused = true)]
async fn a_close_that_nobody_answers_is_over_in_time() {
    for place in PLACES {
        let start = Instant::now();
        let application = |mut ws: WebSocket| async move {
            let closed = ws.close(CloseCode::NORMAL, "").await.expect("short");
            (closed, ws.recv().await, ws.recv().await)
        };
        let (peer, running) = place.start(64, keepalive(), application);
        let (closed, first, second) = in_time(running).await.expect("it ends");
        assert_eq!((closed.code, closed.clean), (1000, false), "{place:?}");
        assert_eq!(
            (closed.received, closed.initiator),
            (None, Some(Initiator::Local))
        );
        assert!(matches!(first, Err(Error::CloseTimeout { .. })));
        assert_eq!(second.expect("an error is told once"), None);
        let after = start.elapsed();
        assert!(after >= 3 * SECOND && after < 4 * SECOND, "{after:?}");
        drop(peer);
    }
}

#[tokio::test(start_paused = true)]
async fn a_close_behind_blocked_writes_is_over_in_time() {
    for place in PLACES {
        let start = Instant::now();
        let application = |mut ws: WebSocket| async move {
            ws.send(vec![0; 50_000]).await.expect("it is open");
            ws.close(CloseCode::NORMAL, "").await.expect("short")
        };
        let (peer, running) = place.start(64, keepalive(), application);
        let closed = in_time(running).await.expect("it ends");
        assert!(!closed.clean, "{place:?}");
        let after = start.elapsed();
        assert!(after >= 3 * SECOND && after < 4 * SECOND, "{after:?}");
        drop(peer);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_follows_a_close_frame_whatever_arrives_meanwhile() {
    for place in PLACES {
        let application = |mut ws: WebSocket| async move {
            for number in 0..20 {
                ws.send(format!("message {number}")).await?;
            }
            ws.close(CloseCode::NORMAL, "").await
        };
        let (mut peer, running) = place.start(16, quiet(), application);
        for _ in 0..10 {
            yield_now().await;
        }
        peer.send(Frame::new(0x9, b"late")).await;
        for number in 0..20 {
            let frame = in_time(peer.frame()).await;
            let expected = format!("message {number}").into_bytes();
            assert_eq!(frame, Some((0x81, expected)), "{place:?}");
        }
        assert_eq!(in_time(peer.frame()).await.expect("a Close").0, 0x88);
        peer.send(close(1000)).await;
        let closed = in_time(running).await.expect("it ends").expect("short");
        assert!(closed.clean);
        peer.writer.stream.shutdown().await.expect("a pipe");
        assert_eq!(in_time(peer.frame()).await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_ping_that_is_read_behind_our_close_does_not_move_it_ahead() {
    let role = Role::Server;
    let mut engine = Engine::new(Side(role), Arc::default(), Duration::ZERO);
    let mut outbox = Outbox::default();
    outbox
        .push(&mut engine, "first".into())
        .expect("it is open");
    outbox
        .push(&mut engine, "second".into())
        .expect("it is open");
    let closed = engine.close(CloseCode::NORMAL, "", Duration::ZERO);
    closed.expect("no reason is short enough");
    let ping = Frame::new(0x9, b"?").to_role(role).to_bytes();
    let mut inbox = Inbox::new(&ping, Arc::default());
    let next = inbox.next(&mut engine, Mode::Messages);
    assert!(matches!(next, Ok(Parsed::Control(Control::Ping))));

    let (ours, mut theirs) = tokio::io::duplex(64);
    let mut io = Transport::Other(Box::new(ours));
    outbox.take_control(&mut engine);
    let written = std::future::poll_fn(|cx| outbox.poll_write(Pin::new(&mut io), cx)).await;
    let mut wire = vec![0; written.expect("a pipe")];
    theirs.read_exact(&mut wire).await.expect("a pipe");
    assert_eq!(wire, b"\x81\x05first\x81\x06second\x88\x02\x03\xe8");
}

#[tokio::test(start_paused = true)]
async fn what_follows_the_peers_close_is_nothing() {
    for place in PLACES {
        let application = |mut ws: WebSocket| async move {
            let first = ws.recv().await;
            (first, ws.recv().await)
        };
        let (mut peer, running) = place.start(1 << 16, quiet(), application);
        let frames = [
            close(1000),
            Frame::new(0x1, b"late"),
            Frame::new(0x9, b"late"),
            close(1001),
        ];
        let wire = peer.writer.wire(frames);
        peer.writer.send_bytes(&wire).await;
        let (first, second) = in_time(running).await.expect("it ends");
        assert_eq!(first.expect("a clean end"), None);
        assert_eq!(second.expect("a clean end"), None);
        let answer = in_time(peer.frame()).await;
        assert_eq!(answer, Some((0x88, 1000_u16.to_be_bytes().to_vec())));
        peer.writer.stream.shutdown().await.expect("a pipe");
        assert_eq!(in_time(peer.frame()).await, None, "{place:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn k06_an_end_without_a_close_frame_is_abnormal_once() {
    for place in PLACES {
        let application = |mut ws: WebSocket| async move {
            let first = ws.recv().await;
            let second = ws.recv().await;
            let sent = ws.send("too late").await;
            (first, second, sent, ws.closed())
        };
        let (mut peer, running) = place.start(64, quiet(), application);
        // F27: the stream ends in the middle of a message.
        peer.send(Frame::new(0x1, b"un").with_fin(false)).await;
        drop(peer);
        let (first, second, sent, closed) = in_time(running).await.expect("it ends");
        assert!(matches!(first, Err(Error::Abnormal)), "{place:?}");
        assert_eq!(second.expect("an error is told once"), None);
        assert!(matches!(sent, Err(Error::Send(SendError::Closed))));
        let closed = closed.expect("it is over");
        assert_eq!((closed.code, closed.clean), (1006, false));
    }
}

#[tokio::test(start_paused = true)]
async fn a_reset_behind_the_peers_close_is_no_error() {
    for place in PLACES {
        let application = |mut ws: WebSocket| async move {
            tokio::time::sleep(SECOND).await;
            let first = ws.recv().await;
            (first, ws.recv().await)
        };
        let (mut peer, running) = place.start(64, quiet(), application);
        peer.send(Frame::new(0x1, b"last")).await;
        peer.send(close(1000)).await;
        // A pipe whose other end is gone breaks, like a socket that was reset.
        drop(peer);
        let (first, second) = in_time(running).await.expect("it ends");
        assert_eq!(first.expect("it arrived"), Some("last".into()), "{place:?}");
        assert_eq!(second.expect("the peer had closed"), None, "{place:?}");
    }
}
