//! Frames that are encoded once and sent to many connections.

use futures_util::FutureExt;
use tokio::task::consume_budget;

use super::*;
use crate::{Counters, Frames, MessageKind, SendError, Sender, TrySendError};

/// Returns frames with `messages` payloads of `bytes` bytes each; every byte of a payload is its
/// number, counted from 0.
fn frames(messages: u8, bytes: usize) -> Frames {
    let mut wire = Vec::new();
    for number in 0..messages {
        Frames::append(&mut wire, MessageKind::Binary, &vec![number; bytes]);
    }
    Frames::from_framed(wire).expect("they are frames")
}

/// Sends `frames` repeatedly until they have been accepted `times` times; returns how often it had
/// to wait.
async fn send_all(sender: &Sender, frames: &Frames, times: usize) -> Result<usize> {
    let mut waits = 0;
    for _ in 0..times {
        while let Err(error) = sender.try_send_frames([frames]) {
            assert!(matches!(error, TrySendError::Full { .. }), "{error}");
            assert_eq!(sender.room(), 0);
            waits += 1;
            sender.writable().await?;
            assert!(sender.room() > 0);
        }
    }
    Ok(waits)
}

#[tokio::test(start_paused = true)]
async fn shared_frames_arrive_in_order_at_a_peer_that_is_slow() {
    for place in PLACES {
        let counters = Arc::<Counters>::default();
        let mut options = quiet();
        options.counters = Some(counters.clone());
        options.send_queue_bytes_max = 20_000;
        let application = |ws: WebSocket| async move {
            let (sender, _receiver) = ws.split();
            let (small, large) = (frames(3, 10), frames(3, 3_000));
            let mut waits = 0;
            for _ in 0..10 {
                waits += send_all(&sender, &small, 1).await?;
                waits += send_all(&sender, &large, 2).await?;
                sender.send(vec![99; 40_000]).await?;
            }
            sender.close(CloseCode::NORMAL, "").await?;
            Result::<_>::Ok(waits)
        };
        let (mut peer, running) = place.start(1_000, options, application);
        for _ in 0..10 {
            for bytes in [10, 3_000, 3_000] {
                for number in 0..3 {
                    let frame = in_time(peer.frame()).await;
                    assert!(frame == Some((0x82, vec![number; bytes])), "{place:?}");
                }
            }
            let frame = in_time(peer.frame()).await;
            assert!(frame == Some((0x82, vec![99; 40_000])), "{place:?}");
        }
        assert_eq!(in_time(peer.frame()).await.expect("a Close").0, 0x88);
        peer.send(close(1000)).await;
        let waits = in_time(running)
            .await
            .expect("it ends")
            .expect("it is sent");
        assert!(waits >= 9, "{place:?}: {waits}");
        assert_eq!(counters.messages_sent(), 100, "{place:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_does_not_read_makes_shared_frames_be_refused() {
    for place in PLACES {
        let mut options = quiet();
        options.send_queue_bytes_max = 10_000;
        let application = |ws: WebSocket| async move {
            let (sender, receiver) = ws.split();
            let block = frames(1, 6_000);
            let mut taken = 0;
            let error = loop {
                if let Err(error) = sender.try_send_frames([&block]) {
                    break error;
                }
                taken += 1;
                yield_now().await;
            };
            assert!(sender.queued_bytes() > 10_000);
            // Either both blocks are sent, or neither.
            assert!(sender.try_send_frames([&block, &block]).is_err());
            drop(receiver);
            (taken, error)
        };
        let (peer, running) = place.start(64, options, application);
        let (taken, error) = in_time(running).await.expect("it ends");
        assert_eq!(taken, 2, "{place:?}");
        let TrySendError::Full { bytes, bytes_max } = error else {
            panic!("{place:?}: {error}");
        };
        assert_eq!(bytes_max, 10_000, "{place:?}");
        assert!((11_900..12_100).contains(&bytes), "{place:?}: {bytes}");
        assert!(error.to_string().contains("10000"), "{error}");
        drop(peer);
    }
}

#[tokio::test(start_paused = true)]
async fn a_ping_is_answered_within_a_block_that_a_slow_peer_takes() {
    for place in PLACES {
        let application = |ws: WebSocket| async move {
            let (sender, _receiver) = ws.split();
            sender
                .try_send_frames([&frames(100, 1_000)])
                .expect("there is room");
            std::future::pending::<()>().await;
        };
        let (mut peer, running) = place.start(64, quiet(), application);
        assert_eq!(in_time(peer.frame()).await.expect("a frame").1[0], 0);
        peer.send(Frame::new(0x9, b"?")).await;
        let mut before = 0;
        while in_time(peer.frame()).await.expect("a frame").0 != 0x8A {
            before += 1;
        }
        assert!(before < 10 || place == Place::Client, "{place:?}: {before}");
        running.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_sent_to_an_idle_connection_is_written_in_the_call() {
    let counters = Arc::<Counters>::default();
    let mut options = quiet();
    options.counters = Some(counters.clone());
    let application = |ws: WebSocket| async move {
        let (sender, _receiver) = ws.split();
        let (small, large) = (frames(1, 10), frames(2, 5_000));
        sender
            .try_send_frames([&small, &large])
            .expect("there is room");
        assert_eq!(counters.bytes_sent(), 12 + 2 * 5_004);
        assert_eq!(counters.messages_sent(), 3);
    };
    let (peer, running) = Place::Server.start(1 << 20, options, application);
    in_time(running).await.expect("it ends");
    assert_eq!(in_time(peer.reader.frames()).await[..3].len(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_is_sent_is_written_in_the_call_even_by_a_task_that_was_busy_for_long() {
    let application = |ws: WebSocket| async move {
        let (sender, _receiver) = ws.split();
        // A task that sends to thousands of connections exhausts its cooperative budget long before
        // the last one.
        while consume_budget().now_or_never().is_some() {}
        sender
            .try_send_frames([&frames(1, 10)])
            .expect("there is room");
        assert_eq!(sender.queued_bytes(), 0);
    };
    let (_peer, running) = Place::Server.start(1 << 20, quiet(), application);
    in_time(running).await.expect("it ends");
}

#[tokio::test(start_paused = true)]
async fn what_is_fed_is_written_together_by_a_flush() {
    let counters = Arc::<Counters>::default();
    let mut options = quiet();
    options.counters = Some(counters.clone());
    let application = |ws: WebSocket| async move {
        let (sender, _receiver) = ws.split();
        sender.try_flush();
        for _ in 0..3 {
            sender
                .try_feed_frames([&frames(1, 10)])
                .expect("there is room");
        }
        assert_eq!((sender.queued_bytes(), counters.bytes_sent()), (36, 0));
        sender.try_flush();
        assert_eq!((sender.queued_bytes(), counters.bytes_sent()), (0, 36));
    };
    let (_peer, running) = Place::Server.start(1 << 20, options, application);
    in_time(running).await.expect("it ends");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_behind_a_close_and_nobody_waits_for_room_then() {
    for place in PLACES {
        let mut options = quiet();
        options.send_queue_bytes_max = 100;
        let application = |ws: WebSocket| async move {
            let (sender, receiver) = ws.split();
            let block = frames(1, 10_000);
            sender.try_send_frames([&block]).expect("there is room");
            let waits = tokio::spawn({
                let sender = sender.clone();
                async move { sender.writable().await }
            });
            yield_now().await;
            sender
                .start_close(CloseCode::NORMAL, "bye")
                .expect("a short reason");
            let closed = TrySendError::Send(SendError::Closed);
            assert_eq!(sender.try_send_frames([&block]), Err(closed));
            assert_eq!(sender.room(), 0);
            let waited = waits.await.expect("it ends");
            drop(receiver);
            waited
        };
        let (mut peer, running) = place.start(64, options, application);
        let frame = in_time(peer.frame()).await.expect("the block");
        assert_eq!(frame.1.len(), 10_000, "{place:?}");
        let frame = in_time(peer.frame()).await;
        assert_eq!(frame, Some((0x88, b"\x03\xe8bye".to_vec())), "{place:?}");
        peer.send(close(1000)).await;
        let waited = in_time(running).await.expect("it ends");
        assert!(waited.is_err(), "{place:?}");
    }
}
