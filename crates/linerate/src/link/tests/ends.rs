//! What `closed` returns for each way in which a connection ends, in both roles.

use linerate_proto::engine::Initiator;

use super::*;
use crate::{Closed, Message};

/// Returns the code and the reason of a Close frame.
fn content(frame: Option<crate::CloseFrame>) -> Option<(Option<u16>, Box<str>)> {
    frame.map(|frame| (frame.code.map(CloseCode::as_u16), frame.reason))
}

/// An application that receives once, and looks at once how the connection ended.
async fn receive(mut ws: WebSocket) -> (Result<Option<Message>>, Option<Closed>) {
    let received = ws.recv().await;
    let closed = ws.closed();
    assert_eq!(ws.close(CloseCode::NORMAL, "late").await.ok(), closed);
    assert_eq!(ws.closed(), closed);
    (received, closed)
}

#[tokio::test(start_paused = true)]
async fn the_peers_close_is_known_when_recv_returns_none_wherever_it_was_cut() {
    for place in PLACES {
        let wire = |role| {
            let frame = Frame::new(0x8, b"\x03\xf0no token");
            frame.to_role(role).to_bytes()
        };
        for cut in 0..wire(place.role()).len() {
            let (mut peer, running) = place.start(64, quiet(), receive);
            let wire = wire(place.role());
            peer.writer.send_bytes(&wire[..cut]).await;
            for _ in 0..5 {
                yield_now().await;
            }
            peer.writer.send_bytes(&wire[cut..]).await;
            assert_eq!(
                in_time(peer.frame()).await,
                Some((0x88, b"\x03\xf0".to_vec()))
            );
            drop(peer);
            let (received, closed) = in_time(running).await.expect("it ends");
            assert_eq!(received.expect("a clean end"), None);
            let closed = closed.expect("recv has returned");
            assert_eq!((closed.code, closed.clean), (1008, true), "{place:?}");
            assert_eq!(closed.reason(), "no token");
            assert_eq!(closed.initiator, Some(Initiator::Peer));
            assert_eq!(
                content(closed.received),
                Some((Some(1008), "no token".into()))
            );
            assert_eq!(content(closed.sent), Some((Some(1008), "".into())));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn our_code_is_known_when_recv_returns_a_violation() {
    let mut options = quiet();
    options.config.limits.message_bytes_max = 3;
    for place in PLACES {
        for (frame, code) in [
            (Frame::new(0x3, b""), 1002),
            (Frame::new(0x1, b"\xff"), 1007),
            (Frame::new(0x1, b"four"), 1009),
        ] {
            let (mut peer, running) = place.start(64, options.clone(), receive);
            peer.send(frame).await;
            // Input that follows is ignored, also a Close frame. Whether a message is too long is
            // known only when the application receives, which may be after the Close frame.
            if code != 1009 {
                peer.send(close(1000)).await;
            }
            assert_eq!(in_time(peer.frame()).await.expect("a Close").0, 0x88);
            drop(peer);
            let (received, closed) = in_time(running).await.expect("it ends");
            assert!(matches!(received, Err(Error::Protocol(_))), "{place:?}");
            let closed = closed.expect("recv has returned");
            assert_eq!((closed.code, closed.clean), (code, false), "{place:?}");
            assert_eq!(closed.received, None);
            assert_eq!(closed.initiator, Some(Initiator::Local));
            assert_eq!(content(closed.sent), Some((Some(code), "".into())));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_end_without_close_frames_is_1006() {
    for place in PLACES {
        let (peer, running) = place.start(64, quiet(), receive);
        drop(peer);
        let (received, closed) = in_time(running).await.expect("it ends");
        assert!(matches!(received, Err(Error::Abnormal)));
        assert_eq!(closed, Some(Closed::new(None, None)), "{place:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_peer_is_closed_with_1011() {
    let mut options = quiet();
    options.config.ping_interval = Some(Duration::from_secs(10));
    for place in PLACES {
        let (peer, running) = place.start(64, options.clone(), receive);
        let (received, closed) = in_time(running).await.expect("it ends");
        assert!(matches!(received, Err(Error::Protocol(_))));
        let closed = closed.expect("recv has returned");
        assert_eq!((closed.code, closed.clean), (1011, false), "{place:?}");
        drop(peer);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_known_before_the_peer_answers_and_then_both_halves_know_it() {
    for place in PLACES {
        let application = |ws: WebSocket| async move {
            let (sender, mut receiver) = ws.split();
            sender
                .start_close(CloseCode::NORMAL, "ours")
                .expect("short");
            assert_eq!((sender.closed(), receiver.closed()), (None, None));
            assert_eq!(receiver.recv().await.expect("a clean end"), None);
            assert_eq!(sender.closed(), receiver.closed());
            receiver.closed().expect("recv has returned")
        };
        let (mut peer, running) = place.start(64, quiet(), application);
        assert_eq!(in_time(peer.frame()).await.expect("a Close").0, 0x88);
        peer.send(Frame::new(0x8, b"\x03\xe9theirs")).await;
        let closed = in_time(running).await.expect("it ends");
        assert_eq!((closed.code, closed.clean), (1001, true), "{place:?}");
        assert_eq!(closed.reason(), "theirs");
        assert_eq!(closed.initiator, Some(Initiator::Local));
        assert_eq!(content(closed.sent), Some((Some(1000), "ours".into())));
    }
}
