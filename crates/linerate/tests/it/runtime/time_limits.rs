//! Deadlines, with the timers of smol.

use std::time::Duration;

use linerate::{Error, ProtocolError, dial::DialError, dial::Phase};

use super::*;

const SOON: Duration = Duration::from_millis(20);

/// Returns options with which a silent peer is pinged, and timed out soon.
fn impatient() -> Options {
    let mut options = Options::default();
    options.config.ping_interval = Some(SOON);
    options.config.ping_timeout = SOON;
    options.config.close_timeout = SOON;
    options
}

#[test]
fn silent_peer_is_pinged_and_timed_out() {
    run(async {
        for role in [Role::Client, Role::Server] {
            let (mut ws, mut peer) = with_peer(role, impatient());
            let error = ws.recv().await.unwrap_err();
            let expected = ProtocolError::KeepaliveTimeout { timeout: SOON };
            assert!(matches!(error, Error::Protocol(error) if error == expected));
            assert_eq!(peer.frame().await, Some(0x89));
            assert_eq!(peer.frame().await, Some(0x88));
        }
    });
}

#[test]
fn server_pings_and_times_out_silent_clients_with_its_shared_timer() {
    run(async {
        let server = Running::echo(impatient()).await;
        let mut stream = server.stream().await;
        stream.write_all(REQUEST.as_bytes()).await.unwrap();
        let mut head = vec![0; ACCEPTED.len()];
        stream.read_exact(&mut head).await.unwrap();
        assert_eq!(head, ACCEPTED.as_bytes());
        let mut frames = Vec::new();
        stream.read_to_end(&mut frames).await.unwrap();
        let close = 2 + usize::from(frames[1]);
        assert_eq!((frames[0], frames[close]), (0x89, 0x88));
    });
}

#[test]
fn answering_peer_is_pinged_again() {
    run(async {
        let mut options = impatient();
        options.config.ping_timeout = PATIENCE;
        let (mut ws, mut peer) = with_peer(Role::Server, options);
        // Without a receiver, the driver reads, and each answer moves its timer to an earlier time.
        for _ in 0..5 {
            assert_eq!(peer.frame().await, Some(0x89));
            peer.send(Frame::new(0xA, b"")).await;
        }
        peer.send(Frame::new(0x1, b"Spam")).await;
        assert_eq!(ws.recv().await.unwrap(), Some("Spam".into()));
    });
}

#[test]
fn closing_handshake_ends_without_an_answer() {
    run(async {
        let mut options = Options::default();
        options.config.close_timeout = SOON;
        let (mut ws, mut peer) = with_peer(Role::Client, options);
        let closed = ws.close(CloseCode::NORMAL, "").await.unwrap();
        assert!(!closed.clean, "{closed:?}");
        assert_eq!(peer.frame().await, Some(0x88));
        assert_eq!(peer.frame().await, None);
    });
}

#[test]
fn opening_handshakes_have_a_time_limit() {
    run(async {
        let mut options = Options::default();
        options.handshake_timeout = SOON;

        let (ours, _silent) = tokio::io::duplex(4_096);
        let client = Client::new()
            .with_options(options.clone())
            .with_runtime(Smol);
        let error = client.connect_over(ours, "ws://localhost/").await;
        assert!(matches!(
            error.unwrap_err(),
            Error::Dial(DialError::TimedOut {
                phase: Phase::Handshake,
                limit: SOON,
                ..
            })
        ));

        let (ours, mut silent) = tokio::io::duplex(4_096);
        let server = Server::new().with_options(options).with_runtime(Smol);
        let accepting = server.accept(ours);
        let reading = async {
            let mut answer = String::new();
            silent.read_to_string(&mut answer).await.unwrap();
            answer
        };
        let (accepted, answer) = futures_util::future::join(accepting, reading).await;
        assert!(matches!(accepted.unwrap_err(), Error::Handshake(_)));
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");

        let (ours, mut undecided) = tokio::io::duplex(4_096);
        undecided.write_all(REQUEST.as_bytes()).await.unwrap();
        let _incoming = server.accept(ours).await.unwrap();
        let mut answer = [0; 13];
        undecided.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 503 ");
    });
}
