//! Round trips that the application measures.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_round_trip_takes_as_long_as_the_pong() {
    for place in PLACES {
        let application = |ws: WebSocket| async move {
            let (sender, mut receiver) = ws.split();
            tokio::select! {
                taken = sender.round_trip(b"?") => taken,
                received = receiver.recv() => panic!("nothing was sent: {received:?}"),
            }
        };
        let (mut peer, running) = place.start(64, quiet(), application);
        assert_eq!(in_time(peer.frame()).await, Some((0x89, b"?".to_vec())));
        for unrelated in [&b""[..], b"!", b"??"] {
            peer.send(Frame::new(0xA, unrelated)).await;
        }
        tokio::time::sleep(3 * SECOND).await;
        peer.send(Frame::new(0xA, b"?")).await;
        let taken = in_time(running).await.expect("it ends").expect("a Pong");
        assert!(taken >= 3 * SECOND && taken < 4 * SECOND, "{taken:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pong_is_noticed_between_the_messages_of_a_batch() {
    for place in PLACES {
        let application = |mut ws: WebSocket| async move {
            let sender = crate::Sender::new(ws.link.clone());
            let receive = async {
                let mut texts = Vec::new();
                while texts.len() < 2 {
                    let batch = ws.recv_batch().await.expect("the peer is honest");
                    let mut batch = batch.expect("there are two messages");
                    let messages = batch.drain().map(|message| message.into_message());
                    texts.extend(messages);
                }
                texts
            };
            tokio::join!(sender.round_trip(b"?"), receive)
        };
        let (mut peer, running) = place.start(64, quiet(), application);
        in_time(peer.frame()).await.expect("a Ping");
        let frames = [
            Frame::new(0x1, b"one"),
            Frame::new(0xA, b"?"),
            Frame::new(0x1, b"two"),
        ];
        let wire = peer.writer.wire(frames);
        peer.writer.send_bytes(&wire).await;
        let (taken, texts) = in_time(running).await.expect("it ends");
        assert!(taken.is_ok(), "{place:?}");
        assert_eq!(texts, [Message::from("one"), "two".into()]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_newest_pong_answers_earlier_pings() {
    let application = |ws: WebSocket| async move {
        let (sender, _receiver) = ws.split();
        let third = async {
            let abandoned = poll_times(sender.round_trip(b"3"), 1).await;
            assert!(abandoned.is_none());
        };
        let (one, two, ()) = tokio::join!(sender.round_trip(b"1"), sender.round_trip(b"2"), third);
        (one, two, sender.round_trip(&[0; 126]).await)
    };
    let (mut peer, running) = Place::Client.start(64, quiet(), application);
    for expected in [b"1", b"2", b"3"] {
        let ping = in_time(peer.frame()).await;
        assert_eq!(ping, Some((0x89, expected.to_vec())));
    }
    peer.send(Frame::new(0xA, b"3")).await;
    let (one, two, long) = in_time(running).await.expect("it ends");
    assert!(one.is_ok() && two.is_ok());
    assert!(matches!(long, Err(Error::Send(_))), "{long:?}");
}

#[tokio::test(start_paused = true)]
async fn a_round_trip_ends_with_the_connection() {
    for (last, expected) in [(Some(close(1001)), true), (None, false)] {
        for place in PLACES {
            let application = |ws: WebSocket| async move {
                let (sender, _receiver) = ws.split();
                sender.round_trip(b"?").await
            };
            let (mut peer, running) = place.start(64, quiet(), application);
            in_time(peer.frame()).await.expect("a Ping");
            if let Some(last) = last.clone() {
                peer.send(last).await;
            } else {
                drop(peer);
            }
            let error = in_time(running).await.expect("it ends").unwrap_err();
            let by_peer = matches!(error, Error::PeerClosed { code: 1001, .. });
            assert_eq!(by_peer, expected, "{place:?}: {error}");
        }
    }
}
