//! Slow peers and applications: every queue is bounded.

use super::*;
use crate::Counters;

fn counted(counters: &Arc<Counters>) -> Options {
    let mut options = quiet();
    options.counters = Some(counters.clone());
    options
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_does_not_read_makes_sends_wait() {
    for place in PLACES {
        let counters = Arc::<Counters>::default();
        let mut options = counted(&counters);
        options.send_queue_bytes_max = 1_000;
        let application = |mut ws: WebSocket| async move {
            for _ in 0..1_000 {
                ws.send(vec![7; 100]).await?;
            }
            ws.close(CloseCode::NORMAL, "").await
        };
        let (mut peer, running) = place.start(64, options, application);
        for _ in 0..1_000 {
            yield_now().await;
        }
        let accepted = counters.messages_sent();
        // The limit, plus one message, plus what is in the pipe.
        assert!((5..=12).contains(&accepted), "{place:?}: {accepted}");
        for _ in 0..1_000 {
            let frame = in_time(peer.frame()).await;
            assert_eq!(frame, Some((0x82, vec![7; 100])));
        }
        assert_eq!(in_time(peer.frame()).await.expect("a Close").0, 0x88);
        peer.send(close(1000)).await;
        assert!(in_time(running).await.expect("it ends").is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn a_queue_of_no_bytes_takes_one_message_at_a_time() {
    for place in PLACES {
        let mut options = quiet();
        options.send_queue_bytes_max = 0;
        let application = |mut ws: WebSocket| async move {
            for number in 0..10 {
                ws.send(number.to_string()).await?;
            }
            ws.close(CloseCode::NORMAL, "").await
        };
        let (mut peer, running) = place.start(4, options, application);
        for number in 0..10 {
            let frame = in_time(peer.frame()).await;
            assert_eq!(frame, Some((0x81, number.to_string().into_bytes())));
        }
        assert_eq!(in_time(peer.frame()).await.expect("a Close").0, 0x88);
        peer.send(close(1000)).await;
        assert!(in_time(running).await.expect("it ends").is_ok());
    }
}

/// Sends frames until the pipe accepts no more; returns how many bytes it accepted.
async fn fill(writer: &mut PeerWriter, frame: &Frame) -> usize {
    let bytes = frame.clone().to_role(writer.to).to_bytes();
    let mut taken = 0;
    while taken < 1 << 20 {
        for chunk in bytes.chunks(64) {
            if poll_times(writer.stream.write_all(chunk), 100)
                .await
                .is_none()
            {
                return taken;
            }
            taken += chunk.len();
        }
    }
    taken
}

#[tokio::test(start_paused = true)]
async fn an_application_that_does_not_receive_slows_its_peer_down() {
    // One does nothing at all, the other keeps yielding without receiving.
    type Idle = fn(WebSocket) -> Pin<Box<dyn Future<Output = ()> + Send>>;
    let idlers: [Idle; 2] = [
        |ws| {
            Box::pin(async move {
                std::future::pending::<()>().await;
                drop(ws);
            })
        },
        |ws| {
            Box::pin(async move {
                loop {
                    yield_now().await;
                    assert_eq!(ws.state(), State::Open);
                }
            })
        },
    ];
    let frames = [
        Frame::new(0x2, &[7; 200]),
        // A message that never ends, in one frame and in many.
        Frame::new(0x2, &[7; 1_000]).with_claimed_bytes(1 << 20),
        Frame::new(0x2, b"").with_fin(false),
    ];
    for place in PLACES {
        for idle in idlers {
            for frame in &frames {
                let counters = Arc::<Counters>::default();
                let mut options = counted(&counters);
                options.recv_queue_bytes_max = 1_000;
                let (mut peer, running) = place.start(64, options, idle);
                let fragment = Frame::new(0x0, &[7; 200]).with_fin(false);
                let taken = if frame.to_bytes().len() < 10 {
                    peer.send(frame.clone()).await;
                    fill(&mut peer.writer, &fragment).await
                } else {
                    fill(&mut peer.writer, frame).await
                };
                assert!(taken < 2_000, "{place:?}: {taken} bytes were taken");
                assert!(counters.bytes_received() < 2_000, "{place:?}");
                running.abort();
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_receiver_slows_nobody_down() {
    for place in PLACES {
        let application = |ws: WebSocket| async move {
            let (sender, receiver) = ws.split();
            drop(receiver);
            std::future::pending::<()>().await;
            drop(sender);
        };
        let mut options = quiet();
        options.recv_queue_bytes_max = 100;
        let (mut peer, running) = place.start(64, options, application);
        for _ in 0..100 {
            peer.send(Frame::new(0x2, &[7; 100])).await;
        }
        peer.send(Frame::new(0x9, b"?")).await;
        assert_eq!(in_time(peer.frame()).await, Some((0x8A, b"?".to_vec())));
        running.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_close_is_reached_behind_more_than_is_kept() {
    for place in PLACES {
        let mut options = quiet();
        options.recv_queue_bytes_max = 100;
        let application = |mut ws: WebSocket| async move {
            let closed = ws.close(CloseCode::NORMAL, "").await?;
            let mut seen = Vec::new();
            while let Some(message) = ws.recv().await? {
                seen.push(message.as_bytes()[0]);
            }
            Result::<_>::Ok((closed, seen))
        };
        let (mut peer, running) = place.start(64, options, application);
        assert_eq!(in_time(peer.frame()).await.expect("a Close").0, 0x88);
        for number in 0..100 {
            peer.send(Frame::new(0x2, &[number; 30])).await;
        }
        peer.send(Frame::new(0x2, b"x").with_fin(false)).await;
        peer.send(Frame::new(0x0, &[7; 1_000]).with_fin(false))
            .await;
        peer.send(close(1000)).await;
        let ended = in_time(running).await.expect("it ends");
        let (closed, seen) = ended.expect("a clean end");
        assert!(closed.clean, "{place:?}");
        // The oldest messages are kept, without a gap.
        assert!((3..=5).contains(&seen.len()), "{place:?}: {seen:?}");
        assert!(
            seen.iter().copied().eq(0..seen.len() as u8),
            "{place:?}: {seen:?}"
        );
    }
}
